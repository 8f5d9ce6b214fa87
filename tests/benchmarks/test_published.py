"""The published per-layer program: its printed log, the addresses of its tensors, and laws that any cost obeys."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from snnc.benchmarks.published import PublishedLayer, PublishedNet, PublishedOptions, predict_published
from snnc.benchmarks.published.backward import groups, stage_tiles
from snnc.benchmarks.published.layout import lay_out
from snnc.benchmarks.published.machine import Exchange, Machine
from snnc.benchmarks.published.options import LoopCost, prologue
from snnc.compiler.machines import load_target
from snnc.compiler.tiles.errors import PublishedLayoutError, PublishedOptionError

GC200, M2000 = load_target("gc200"), load_target("m2000")
LOGGED = {  # DENSE_SIZES, SPARSE_SIZES, start_tiles and tile spread factors as the log prints them
    2: ((1466, 1466, 10), (14, 14, 2), [1, 734, 1467], (4, 4, 1)),
    3: ((978, 978, 976, 10), (8, 8, 8, 2), [1, 490, 979, 1467], (3, 3, 3, 1)),
    4: ((734, 734, 732, 732, 10), (6, 6, 6, 6, 2), [1, 368, 735, 1101, 1467], (2, 2, 2, 2, 1)),
    5: ((588, 586, 586, 586, 586, 10), (4, 4, 4, 4, 4, 2), [1, 295, 588, 881, 1174, 1467], (2, 2, 2, 2, 2, 1)),
}
STAGE_TILES = {  # num_tiles_per_layer; numExchangeGroups with the size of the last
    2: ([1444, 26], [(30, 37), (1, 5)]),
    3: ([726, 725, 18], [(20, 33), (20, 32), (1, 5)]),
    4: ([485, 484, 484, 15], [(15, 31), (15, 30), (15, 30), (1, 5)]),
    5: ([364, 364, 364, 364, 14], [(12, 29)] * 4 + [(1, 5)]),
}


def net(widths=(20, 12, 4), inputs=30, *, batch=12, steps=5, share=0.5, used=0.5, optimizer="adam"):
    layers = []
    for n in widths:
        capacity = max(1, int(share * n))
        layers.append(PublishedLayer(n, capacity, used * capacity, (used + 1) / 2 * capacity))
    held = max(1, int(share * inputs))
    return PublishedNet("net", inputs, held, used * held, tuple(layers), steps, batch, optimizer)


def logged(hidden):
    widths, capacities, _, _ = LOGGED[hidden]
    layers = tuple(PublishedLayer(n, k, k / 2, k) for n, k in zip(widths, capacities, strict=True))
    return PublishedNet("logged", 2312, 32, 14.0, layers, 100, 48)


def small(tiles=40, chips=1, **changes):
    return replace(M2000, name="small", tiles_per_chip=tiles, chips=chips, **changes)


def step_of(prediction, name):
    (found,) = [step for step in prediction.supersteps if step.name == name]
    return found


# ---- what the log prints ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("hidden", LOGGED)
def test_tile_ranges_and_spread_are_those_that_the_log_prints(hidden):
    layout = lay_out(logged(hidden), GC200)
    assert [where.first for where in layout.ranges] == LOGGED[hidden][2]
    assert layout.ranges[-1].stop == 1472
    assert layout.spread == LOGGED[hidden][3]


@pytest.mark.parametrize("hidden", LOGGED)
def test_the_first_reduction_gets_the_tiles_and_groups_that_the_log_prints(hidden):
    machine = Machine(logged(hidden), lay_out(logged(hidden), GC200), GC200, PublishedOptions())
    tiles, expected = STAGE_TILES[hidden]
    assert list(stage_tiles(machine, 0).values()) == tiles
    assert [groups(48, where.tiles) for where in machine.layout.ranges[1:]] == expected


# ---- the layout ------------------------------------------------------------------------------------------------------


@given(
    widths=st.lists(st.integers(1, 300), min_size=2, max_size=12),
    tiles=st.integers(8, 80),
    chips=st.integers(1, 4),
)
def test_layers_lie_whole_on_one_chip_each_beside_one_another(widths, tiles, chips):
    target = small(tiles, chips)
    try:
        layout = lay_out(net(tuple(widths)), target)
    except PublishedLayoutError:
        assert len(widths) > tiles - 1  # with wide enough tiles, every layer takes one
        return
    for width, where in zip(widths, layout.ranges, strict=True):
        assert where.first // tiles == (where.stop - 1) // tiles == where.chip < chips
        assert where.tiles == math.ceil(width / where.neurons)
    # The first tile of the first chip is kept for scalars; a layer that needs a whole chip begins with the second.
    assert layout.ranges[0].first == (1 if layout.ranges[0].tiles < tiles else tiles)
    for before, after in itertools.pairwise(layout.ranges):
        assert after.first == before.stop or after.first == after.chip * tiles > before.stop - 1
    assert len({where.neurons for where in layout.ranges}) == 1


def test_too_many_layers_find_no_room():
    with pytest.raises(PublishedLayoutError, match=r"9 layers.*8 tiles"):
        lay_out(net((2,) * 9), small(8))


def test_chips_without_links_are_refused():
    with pytest.raises(PublishedLayoutError, match="nothing links"):
        lay_out(net((70, 70, 4)), SimpleNamespace(name="islands", chips=2, tiles_per_chip=40, workers=6, link_bytes_per_second=0.0))


# ---- addresses: fragments counted one by one -------------------------------------------------------------------------


def runs(words):
    """Fragments among words (source tile, source address, address where it lands), in any order."""
    ordered = sorted(words, key=lambda word: word[2])
    return sum(
        1
        for before, word in zip([None, *ordered[:-1]], ordered, strict=True)
        if before is None or (word[0], word[1], word[2]) != (before[0], before[1] + 1, before[2] + 1)
    )


def test_flags_arrive_in_as_many_fragments_as_their_addresses_say():
    """Flags are [neurons, samples, thresholds] on the neurons' tiles; a tile compacts a share of one sample and threshold."""
    one = net((400, 12, 4), batch=8)
    target = small(1000)
    layout = lay_out(one, target)
    where, spread = layout.ranges[0], layout.spread[0]
    assert spread == 1
    words = []
    for neuron in range(400):
        tile, local = where.first + neuron // where.neurons, neuron % where.neurons
        words.append((tile, (local * 8 + 3) * 2 + 1, neuron))  # sample 3, second threshold
    found = step_of(predict_published(one, target), "compact flags")
    sent = 2 * 8 * where.neurons  # every flag of a tile goes to a tile of its own
    assert found.pieces == runs(words) + sent
    assert found.received == 4 * len(words)


