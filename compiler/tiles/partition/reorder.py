"""Reordering of populations with channels: results stay the same, and a correspondence restores the author's order.

Convolutions are stored as runs of consecutive values (:mod:`snnc.compiler.tiles.indexed`). If the channels of a position are adjacent, runs
are longer, a range of neurons is a region of the image, and its sources (its halo) are a few ranges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from snnc.compiler.ir.arrays.channel_order import ChannelOrder, Ints
from snnc.compiler.ir.graph import Array, Shape
from snnc.compiler.ir.step_operations import AddOneToOne, Convolve, DenseProduct, Fill, NeuronStep, Pooling
from snnc.compiler.ir.step_program import PopulationInfo, StepProgram
from snnc.compiler.tiles.partition.correspondence import Correspondence
from snnc.compiler.tiles.partition.split import ArrayPiece


def movable(program: StepProgram) -> dict[str, Shape]:
    """Return the shapes of the inputs and populations that can be reordered, by id.

    They must have convolutions or poolings, several channels, and several positions per channel. The population that the loss reads is
    excluded, and so are populations with one-to-one connections, which depend on neuron indices.
    """
    windowed = {op.connection for op in program.forward if isinstance(op, Convolve | Pooling)}
    one_to_one = {op.connection for op in program.forward if isinstance(op, AddOneToOne)}
    convolved, unmovable = set(), set()
    for connection in program.connections:
        ends = {connection.source, connection.target}
        convolved |= ends if connection.id in windowed else set()
        unmovable |= ends if connection.id in one_to_one else set()
    loss = next((o.source.buffer for o in program.outputs if o.id == program.loss_output), None)
    unmovable |= {p.id for p in program.populations if loss in _buffers(program, p)}
    shapes = {info.id: info.shape for info in program.inputs} | {info.id: info.shape for info in program.populations}
    return {id_: s for id_, s in shapes.items() if id_ in convolved - unmovable and len(s) > 1 and s[0] > 1 and math.prod(s[1:]) > 1}


def orders(program: StepProgram, grain: int) -> dict[str, ChannelOrder]:
    """Return an order for each movable input and population, in which the values of several channels at one position are adjacent.

    The number of these channels is the largest divisor of the number of all channels that is at most `grain`.
    """
    return {
        id_: ChannelOrder(shape[0], math.prod(shape[1:]), max(g for g in range(1, min(grain, shape[0]) + 1) if shape[0] % g == 0))
        for id_, shape in movable(program).items()
    }


def reorder(program: StepProgram, chosen: Mapping[str, ChannelOrder]) -> Correspondence:
    """Reorder the values of the inputs and populations in `chosen` (keys of :func:`movable`); return both programs as a correspondence."""
    owners = _owners(program)
    order_of = {buffer: chosen[owner] for buffer, owner in owners.items() if owner in chosen}
    places = _parameter_places(program, order_of, chosen)
    parameters = {
        name: replace(p, value=p.value.reshape(-1)[places[name]].reshape(p.value.shape)) if name in places else p
        for name, p in program.parameters.items()
    }
    reordered = replace(
        program,
        buffers={name: replace(buffer, order=order_of[name]) if name in order_of else buffer for name, buffer in program.buffers.items()},
        parameters=parameters,
        populations=tuple(_population(p, chosen.get(p.id)) for p in program.populations),
    )
    values = {id_: order.values() for id_, order in chosen.items()}
    sent = {c.source_buffer for c in program.connections} | {f"{i.id}_in" for i in program.inputs}
    return Correspondence(
        whole=program,
        program_of_parts=reordered,
        parameters={name: ArrayPiece(name, places.get(name)) for name in program.parameters},
        outputs={o.id: ArrayPiece(o.id, values.get(owners.get(o.source.buffer, ""))) for o in program.outputs},
        populations={p.id: ArrayPiece(p.id, values.get(p.id)) for p in program.populations},
        buffers={name: ArrayPiece(name, values.get(owner)) for name, owner in owners.items() if name in sent},
        inputs={info.id: values[info.id] for info in program.inputs if info.id in values},
    )


def _buffers(program: StepProgram, population: PopulationInfo) -> set[str]:
    step = next(op for op in program.forward if isinstance(op, NeuronStep) and op.population == population.id)
    return {*population.ports, *population.output_buffers.values(), *step.outputs, *step.states}


def _owners(program: StepProgram) -> dict[str, str]:
    owner_of = {f"{info.id}_in": info.id for info in program.inputs}
    for population in program.populations:
        owner_of.update(dict.fromkeys(_buffers(program, population), population.id))
    return owner_of


def _parameter_places(program: StepProgram, order_of: Mapping[str, ChannelOrder], chosen: Mapping[str, ChannelOrder]) -> dict[str, Ints]:
    """Return, for each reordered parameter, the index of each element in the author's array."""
    places: dict[str, Ints] = {}
    for op in program.forward:
        if isinstance(op, DenseProduct) and (op.source.buffer in order_of or op.target in order_of):
            rows, columns = program.parameters[op.weight].value.shape
            index = np.arange(rows * columns).reshape(rows, columns)
            index = index[order_of[op.target].values()] if op.target in order_of else index
            index = index[:, order_of[op.source.buffer].values()] if op.source.buffer in order_of else index
            places[op.weight] = index.reshape(-1)
        elif isinstance(op, Fill) and op.target in order_of:
            places.update(_orders_per_neuron(program, op.biases, order_of[op.target]))
        elif isinstance(op, NeuronStep) and op.population in chosen:
            places.update(_orders_per_neuron(program, op.parameters, chosen[op.population]))
    return places


def _orders_per_neuron(program: StepProgram, names: tuple[str, ...], order: ChannelOrder) -> dict[str, Ints]:
    return {name: order.values() for name in names if program.parameters[name].value.size == order.channels * order.positions}


def _population(info: PopulationInfo, order: ChannelOrder | None) -> PopulationInfo:
    def moved(value: Array) -> Array:
        return value if order is None or not np.ndim(value) else value.reshape(-1)[order.values()].reshape(value.shape)

    return replace(info, initial=tuple(map(moved, info.initial)))
