"""Networks with adjacent channels, on shared tiles, and with skipped rows of zeros compute the same as the original."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from indexed_nets import choosing, conv, convolutional, read_out, shaping
from nets import join, linear
from poplar_projects import BATCH, STEPS, Project, machine
from test_parts_on_tiles import assert_trains_alike
from test_poplar_matches_reference import assert_same_records
from wide import examples, sampled

from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.engine import open_engine
from snnc.backends.runtime.engine_of_parts import EngineOfParts
from snnc.compiler.ir.arrays.channel_order import ChannelOrder
from snnc.compiler.ir.graph import Flatten, Graph, Input, Pool, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LIF
from snnc.compiler.tiles.blocks.grouping import Cut
from snnc.compiler.tiles.mapped.network import reads_sparse_values
from snnc.compiler.tiles.mapper import make_plan
from snnc.compiler.tiles.partition.reorder import movable, orders, reorder
from snnc.compiler.tiles.placement.choices import choices
from snnc.compiler.tiles.placement.placement import Placement, lay_range
from snnc.compiler.tiles.placement.sharing import sharing_tiles
from snnc.compiler.tiles.planning.ordering import ChannelOrders, activity_of
from snnc.driver.activity import measure_activity

LOSS = parse_loss("ce_mean_membrane")


def pooled(random):
    """Averages of spikes, an odd number a sample, that a dense layer reads; a learned parameter and an initial state of each neuron."""
    graph = Graph("pooled")
    graph.add("x", Input((3, 7, 7), "spikes"))
    beta = random.uniform(0.5, 0.95, (5, 6, 6)).astype(np.float32)
    initial = {"v": random.uniform(0, 1, (5, 6, 6)).astype(np.float32)}
    graph.add("maps", Population(LIF(0.9), (5, 6, 6), {"beta": beta}, frozenset({"beta"}), initial))
    join(graph, "conv", conv(random, 5, 3, 2, 2, bias=True), "x", "maps")
    graph.add("small", Pool("average", (2, 2)))
    graph.add("flat", Flatten())
    graph.add("hidden", Population(LIF(0.9), (9,)))
    graph.connect("maps", "small")
    graph.connect("small", "flat")
    join(graph, "dense", linear(random, 9, 45, bias=True, gain=3), "flat", "hidden")
    join(graph, "back", linear(random, 180, 9), "hidden", "maps", delay=1)
    return read_out(graph, random, ("hidden", 9), ("maps", 180))


def program_of(make, optimizer, steps=STEPS):
    return lower(make(np.random.default_rng(3)), loss=LOSS, loss_output="y", optimizer=optimizer, steps=steps)


def on_shared_tiles(problem):
    """All populations on all tiles of the first chip: as one replica, and as many."""
    for replicas, columns in ((1, 6), (problem.batch, 2)):
        room = problem.target.tiles_per_chip // replicas
        layers = problem.network.layers
        ranges = [lay_range(problem.batch, x.neurons, Cut(replicas, columns), min(x.neurons, room), 0) for x in layers]
        yield Placement(tuple(ranges), 1, 1, shared=True)


@pytest.mark.parametrize("grain", [1, 2, 3, 6])
def test_an_order_holds_every_value_once_with_channels_side_by_side(grain):
    order = ChannelOrder(6, 5, grain)
    channel, position = np.divmod(order.values(), 5)
    assert sorted(order.values()) == list(range(30))
    np.testing.assert_array_equal(order.values()[order.places()], np.arange(30))
    np.testing.assert_array_equal(channel.reshape(-1, grain) % grain, np.tile(np.arange(grain), (30 // grain, 1)))
    assert (np.ptp(position.reshape(-1, grain), axis=1) == 0).all()


def test_what_the_loss_reads_and_what_goes_by_number_stays_in_the_authors_order():
    program = program_of(convolutional, Adam(1e-2))
    labels = {p.id: p.label for p in program.populations} | {i.id: i.label for i in program.inputs}
    assert {labels[id_] for id_ in movable(program)} == {"x", "first", "pooled", "grouped", "strided"}


@pytest.mark.parametrize("grain", [2, 1 << 30])
def test_measured_spikes_and_rates_move_with_the_values_of_an_order(grain):
    program = program_of(convolutional, Adam(1e-2))
    chosen = orders(program, grain)
    way = ChannelOrders(chosen, reorder(program, chosen))
    x = {i.id: (np.random.default_rng(1).random((STEPS, BATCH, *i.shape)) < 0.3).astype(np.float32) for i in program.inputs}
    found = activity_of(way, measure_activity(program, x, "here"))
    assert {"x0_in", "p0_o0"} <= set(found.patterns) == set(found.rates)
    for name, pattern in found.patterns.items():
        spikes = np.unpackbits(pattern, axis=-1, count=len(found.rates[name]))
        np.testing.assert_allclose(spikes.mean(axis=(0, 1)), found.rates[name], rtol=1e-6)
        np.testing.assert_array_equal(spikes.sum(axis=-1), found.counts[name])
    moved = way.correspondence.inputs_of_parts(x)["x0"].reshape(STEPS, BATCH, -1)
    np.testing.assert_array_equal(np.unpackbits(found.patterns["x0_in"], axis=-1, count=moved.shape[-1]), moved)


def test_averages_of_spikes_are_mostly_zero_and_membranes_are_not():
    program = program_of(pooled, Adam(1e-2))
    quiet = {c.label for c in program.connections if reads_sparse_values(program, c)}
    assert quiet == {"dense"}


def test_shared_tiles_hold_every_neuron_of_a_sample_once():
    found = []

    def placer(problem):
        found.extend(sharing_tiles(problem, choices(problem), [], 1, 1))
        return found

    program = program_of(convolutional, Adam(1e-2))
    make_plan(program, machine(60), steps=STEPS, batch=BATCH, placer=placer)
    assert found
    for placement in found:
        for population, where in zip(program.populations, placement.ranges, strict=True):
            assert where.neurons.sum() == np.prod(population.shape)
            assert sum(count for _, count in where.samples) == BATCH
            assert where.tiles.min() >= 0
            assert where.tiles.max() < 60


@pytest.mark.wide
@pytest.mark.parametrize(
    ("make", "chips", "grain", "optimizer", "shares"),
    sampled(
        [
            (convolutional, 1, 8, Adam(1e-2), True),
            (convolutional, 2, 2, SGD(1e-2, 0.9), False),
            (choosing, 1, 8, Adam(1e-2), False),
            (shaping, 2, 8, Adam(1e-2), False),
            (pooled, 1, 8, Adam(1e-2), True),
            (pooled, 2, 1, SGD(1e-2), True),
        ],
        3,
    ),
)
def test_other_orders_on_shared_tiles_train_as_the_reference_does(tmp_path, make, chips, grain, optimizer, shares):
    program = program_of(make, optimizer)
    correspondence = reorder(program, orders(program, grain))
    placer = {"placer": on_shared_tiles} if shares else {}
    plan = make_plan(correspondence.program_of_parts, machine(60 // chips, chips), steps=STEPS, batch=BATCH, chips=chips, **placer)
    shared = [b.tile for p in plan.populations for b in p.blocks]
    assert not shares or len(set(shared)) < sum(len({b.tile for b in p.blocks}) for p in plan.populations)
    engine = EngineOfParts(open_engine(emit_poplar(correspondence.program_of_parts, plan, tmp_path / "project")), correspondence)
    assert_trains_alike(Project(program, None, None), engine)
    engine.close()


@st.composite
def random_nets(draw):
    """A convolution with any stride, padding, dilation and groups, a pooling, another convolution and a readout."""
    groups = draw(st.sampled_from([1, 2]))
    inputs, maps, last = groups * draw(st.integers(1, 2)), groups * draw(st.integers(1, 3)), draw(st.integers(1, 4))
    pairs = st.tuples(st.integers(0, 1), st.integers(0, 1))
    options = {
        "stride": tuple(draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))),
        "dilation": tuple(draw(st.tuples(st.integers(1, 2), st.integers(1, 2)))),
        "padding": draw(st.tuples(pairs, pairs)),
        "groups": groups,
    }
    kernel = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    kind, bias, seed = draw(st.sampled_from(["max", "average", "sum"])), draw(st.booleans()), draw(st.integers(0, 999))

    def make(_):
        random = np.random.default_rng(seed)
        graph = Graph("drawn")
        graph.add("x", Input((inputs, 7, 6), "spikes"))
        made = [
            (n + sum(p) - (k - 1) * d - 1) // s + 1
            for n, p, k, d, s in zip((7, 6), options["padding"], kernel, options["dilation"], options["stride"], strict=True)
        ]
        graph.add("first", Population(LIF(0.9), (maps, *made)))
        join(graph, "conv", conv(random, maps, inputs // groups, *kernel, bias=bias, **options), "x", "first")
        window = tuple(min(2, n) for n in made)
        halves = tuple((n - w) // w + 1 for n, w in zip(made, window, strict=True))
        graph.add("pool", Pool(kind, window))
        graph.connect("first", "pool")
        graph.add("second", Population(LIF(0.9), (last, *halves)))
        join(graph, "next", conv(random, last, maps, 1, 1), "pool", "second")
        return read_out(graph, random, ("second", last * int(np.prod(halves))))

    return make


@pytest.mark.wide
@settings(max_examples=examples(2, 4), deadline=None, phases=(Phase.generate,))
@given(make=random_nets(), grain=st.sampled_from([1, 2, 8]), tiles=st.sampled_from([1, 7, 40]))
def test_random_convolutions_on_the_emulator_train_as_the_reference_does(tmp_path_factory, make, grain, tiles):
    program = program_of(make, Adam(1e-2))
    correspondence = reorder(program, orders(program, grain))
    plan = make_plan(correspondence.program_of_parts, machine(tiles), steps=STEPS, batch=BATCH)
    project = emit_poplar(correspondence.program_of_parts, plan, tmp_path_factory.mktemp("net") / "project")
    engine = EngineOfParts(open_engine(project), correspondence)
    case = Project(program, None, None)
    reference, (inputs, target) = case.reference(), case.data()
    assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
    assert engine.train_batch(inputs, target, 0.0) == pytest.approx(reference.train_batch(inputs, target, 0.0), rel=1e-5)
    gradients, wanted = engine.gradients(), reference.gradients()
    whole = np.sqrt(sum(float(np.square(g).sum()) for g in wanted.values()))  # terms of a drawn net's single weight may cancel
    for name, gradient in wanted.items():
        assert np.linalg.norm(gradients[name] - gradient) <= 1e-5 * whole, name
    engine.close()
