"""Gradients truncated every K steps: the reference compared with PyTorch's detach, the CPU with the reference."""

import numpy as np
import pytest
from cpu_projects import assert_same_training, data, opened
from nets import delayed, feedback, join, linear
from poplar_projects import machine

import snnc
from snnc.backends.cpu.collapse import collapsed
from snnc.backends.native.storage import SequenceStorage
from snnc.backends.poplar.emit import emit_poplar
from snnc.backends.poplar.errors import UnsupportedOnPoplarError
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.neurons.surrogates.library import parse_surrogate
from snnc.compiler.tiles.mapper import make_plan
from snnc.errors import OptionValueError

STEPS, BATCH = 11, 4
WEIGHTS = (("x", "hidden", 8, 5, 0), ("hidden", "hidden", 8, 8, 1), ("hidden", "readout", 3, 8, 0))


def recurrent(random):
    graph = Graph("recurrent")
    graph.add("x", Input((5,), "spikes"))
    graph.add("hidden", Population(LIF(0.9), (8,)))
    graph.add("readout", Population(LI(0.8), (3,)))
    for source, target, outputs, inputs, delay in WEIGHTS:
        join(graph, f"{source} {target}", linear(random, outputs, inputs, gain=3), source, target, delay=delay)
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def by_torch(program, x, labels, every):
    """Loss and gradients by label, of the network written down again."""
    torch = pytest.importorskip("torch")

    from torch_spikes import fast_sigmoid_spike

    spike = fast_sigmoid_spike()
    weights = {
        p.label: torch.tensor(p.value.astype(np.float64), requires_grad=True) for p in program.parameters.values() if p.value.ndim == 2
    }
    into, loop, out = (weights[f"{source} {target}.weight"] for source, target, *_ in WEIGHTS)
    x = torch.tensor(x, dtype=torch.float64)
    v, s, m = torch.zeros(BATCH, 8), torch.zeros(BATCH, 8), torch.zeros(BATCH, 3)
    v, s, m = v.double(), s.double(), m.double()
    keep, late = float(np.float32(0.9)), float(np.float32(0.8))
    shown = []
    for t in range(STEPS):
        if every and t % every == 0:
            v, s, m = v.detach(), s.detach(), m.detach()
        v = keep * v - s.detach() + x[t] @ into.T + s @ loop.T
        s = spike(v - 1)
        m = late * m + s @ out.T
        shown.append(m)
    loss = torch.nn.functional.cross_entropy(torch.stack(shown).mean(0), torch.tensor(labels))
    loss.backward()
    return loss.item(), {label: w.grad.numpy() for label, w in weights.items()}


def program_of(make, every, loss="ce_mean_membrane"):
    options = {"optimizer": SGD(1e-2), "surrogate": parse_surrogate("fast_sigmoid:25"), "loss_output": "y", "truncate": every}
    return lower(make(np.random.default_rng(3)), loss=parse_loss(loss), **options)


def test_the_reference_cuts_where_detach_does():
    found = {}
    for every in (None, 1, 3, STEPS + 1):
        program = program_of(recurrent, every)
        inputs, labels = data(program, STEPS, BATCH)
        loss, gradients = ReferenceEngine(program, np.float64).loss_and_gradients(inputs, labels)
        wanted = by_torch(program, inputs[program.inputs[0].id].astype(np.float64), labels, every)
        assert loss == pytest.approx(wanted[0], rel=1e-6)
        found[every] = {p.label: gradients[name] for name, p in program.parameters.items() if p.label in wanted[1]}
        for label, gradient in wanted[1].items():
            np.testing.assert_allclose(found[every][label], gradient, atol=1e-6 * np.abs(gradient).max(), err_msg=f"{label}, {every}")
    label = "hidden hidden.weight"
    assert np.array_equal(found[None][label], found[STEPS + 1][label])
    assert not np.allclose(found[None][label], found[3][label], rtol=1e-2)


@pytest.mark.representative("delayed-2")
@pytest.mark.parametrize(("make", "every"), [(recurrent, 3), (delayed, 2), (feedback, 4)])
def test_the_processor_cuts_where_the_reference_does(make, every):
    program = program_of(make, every)
    assert collapsed(SequenceStorage(program)) is None
    with opened(program) as engine:
        assert_same_training(engine, program, updates=2, steps=STEPS, batch=BATCH)
        inputs, labels = data(program, STEPS, BATCH)
        whole = engine.train_batch(inputs, labels, 0.0), engine.gradients()
        engine.segment = 5
        assert engine.train_batch(inputs, labels, 0.0) == whole[0]
        for name, gradient in engine.gradients().items():
            np.testing.assert_allclose(gradient, whole[1][name], atol=1e-6 * np.abs(whole[1][name]).max())


def test_the_option_reaches_the_program_and_other_targets_refuse_it():
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    with snnc.compile(net, "reference", loss="ce_mean_membrane", truncate=5) as session:
        assert session.program.truncate == 5
    for target in ("gc200", "poptorch"):
        with pytest.raises(OptionValueError, match="truncate"):
            snnc.compile(net, target, loss="ce_mean_membrane", truncate=5)
    with pytest.raises(OptionValueError, match="1 or more"):
        snnc.compile(net, "cpu", loss="ce_mean_membrane", truncate=0)


def test_programs_that_cannot_cut_gradients_are_not_emitted(tmp_path):
    program = lower(recurrent(np.random.default_rng(3)), loss=parse_loss("ce_count"), optimizer=SGD(1e-2), steps=STEPS, truncate=4)
    with pytest.raises(UnsupportedOnPoplarError, match="truncates gradients after 4 steps"):
        emit_poplar(program, make_plan(program, machine(20), steps=STEPS, batch=BATCH), tmp_path / "poplar")
    assert not list(tmp_path.iterdir())
