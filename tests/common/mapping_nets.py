"""Hand-written StepPrograms for the tests of the mapping."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np

from snnc.compiler.ir.graph import FileLayout
from snnc.compiler.ir.step_operations import (
    BiasGradient,
    BufferValue,
    DenseInputGradient,
    DenseProduct,
    DenseWeightGradient,
    Fill,
    NeuronAdjoint,
    NeuronStep,
    OptimizerStep,
    Record,
    RecordAdjoint,
)
from snnc.compiler.ir.step_program import Buffer, ConnectionInfo, InputInfo, OutputInfo, Parameter, PopulationInfo, StepProgram
from snnc.compiler.losses import CrossEntropyMeanMembrane
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Target
from snnc.compiler.neurons.adjoint import derive_kernel
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.surrogates.library import parse_surrogate

LIF = neuron("LIF", states={"v": 0}, params={"beta": 0.9}, equations="v = beta*v*(1 - detach(spike(v - 1))) + i\ns = spike(v - 1)")
LI = neuron("LI", states={"v": 0}, params={"beta": 0.9}, equations="v = beta*v + i", output="v")


@dataclass(frozen=True)
class Wire:
    source: str
    target: str
    delay: int = 0


def program(
    widths: dict[str, int], wires: list[Wire], *, bias: bool = True, training: bool = True, input_kind: str = "spikes"
) -> StepProgram:
    """Return a dense network: names ``x…`` are inputs, ``p…`` LIF populations, except for the last, a recorded leaky integrator."""
    populations = [n for n in widths if n.startswith("p")]
    buffers: dict[str, Buffer] = {}
    forward, backward, update, infos, connections = [], [], [], [], []
    parameters: dict[str, Parameter] = {}

    def add(name: str, role: str, shape: tuple[int, ...], lifetime: str, kind: str = "values") -> str:
        buffers[name] = Buffer(name, role, shape, lifetime, kind)
        return name

    def learn(name: str, shape: tuple[int, ...]) -> str:
        parameters[name] = Parameter(name, name, np.zeros(shape, np.float32), True)
        add(name, "parameter", shape, "program")
        add(f"g_{name}", "gradient", shape, "program")
        update.append(OptimizerStep(name, f"g_{name}"))
        return name

    for name, width in widths.items():
        if name.startswith("x"):
            add(name, "input", (width,), "sequence", input_kind)
    inputs = tuple(InputInfo(n, n, (widths[n],), input_kind, FileLayout()) for n in widths if n.startswith("x"))
    for name in populations:
        last = name == populations[-1]
        model = LI if last else LIF
        kernel = derive_kernel(model, parse_surrogate("atan"))
        n = widths[name]
        current = add(f"{name}_i0", "current", (n,), "step")
        states = tuple(add(f"{name}_{s}", "state", (n,), "sequence") for s in kernel.states)
        out = states[0] if last else add(f"{name}_o0", "output", (n,), "sequence", "spikes")
        saved = tuple(add(f"{name}_{s}", "saved", (n,), "sequence") for s in kernel.saved)
        beta = add(f"{name}_a0", "parameter", (), "program")
        parameters[beta] = Parameter(beta, beta, np.float32(0.9), False)
        biases = (learn(f"{name}_b", (n,)),) if bias else ()
        forward.append(Fill(current, biases))
        for wire in wires:
            if wire.target != name:
                continue
            ident = f"c{len(connections)}"
            source = wire.source if wire.source.startswith("x") else f"{wire.source}_o0"
            weight = learn(f"{ident}_w", (n, widths[wire.source]))
            value = BufferValue(source, wire.delay)
            forward.append(DenseProduct(ident, value, weight, current))
            backward.append(DenseWeightGradient(ident, value, current, f"g_{weight}"))
            if not wire.source.startswith("x"):
                backward.append(DenseInputGradient(ident, value, weight, current))
            connections.append(
                ConnectionInfo(ident, ident, wire.source, source, name, 0, "dense", wire.delay, weight, biases[0] if biases else None, True)
            )
        backward.extend(BiasGradient(current, f"g_{b}") for b in biases)
        forward.append(NeuronStep(name, (current,), states, (beta,), (out,), saved))
        backward.append(NeuronAdjoint(name, (current,), states, (beta,), (out,), saved, ()))
        infos.append(
            PopulationInfo(name, f"layer {name}", (n,), model, kernel, parse_surrogate("atan"), (np.float32(0),), (current,), {"o": out})
        )
    record = add("y0_record", "record", (widths[populations[-1]],), "sequence")
    forward.append(Record("y0", BufferValue(out), record))
    backward.append(RecordAdjoint("y0", BufferValue(out), record))
    outputs = (OutputInfo("y0", "out", BufferValue(out), record, (widths[populations[-1]],), "all", FileLayout()),)
    return StepProgram(
        "hand",
        buffers,
        tuple(forward),
        tuple(reversed(backward)) if training else (),
        tuple(update) if training else (),
        inputs,
        tuple(infos),
        tuple(connections),
        outputs,
        parameters,
        CrossEntropyMeanMembrane() if training else None,
        "y0" if training else None,
        Adam() if training else None,
        None,
        {},
        (),
    )


def w1() -> StepProgram:
    """Return 700 -> 256 recurrent -> 20, without biases."""
    return program({"x0": 700, "p0": 256, "p1": 20}, [Wire("x0", "p0"), Wire("p0", "p0", 1), Wire("p0", "p1")], bias=False)


def test_hand_made_programs_are_complete() -> None:
    made = w1()
    assert math.prod(made.buffers["c0_w"].shape) == 700 * 256


def chain(*widths: int, **options: bool) -> StepProgram:
    """Return a chain of populations of these widths; the first is an input."""
    names = ["x0", *(f"p{n}" for n in range(len(widths) - 1))]
    return program(dict(zip(names, widths, strict=True)), [Wire(a, b) for a, b in itertools.pairwise(names)], **options)


def small(tiles: int, chips: int = 1, **changes: float) -> Target:
    """Return a GC200 with fewer tiles."""
    return replace(load_target("gc200"), name="small", tiles_per_chip=tiles, chips=chips, **changes)
