"""The plan counts the emitted fields, for all kinds of vertices and connections, and for random losses and options."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from indexed_nets import choosing, convolutional, pooled, shaping, sparse_recurrent
from nets import behind_linear, delayed, feedback, learnable, recurrent, skip
from poplar_projects import BATCH, STEPS, machine, several_inputs, spiking, spiking_recurrent
from wide import sampled
from windowed_nets import deep, tangled

from snnc.backends.poplar.emit import assemble
from snnc.backends.poplar.network import PoplarNetwork
from snnc.backends.poplar.parts import connected, connecting_function, cpp_type
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles import mapper, request_search
from snnc.compiler.tiles.prediction.codelet_bytes import uses
from snnc.compiler.tiles.vertices.cost import CodeletCost
from snnc.compiler.tiles.vertices.vertex_spec import VertexSpec, constant, many

NETS = (
    *(behind_linear, delayed, feedback, learnable, recurrent, skip, deep, tangled, several_inputs, spiking_recurrent),
    *(partial(spiking, hidden=220), choosing, convolutional, shaping, sparse_recurrent),
)
LOSSES = ("ce_count", "ce_rate", "ce_mean_membrane", "ce_max_membrane", "mse_count")
OPTIMIZERS = (Adam(1e-2), SGD(1e-2), SGD(1e-2, 0.9))
OPTIONS = (
    {"capacity": (None, 1, 3)},
    {"mode": ("exact", "drop")},
    {"gradients": ("windowed", "dense"), "gradient_capacity": (None, 2)},
    {"recompute": ("off", 3), "streaming": ("off", "boundaries", "history", "inputs")},
    {"fused": (True, False)},
    {"packed": (True, False)},
)


def drawn(seed):
    """A network, the layout that its plan comes from, and the emitter's view of that plan."""
    random = np.random.default_rng(seed)
    pick = lambda choices: choices[int(random.integers(len(choices)))]  # noqa: E731
    graph = pick(NETS)(np.random.default_rng(3))
    trained = random.random() < 0.8
    several = len(lower(graph, steps=STEPS).outputs) > 1
    loss = {"loss": parse_loss(pick(LOSSES)), "optimizer": pick(OPTIMIZERS), "loss_output": "y" if several else None}
    loss["gradient_window"] = (-0.3, np.inf) if random.random() < 0.6 else None
    program = lower(graph, **(loss if trained else {}), steps=STEPS)
    options = {name: pick(choices) for group in OPTIONS if random.random() < 0.6 for name, choices in group.items()}
    return program, options, machine(int(pick((3, 16, 60)))), random.random() < 0.3


def with_bits(problem):
    """Keep bits of all spikes whose gradients do not come back in windows."""
    able = (source for source in problem.network.sources if source.kind == "spikes" and source not in problem.windowed)
    return [replace(problem, bits=frozenset(able))]


def kind_of(name):
    """`RelayBits` of the emitted class RelayBits3."""
    return re.sub(r"\d+$", "", name)


def planned_fields(layout):
    """Numbers of fields by kind of codelet, as the mapper counts them."""
    found = {}
    for use in uses(layout):
        found.setdefault("".join(word.capitalize() for word in use.vertex.name.split("_")), set()).add(len(use.vertex.fields))
    return found


def emitted_fields(net):
    """The same, of the vertices that the host adds."""
    found = {}
    for loop in (loop for loops in assemble(net)[0].loops.values() for loop in loops):
        found.setdefault(kind_of(loop.codelet), set()).add(len(loop.values))
    return found


def mapped(monkeypatch, program, target, **options):
    """The emitter's view of a plan, and the layout that the plan comes from."""
    layouts, plan_of = [], mapper.write_plan

    def watched(name, priced, *more, **named):
        layouts.append(priced.layout)
        return plan_of(name, priced, *more, **named)

    monkeypatch.setattr(mapper, "write_plan", watched)
    plan = mapper.make_plan(program, target, steps=STEPS, batch=BATCH, quick=True, **options)
    return PoplarNetwork(program, plan), layouts[-1]


def mapped_as_drawn(seed, monkeypatch):
    """The same of a drawn network."""
    program, options, target, bits = drawn(seed)
    if bits:
        monkeypatch.setattr(request_search, "with_bits", with_bits)
    return mapped(monkeypatch, program, target, **options)


def check_fields(net, layout):
    """Planned and emitted fields are equal, for every kind of vertex."""
    planned, emitted = planned_fields(layout), emitted_fields(net)
    if "SumPrivate" not in planned:  # the host adds none where each group is a single block
        emitted.pop("SumPrivate", None)
    assert planned == emitted


@pytest.mark.representative(
    *("choosing-*", "learnable-several", "spiking_recurrent-several", "tangled-several", "convolutional-several"),
    *("delayed-one_window", "sparse_recurrent-one_window"),
)
@pytest.mark.parametrize("options", [{}, {"capacity": 1, "gradients": "windowed", "gradient_capacity": 2}], ids=("one_window", "several"))
@pytest.mark.parametrize("graph", [*NETS, pooled], ids=lambda graph: getattr(graph, "__name__", "wide"))
def test_the_plan_counts_the_fields_of_the_emitted_vertices_of_every_network(graph, options, monkeypatch):
    made = graph(np.random.default_rng(3))
    several = len(lower(made, steps=STEPS).outputs) > 1
    loss = {"loss": parse_loss("ce_mean_membrane"), "optimizer": Adam(1e-2), "loss_output": "y" if several else None}
    check_fields(*mapped(monkeypatch, lower(made, **loss, steps=STEPS), machine(16), **options))


@pytest.mark.representative("18", "51")
@pytest.mark.parametrize("seed", sampled(range(60), 3))
def test_the_plan_counts_the_fields_of_drawn_networks(seed, monkeypatch):
    check_fields(*mapped_as_drawn(seed, monkeypatch))


def test_relays_that_keep_bits_and_show_nothing_at_once_are_emitted(monkeypatch):
    net, layout = mapped_as_drawn(0, monkeypatch)
    inner = [store for store in net.stores.values() if store.kind == "events" and store.bits and not store.external]
    assert any(all(bus.lag > 1 for bus in store.buses) for store in inner)
    assert planned_fields(layout)["RelayWindows"] == emitted_fields(net)["RelayWindows"]


SPEC = VertexSpec("two_words", (many("input", "float", "values", "some"), constant("count", "how many")), CodeletCost(start=1))


def test_the_host_connects_every_field_in_the_order_of_the_description():
    assert list(connected(SPEC, {"count": 3, "values": "x[b.index]"}).items()) == [("values", "x[b.index]"), ("count", "3")]
    assert [(cpp_type(f), connecting_function(f)) for f in SPEC.fields] == [
        ("Input<Vector<float, VectorLayout::ONE_PTR>>", "edge"),
        ("unsigned", "number"),
    ]


@pytest.mark.parametrize("values", [{"values": "x"}, {"values": "x", "count": 3, "more": 4}, {"values": "x", "number": 3}])
def test_a_field_without_an_expression_or_an_expression_without_a_field_is_an_error(values):
    with pytest.raises(ValueError, match=r"two_words are values, count; these lack an expression or a field: "):
        connected(SPEC, values)
