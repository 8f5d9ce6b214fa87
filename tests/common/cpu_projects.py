"""CPU projects for tests: emitted, built with little optimisation, and compared with the reference."""

import os
from contextlib import contextmanager

import numpy as np
import same_training
from nets import join, linear
from wide import examples

from snnc.backends.cpu.build import build_cpu
from snnc.backends.cpu.emit import emit_cpu
from snnc.backends.cpu.engine import CpuEngine
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.files.temporary import temporary_folder
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.neurons.library import LI, LIF

FLOAT32 = (1e-5, 1e-4, 2e-5, 1e-5)
"""Tolerances: of a loss, absolute; of a gradient, relative to its norm; of parameters, absolute and relative."""
LEVEL = os.environ.get("SNNC_TEST_LEVEL", "-O0")
"""Optimisation of the network's own sources, for many small networks; the sources that networks share are optimised as for users."""


@contextmanager
def opened(program, threads=2, memory=None, precision="float32"):
    """Emit `program`, build and open it."""
    with temporary_folder("snnc-cpu-") as above:
        folder = emit_cpu(program, above / "project", precision=precision)
        engine = CpuEngine(build_cpu(folder, level=LEVEL), folder, threads, memory)
        yield engine
        engine.close()


def data(program, steps=9, batch=5, seed=1, density=0.4):
    """Return inputs by id, and labels if there is a loss."""
    random = np.random.default_rng(seed)
    inputs = {}
    for info in program.inputs:
        x = (random.random((steps, batch, *info.shape)) < density).astype(np.float32)
        if info.kind == "values":
            x *= random.normal(size=x.shape).astype(np.float32)
        inputs[info.id] = np.broadcast_to(x[:1], x.shape).copy() if info.static else x
    classes = [o.shape[0] for o in program.outputs if o.id == program.loss_output]
    return inputs, random.integers(0, classes[0], batch) if classes else None


def parts_of(inputs, labels, *bounds):
    """Return the samples up to each bound, and those after the last, as inputs and labels."""
    ends = zip((0, *bounds), (*bounds, len(labels)), strict=True)
    return [({name: x[:, first:last] for name, x in inputs.items()}, labels[first:last]) for first, last in ends]


def assert_same_records(found, wanted):
    assert found.keys() == wanted.keys()
    for name, record in wanted.items():
        scale = max(1.0, float(np.abs(record).max()))
        np.testing.assert_allclose(found[name], record, atol=1e-5 * scale, rtol=1e-5, err_msg=name)


def assert_same_training(engine, program, updates=5, rate=1e-2, tolerance=FLOAT32, **options):
    batches = (data(program, seed=step, **options) for step in range(updates))
    same_training.assert_same_training(engine, ReferenceEngine(program), batches, rate, tolerance=tolerance)


def assert_runs_and_trains_like_the_reference(engine, program, tolerance=FLOAT32):
    for density in (0.4, 0.8):
        inputs, _ = data(program, density=density)
        found = engine.forward(inputs, {})
        assert_same_records(found, ReferenceEngine(program).forward(inputs, {}))
    assert any(record.any() for record in found.values())
    assert_same_training(engine, program, updates=examples(3, 5), tolerance=tolerance)


def assert_initial_values_are_forgotten(engine, program):
    """Initial values of one sequence of the hostile network change this sequence but not the next."""
    reference, (inputs, _) = ReferenceEngine(program), data(program)
    population = program.populations[0]
    v = np.random.default_rng(0).normal(size=(5, 8)).astype(np.float32)
    initial = {(population.id, "s0"): v, (population.id, population.output_buffers["v"]): v}
    changed = engine.forward(inputs, initial)
    assert_same_records(changed, reference.forward(inputs, initial))
    plain = engine.forward(inputs, {})
    assert_same_records(plain, reference.forward(inputs, {}))
    assert any((changed[name] != plain[name]).any() for name in plain)


def wide(random, readout, delay=0):
    """Return layers wide enough for lists of neurons near their thresholds, with a loop and a readout that reads two layers."""
    graph = Graph("wide")
    graph.add("x", Input((12,), "spikes"))
    for name, size in (("h0", 80), ("h1", 70)):
        graph.add(name, Population(LIF(0.9), (size,)))
    graph.add("readout", Population(readout, (4,)))
    for source, target, outputs, inputs, late in (
        ("x", "h0", 80, 12, 0),
        ("h0", "h1", 70, 80, 0),
        ("h0", "h0", 80, 80, 1),
        ("h1", "readout", 4, 70, 0),
        ("h0", "readout", 4, 80, delay),
    ):
        join(graph, f"{source} to {target}", linear(random, outputs, inputs, bias=True, gain=3), source, target, delay=late)
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def heavy(random):
    """Return layers connected by a large weight of more than a MiB."""
    graph = Graph("heavy")
    graph.add("x", Input((20,), "spikes"))
    for name, size in (("h0", 520), ("h1", 520)):
        graph.add(name, Population(LIF(0.9), (size,)))
    graph.add("readout", Population(LI(0.9), (4,)))
    for source, target, outputs, inputs in (("x", "h0", 520, 20), ("h0", "h1", 520, 520), ("h1", "readout", 4, 520)):
        join(graph, f"{source} to {target}", linear(random, outputs, inputs, gain=3), source, target)
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph
