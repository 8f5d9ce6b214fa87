"""The contents of a step program."""

import dataclasses

import numpy as np
import pytest

from snnc.compiler.errors import InvalidValueError, LossOutputError, NothingToLearnError, ShapeMismatchError
from snnc.compiler.ir.graph import Concat, FileLayout, Graph, Input, Linear, OneToOne, Output, Population, StateRef
from snnc.compiler.ir.step_operations import AddOneToOne as OneToOneOp
from snnc.compiler.ir.step_operations import (
    BufferValue,
    DenseInputGradient,
    DenseWeightGradient,
    Fill,
    NeuronAdjoint,
    NeuronStep,
    Record,
    RecordAdjoint,
)
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF, CubaLIF


def weight(outputs, inputs):
    return Linear(np.ones((outputs, inputs), np.float32), np.zeros(outputs, np.float32))


def net(hidden=None, readout=None, rec=True):
    """Written back to front, so that order is found and not taken over."""
    graph = Graph("net", steps=9)
    graph.add("y", Output())
    graph.add("readout", Population(readout or LIF(0.8), (2,)))
    graph.add("hidden", Population(hidden or LIF(0.9), (3,)))
    graph.add("x", Input((4,), "spikes", FileLayout(1, 0)))
    for name, operation, source, target, delay in (
        ("fc2", weight(2, 3), "hidden", "readout", 0),
        ("rec", weight(3, 3), "hidden", "hidden", 1),
        ("fc1", weight(3, 4), "x", "hidden", 0),
    ):
        if rec or name != "rec":
            graph.add(name, operation)
            graph.connect(source, name, delay=delay)
            graph.connect(name, target)
    graph.connect("readout", "y")
    return graph


def of(kind, operations):
    return [op for op in operations if isinstance(op, kind)]


COUNT = parse_loss("ce_count")


def test_populations_stand_in_an_order_that_runs():
    program = lower(net())
    assert [(p.id, p.label) for p in program.populations] == [("p0", "hidden"), ("p1", "readout")]
    done = {f"{i.id}_in" for i in program.inputs}
    for op in program.forward:
        source = getattr(op, "source", None)
        assert source is None or source.delay or source.buffer in done
        if isinstance(op, NeuronStep):
            done |= set(op.outputs)


def test_every_current_is_filled_before_it_is_added_to():
    filled = set()
    for op in lower(net()).forward:
        if isinstance(op, Fill):
            filled.add(op.target)
        elif not isinstance(op, NeuronStep | Record):
            assert op.target in filled


def test_ids_are_canonical_and_labels_the_authors():
    program = lower(net())
    assert [(c.id, c.label, c.source, c.target, c.delay, c.event_driven) for c in program.connections] == [
        ("c0", "rec", "p0", "p0", 1, True),
        ("c1", "fc1", "x0", "p0", 0, True),
        ("c2", "fc2", "p0", "p1", 0, True),
    ]
    labels = {p.label for p in program.parameters.values()}
    assert {"fc1.weight", "fc1.bias", "rec.weight", "hidden.beta", "readout.threshold"} <= labels
    assert program.inputs[0].layout == FileLayout(1, 0)
    assert program.steps == 9
    assert lower(net(), steps=5).steps == 5


def test_every_buffer_that_an_operation_names_exists():
    program = lower(net(), loss=COUNT, optimizer=Adam())
    for op in (*program.forward, *program.backward, *program.update):
        for field in dataclasses.fields(op):
            value = getattr(op, field.name)
            names = [value.buffer] if isinstance(value, BufferValue) else value if isinstance(value, tuple) else [value]
            if field.name not in ("connection", "population", "output", "offset", "half"):
                assert all(name is None or name in program.buffers for name in names), op


def test_without_a_loss_nothing_is_kept_for_training():
    program = lower(net(CubaLIF()))
    assert program.backward == program.update == ()
    assert all(not p.kernel.history and not p.kernel.saved and not p.kernel.backward for p in program.populations)
    assert not [b for b in program.buffers.values() if b.role in ("adjoint", "gradient", "saved")]


def test_without_an_optimizer_there_is_no_update():
    program = lower(net(), loss=COUNT)
    assert program.backward
    assert not program.update


def test_equal_models_share_a_kernel():
    one, other = lower(net(), loss=COUNT).populations
    assert one.kernel is other.kernel
    assert one.model != other.model


def test_other_learnables_make_another_kernel():
    graph = net()
    graph.nx.nodes["hidden"]["operation"] = Population(LIF(0.9), (3,), learnable=frozenset({"beta"}))
    one, other = lower(graph, loss=COUNT).populations
    assert one.kernel is not other.kernel
    assert [one.kernel.labels[a] for a in one.kernel.learnable] == ["beta"]


def test_inputs_of_the_network_get_no_gradient():
    program = lower(net(), loss=COUNT)
    assert "d_x0_in" not in program.buffers
    assert {op.source.buffer for op in of(DenseInputGradient, program.backward)} == {"p0_o0"}
    assert len(of(DenseWeightGradient, program.backward)) == 3


def test_populations_in_front_of_which_nothing_learns_get_no_gradient():
    graph = net()
    for name in ("fc1", "rec"):
        graph.nx.nodes[name]["operation"] = dataclasses.replace(graph.operation(name), learnable=False)
    program = lower(graph, loss=COUNT, optimizer=Adam())
    assert [op.population for op in of(NeuronAdjoint, program.backward)] == ["p1"]
    assert not of(DenseInputGradient, program.backward)
    assert [program.parameters[op.parameter].label for op in program.update] == ["fc2.bias", "fc2.weight"]


def test_what_does_not_lead_to_the_loss_is_not_trained():
    program = lower(net(), loss=COUNT, optimizer=Adam(), loss_output="hidden")
    assert {program.parameters[op.parameter].label.split(".")[0] for op in program.update} == {"fc1", "rec"}


