"""Equations of populations as code for a lane (a thread of a warp, for one neuron of one sample), forward and backward."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from snnc.backends.codegen.printing import Guarded, Statement, c_assignments
from snnc.compiler.ir.step_operations import NeuronAdjoint, NeuronStep
from snnc.compiler.ir.step_program import PopulationInfo, StepProgram
from snnc.compiler.neurons.single_assignment import reads


@dataclass(frozen=True)
class Body:
    """Statements for every lane (`lines`), and for lanes that have a neuron (`stores`): a population may fill only part of a warp."""

    lines: tuple[str, ...]
    stores: tuple[Statement, ...]


def forward_body(program: StepProgram, info: PopulationInfo, op: NeuronStep, half_histories: Mapping[str, str]) -> Body:
    """Return the statements of a step of `info`: they read the sums of the ports as currents, and store states and outputs.

    In the emitted code, ``s`` is the index of a sample in the warp's item (32 neurons of some samples); here, `s` is the name of a state.
    `half_histories` maps the buffer of each state that the backward pass reads to the buffer of its 16-bit history, and the buffer of each
    saved value to itself; it is empty if histories are float32.
    """
    kernel = info.kernel
    used = reads(kernel.forward, kernel.saved) | {
        f"{s}_prev" for s, buffer in zip(kernel.states, op.states, strict=True) if buffer in half_histories
    }
    places = {name: f"item.sum({port}, s)" for port, name in enumerate(kernel.inputs)}
    places |= {f"{s}_prev": f"net.{buffer}.row(t - 1, b)[n]" for s, buffer in zip(kernel.states, op.states, strict=True)}
    lines = [*_loads(places, used), *_parameters(program, kernel.parameters, op.parameters, used), *c_assignments(kernel.forward)]
    stores: list[Statement] = [_store(buffer, s) for s, buffer in zip(kernel.states, op.states, strict=True)]
    for s, buffer in zip(kernel.states, op.states, strict=True):
        if buffer in half_histories:
            stores += [Guarded("t == 0", _put(half_histories[buffer], f"{s}_prev", "-1")), _put(half_histories[buffer], s)]
    stores += [_put(buffer, k) if buffer in half_histories else _store(buffer, k) for k, buffer in zip(kernel.saved, op.saved, strict=True)]
    for name, buffer in zip(kernel.outputs, op.outputs, strict=True):
        if program.buffers[buffer].kind == "spikes":
            lines.append(f"net.{buffer}.store(t, b, item.neuron, item.lane, item.live && {name} != 0.0f);")
        else:
            stores.append(_store(buffer, name))
    return Body(tuple(lines), tuple(stores))


def backward_body(
    program: StepProgram, info: PopulationInfo, op: NeuronAdjoint, half_histories: Mapping[str, str], rounded: Collection[str]
) -> Body:
    """Return the statements of the adjoint of a step: they read the sums of the ports as adjoints of outputs, and sum gradients over time.

    `half_histories` is that of :func:`forward_body`; `rounded` are the currents whose deltas are stored in 16 bits.
    """
    kernel = info.kernel
    used = reads(kernel.backward, ())
    states = dict(zip(kernel.states, op.states, strict=True))
    places: dict[str, str] = {}
    for s in kernel.history:
        history = half_histories.get(states[s], states[s])
        places |= {f"{s}_prev": f"net.{history}.values(t - 1, b)[n]", s: f"net.{history}.values(t, b)[n]"}
    places |= {k: f"net.{buffer}.values(t, b)[n]" for k, buffer in zip(kernel.saved, op.saved, strict=True)}
    places |= {f"d_{o}": f"item.sum({port}, s)" for port, o in enumerate(kernel.outputs)}
    places |= {f"d_{s}": f"net.d_{buffer}.row(0, b)[n]" for s, buffer in states.items()}
    lines = [*_loads(places, used), *_parameters(program, kernel.parameters, op.parameters, used), *c_assignments(kernel.backward)]
    stores = [f"net.d_{buffer}.row(0, b)[n] = d_{s}_prev;" for s, buffer in states.items()]
    for i, buffer in zip(kernel.inputs, op.currents, strict=True):
        stores.append((_put if buffer in rounded else _store)(f"d_{buffer}", f"d_{i}"))
    stores += [f"net.{gradient}_sums.row(0, b)[n] += d_{a};" for a, gradient in zip(kernel.learnable, op.gradients, strict=True)]
    return Body(tuple(lines), tuple(stores))


def _store(buffer: str, value: str) -> str:
    return f"net.{buffer}.row(t, b)[n] = {value};"


def _put(buffer: str, value: str, step: str = "t") -> str:
    return f"net.{buffer}.put({step}, b, n, {value});"


def _loads(places: Mapping[str, str], used: set[str]) -> list[str]:
    return [f"const float {name} = {place};" for name, place in places.items() if name in used]


def _parameters(program: StepProgram, names: tuple[str, ...], buffers: tuple[str, ...], used: set[str]) -> list[str]:
    pairs = [(a, b, "n" if program.buffers[b].shape else "0") for a, b in zip(names, buffers, strict=True) if a in used]
    return [f"const float {a} = net.{b}[{index}];" for a, b, index in pairs]