@pytest.mark.parametrize("batch", [6, 12, 48])
def test_sliced_ids_are_broadcast_in_a_fragment_from_each_tile(batch):
    """One step of a tensor that is sliced in time lies in equal shares on the tiles of the chip."""
    one, target = net(batch=batch, inputs=90), small(101)
    size = batch * one.input_capacity
    share = math.ceil(size / 100)
    ids = runs([(i // share, i % share, i) for i in range(size)])
    counts = runs([(i, 0, i) for i in range(batch)])
    machine = Machine(one, lay_out(one, target), target, PublishedOptions())
    prediction = predict_published(one, target)
    assert step_of(prediction, "update states").pieces >= ids + counts
    from snnc.benchmarks.published.layout import slice_pieces

    assert slice_pieces(size, machine.tiles) == ids
    assert slice_pieces(batch, machine.tiles) == counts


def test_partial_sums_arrive_word_by_word():
    """A vertex needs the words of its group's tiles side by side; they come from one tile each."""
    one, target = net((20, 20, 4), batch=12), small(1472)
    capacity = one.layers[0].capacity
    number, largest = groups(12, 10)  # 10 tiles of 2 neurons in groups of 6
    assert (number, largest) == (1, 10)
    machine = Machine(one, lay_out(one, target), target, PublishedOptions())
    tiles = stage_tiles(machine, 0)[1]
    vertices = [(b, k) for b in range(12) for k in range(capacity)][: math.ceil(12 * capacity / tiles)]
    words = [(tile, b * capacity + k, v * largest + tile) for v, (b, k) in enumerate(vertices) for tile in range(largest)]
    found = step_of(predict_published(one, target), "reduce groups")
    assert found.received >= 4 * len(words)
    assert found.pieces >= runs(words) == len(words)


# ---- cycles by hand --------------------------------------------------------------------------------------------------


def test_loops_are_between_ideal_and_naive_code():
    loop = LoopCost(loads=2, stores=1, arithmetic=4, integer=1, branches=1)
    assert loop.cycles("ideal") == 4  # arithmetic hides the rest
    assert loop.cycles("naive") == 10
    assert loop.cycles("naive", loops=False) == 9
    assert loop.cycles("mean") == 7
    assert prologue(6, "mean") == 9


def test_a_vertex_alone_still_takes_six_cycles_an_instruction():
    machine = Machine(net(), lay_out(net(), GC200), GC200, PublishedOptions())
    assert machine.vertices(1, 20) == machine.vertices(6, 20) == 6 * (10 + 20)
    assert machine.vertices(7, 20) == 12 * (10 + 20)


@pytest.mark.parametrize(("values", "cycles"), [(1, 403), (96, 499), (600, 25 + 6 * (39 + 24 + 2 * 50))])
def test_a_dynamic_slice_costs_what_the_facts_say(values, cycles):
    assert Machine.dynamic(values) == cycles


def test_weight_gradients_by_hand():
    """Six vertices of two samples: prologue 1.5 x 7, a sample 5, an event 4.5 (mean of 6 and 3) for each of 7.5 input spikes."""
    found = step_of(predict_published(net(), GC200), "weight gradients")
    sample, event = (7 + 3) / 2, (6 + 3) / 2
    assert found.compute == pytest.approx(6 * (10 + 10.5 + 2 * (sample + 7.5 * event)))
    assert (found.sync, found.exchange, found.runs) == (30, 0, 5)


def test_exchange_costs_bytes_and_fragments_of_the_slower_side_or_the_links():
    machine = Machine(net(), lay_out(net(), M2000), M2000, PublishedOptions(fragment_cycles=9))
    assert machine.exchange(Exchange(400, 10, 100, 1)) == 100 + 90
    assert machine.exchange(Exchange(400, 10, 800, 20)) == 200 + 180
    assert machine.exchange(Exchange(4, 1, link=M2000.link_bytes_per_second)) == pytest.approx(M2000.clock_hz)
    assert machine.barrier(Exchange(4, 1, link=4)) - machine.barrier(Exchange(4, 1)) == 600 - 126


def test_side_by_side_the_slowest_exchange_counts_and_every_link():
    machine = Machine(net(), lay_out(net(), M2000), M2000, PublishedOptions())
    near, far = Exchange(4000, 100), Exchange(40, 1, link=8)
    found = machine.busiest([near, far])
    assert machine.exchange(found) == machine.exchange(near)
    assert machine.barrier(found) == machine.barrier(far) > machine.barrier(near)
    assert machine.busiest([]) == Exchange()


def test_surrogate_gathers_and_scatters_every_neuron():
    """U, thresholds and dU in two-neuron pieces; ids and gradients of 7 entries; dU back."""
    found = predict_published(logged(2), GC200, PublishedOptions(fragment_cycles=0))
    assert step_of(found, "gather U and dU").exchange == 3 * 1466 + 2 * 14 + 1
    assert step_of(found, "scatter dU").exchange == 1466
    more = predict_published(logged(2), GC200, PublishedOptions(fragment_cycles=1))
    assert step_of(more, "scatter dU").exchange == 1466 + 733
    assert step_of(more, "gather U and dU").pieces == 3 * 733 + 14 + 2


def test_program_steps_of_a_time_step_grow_with_the_layers():
    """8 L + 3 dynamic slices and updates, 4 L operations of one layer each, and 15 for all layers together."""
    for hidden in LOGGED:
        layers = hidden + 1
        assert predict_published(logged(hidden), GC200).program_steps_per_time_step == 12 * layers + 3 + 15


def test_memory_by_hand():
    found = predict_published(logged(2), GC200)
    held = found.memory[0]
    weights = 4 * 2312 * 2
    assert (held["weights"], held["optimiser"], held["gradients"]) == (weights, 2 * weights, 7 * weights)
    assert held["history"] == 4 * 100 * 48 * 2
    assert found.fits
    assert found.peak_tile_bytes == max(sum(m.values()) for m in found.memory)


def test_sgd_keeps_nothing():
    assert predict_published(net(optimizer="sgd"), GC200).memory[0]["optimiser"] == 0


# ---- laws ------------------------------------------------------------------------------------------------------------

nets = st.builds(
    net,
    widths=st.lists(st.integers(2, 400), min_size=2, max_size=6).map(tuple),
    inputs=st.integers(2, 900),
    batch=st.integers(6, 60),
    steps=st.integers(2, 40),
    share=st.floats(0.05, 1.0),
    used=st.floats(0.0, 0.9),
    optimizer=st.sampled_from(["adam", "sgd"]),
)


@given(nets, st.integers(1, 2), st.floats(0, 20))
@settings(max_examples=40)
def test_more_of_anything_never_costs_less(one, chips, fragment):
    target = small(120, chips)
    options = PublishedOptions(fragment_cycles=fragment)
    base = predict_published(one, target, options)
    assert predict_published(one.full(), target, options).step_cycles >= base.step_cycles
    assert predict_published(replace(one, steps=one.steps + 1), target, options).step_cycles > base.step_cycles
    assert predict_published(one, target, replace(options, fragment_cycles=fragment + 1)).step_cycles >= base.step_cycles
    assert predict_published(one, target, replace(options, merge_copies=False)).step_cycles >= base.step_cycles
    longer = predict_published(replace(one, steps=2 * one.steps), target, options)
    assert longer.peak_tile_bytes > base.peak_tile_bytes
    ideal, naive = (predict_published(one, target, replace(options, code=code)).step_cycles for code in ("ideal", "naive"))
    assert ideal <= base.step_cycles <= naive


@given(nets)
@settings(max_examples=20)
def test_categories_and_milliseconds_add_up(one):
    found = predict_published(one, GC200)
    assert sum(found.categories.values()) == pytest.approx(found.step_cycles)
    assert found.milliseconds() == pytest.approx(1e3 * found.step_cycles / GC200.clock_hz)


def test_layers_on_a_second_chip_cross_its_links():
    wide = net((70, 70, 4))
    one, two = predict_published(wide, small(80)), predict_published(wide, small(40, chips=2))
    assert (one.layout.chips, two.layout.chips) == (1, 2)
    assert step_of(two, "broadcast ids").sync > step_of(one, "broadcast ids").sync


def test_the_later_surrogate_moves_no_state():
    late = predict_published(logged(2), GC200, PublishedOptions(surrogate="every tile"))
    assert late.categories.get("gather and scatter of U and dU", 0) == 0
    assert late.step_cycles < predict_published(logged(2), GC200).step_cycles


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: PublishedLayer(4, 5, 0, 0), "it is 1 to 4"),
        (lambda: PublishedLayer(4, 2, 2, 1), "n0 <= n1"),
        (lambda: PublishedLayer(4, 2, math.nan, 1), "n0 <= n1"),
        (lambda: net(batch=5), "batch of 5"),
    ],
)
def test_numbers_outside_their_range_are_refused(make, says):
    with pytest.raises(PublishedOptionError, match=says):
        make()