def test_recurrent_weights_can_be_left_alone():
    program = lower(net(), loss=COUNT, optimizer=Adam(), train_recurrent=False)
    assert {program.parameters[op.parameter].label.split(".")[0] for op in program.update} == {"fc1", "fc2"}
    assert of(DenseInputGradient, program.backward)


def test_nothing_to_learn_is_refused():
    graph = net(rec=False)
    for name in ("fc1", "fc2"):
        graph.nx.nodes[name]["operation"] = dataclasses.replace(graph.operation(name), learnable=False)
    with pytest.raises(NothingToLearnError, match=r"'readout'.*learnable"):
        lower(graph, loss=COUNT)


# ---- which output the loss reads -------------------------------------------------------------------------------------


def chosen(graph, loss, wanted=None):
    program = lower(graph, loss=parse_loss(loss), loss_output=wanted)
    (info,) = [o for o in program.outputs if o.id == program.loss_output]
    (adjoint,) = of(RecordAdjoint, program.backward)
    assert adjoint.output == info.id
    population = program.population(info.source.buffer.split("_")[0])
    port = next(port for port, buffer in population.output_buffers.items() if buffer == info.source.buffer)
    return info.label, f"{population.label}.{port}"


def with_membrane():
    graph = net()
    graph.add("mem", Output())
    graph.connect("readout", "mem", source_port="v")
    return graph


@pytest.mark.parametrize(
    ("graph", "loss", "wanted", "label", "port"),
    [
        (net(), "ce_count", None, "y", "readout.s"),
        (net(), "mean membrane", None, "readout.v", "readout.v"),
        (net(readout=LI(0.9)), "mean membrane", None, "y", "readout.v"),
        (net(readout=LI(0.9)), "ce_count", None, "y", "readout.v"),
        (with_membrane(), "ce_rate", None, "y", "readout.s"),
        (with_membrane(), "max membrane", None, "mem", "readout.v"),
        (net(readout=CubaLIF()), "max membrane", None, "readout.v", "readout.v"),
        (net(), "ce_count", "hidden", "hidden.s", "hidden.s"),
        (net(), "ce_count", "hidden.v", "hidden.v", "hidden.v"),
        (net(), "mean membrane", "y", "y", "readout.s"),
    ],
)
def test_a_loss_reads_the_output_that_fits(graph, loss, wanted, label, port):
    before = graph.names
    assert chosen(graph, loss, wanted) == (label, port)
    assert graph.names == before


@pytest.mark.parametrize("wanted", ["nobody", "hidden.nothing", "fc1"])
def test_an_unknown_loss_output_is_refused(wanted):
    with pytest.raises(LossOutputError, match=f"{wanted}.*'y'"):
        lower(net(), loss=COUNT, loss_output=wanted)


def test_an_unclear_loss_output_is_refused():
    graph = Graph()
    graph.add("x", Input((4,)))
    for name in ("y", "z"):
        graph.connect("x", graph.add(name, Output()))
    with pytest.raises(LossOutputError, match="'y', 'z'"):
        lower(graph, loss=COUNT)


def test_a_population_without_spikes_is_refused_for_a_loss_of_spikes():
    with pytest.raises(LossOutputError, match=r"spikes; give 'readout\.port'"):
        lower(net(readout=LI(0.9)), loss=COUNT, loss_output="readout")


# ---- the rest --------------------------------------------------------------------------------------------------------


def test_explicit_states_become_canonical():
    graph = net()
    graph.state_inputs = {"v": StateRef("hidden", "v"), "s": StateRef("hidden", "s")}
    assert lower(graph).state_inputs == {"v": StateRef("p0", "s0"), "s": StateRef("p0", "s")}


def test_a_concatenation_becomes_one_to_one_connections_with_offsets():
    graph = Graph()
    graph.add("x", Input((4,), "spikes"))
    graph.add("z", Input((3,), "spikes"))
    graph.add("both", Concat())
    graph.add("fc", weight(2, 7))
    graph.add("n", Population(LIF(0.9), (2,)))
    graph.add("y", Output())
    for source, target in (("x", "both"), ("z", "both"), ("both", "fc"), ("fc", "n"), ("n", "y")):
        graph.connect(source, target)
    program = lower(graph)
    assert [(op.source.buffer, op.offset) for op in of(OneToOneOp, program.forward)] == [("x0_in", 0), ("x1_in", 4)]
    assert program.connections[-1].event_driven, "a relay of spikes gives spikes"


def test_arrays_of_neurons_become_vectors():
    graph = Graph()
    graph.add("x", Input((2, 3)))
    graph.add("gain", OneToOne(np.arange(6, dtype=np.float32).reshape(2, 3)))
    graph.add("n", Population(LIF(0.9), (2, 3), {"beta": np.full((2, 3), 0.5)}, initial={"v": np.ones((2, 3))}))
    graph.add("y", Output())
    for source, target in (("x", "gain"), ("gain", "n"), ("n", "y")):
        graph.connect(source, target)
    program = lower(graph)
    assert {b.shape for b in program.buffers.values()} == {(6,), ()}
    assert {p.label: p.value.shape for p in program.parameters.values()}["gain.weight"] == (6,)
    assert program.outputs[0].shape == program.populations[0].shape == (2, 3)
    assert all(p.value.dtype == np.float32 for p in program.parameters.values())


def test_a_graph_at_fault_is_refused():
    graph = net()
    graph.nx.nodes["fc1"]["operation"] = weight(3, 5)
    with pytest.raises(ShapeMismatchError):
        lower(graph)
    with pytest.raises(InvalidValueError, match="steps is 0"):
        lower(net(), steps=0)
