"""Convert a StepProgram to a :class:`~snnc.benchmarks.published.net.PublishedNet`, if the published program can run the network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from snnc.benchmarks.published.net import PublishedLayer, PublishedNet
from snnc.compiler.ir.step_program import ConnectionInfo, PopulationInfo, StepProgram
from snnc.compiler.neurons.forward_kernel import forward_kernel
from snnc.compiler.neurons.library import LIF
from snnc.compiler.tiles.errors import PublishedNetError, PublishedOptionError
from snnc.compiler.tiles.schedule.capacity import ASSUMED_ACTIVITY

CAPACITY: Final = 0.1
"""Default capacity of the spike tensor as a share of the neurons: the largest of the logged runs."""


def published_net_of(
    program: StepProgram,
    *,
    steps: int,
    batch: int,
    activity: Mapping[str, float] | None = None,
    capacity: Mapping[str, int] | None = None,
) -> PublishedNet:
    """Convert a program to the form that the published program runs.

    Parameters
    ----------
    program
        A chain of dense connections without bias, delay 0 or 1, between spiking populations of ``LIF(reset="zero")``. The
        published program always has a delay of one step between layers; its cost does not depend on this.
    steps, batch
        Number of time steps T, and of samples B.
    activity
        Spikes per value and step by StepProgram buffer; :data:`~snnc.compiler.tiles.schedule.capacity.ASSUMED_ACTIVITY` for others. The
        same number of neurons is assumed to receive a gradient. Both are limited to the capacity.
    capacity
        Capacity in ids per sample by buffer; :data:`CAPACITY` of the values (at least 2) for others.

    Raises
    ------
    PublishedNetError
        The network has another form; the message names the layer or connection.
    PublishedOptionError
        A number is out of range.
    """
    chain = _chain(program)
    sizes = [math.prod(program.buffers[c.source_buffer].shape) for c in chain]
    activity, capacity = activity or {}, capacity or {}
    sources = [*(c.source_buffer for c in chain), ""]
    sizes.append(math.prod(_population(program, chain[-1].target).shape))
    entries = []
    for buffer, size in zip(sources, sizes, strict=True):
        kept_spikes = capacity.get(buffer, min(size, max(2, 2 * int(CAPACITY * size / 2))))
        spikes = activity.get(buffer, ASSUMED_ACTIVITY)
        if not 0 <= spikes <= 1:
            raise PublishedOptionError(
                f"the activity of {buffer!r} is {spikes}; it is a number of spikes per value and step, between 0 and 1."
            )
        entries.append(PublishedLayer(size, kept_spikes, min(kept_spikes, spikes * size), min(kept_spikes, spikes * size)))
    source, layers = entries[0], tuple(entries[1:])
    optimizer = program.optimizer.name if program.optimizer else "sgd"
    return PublishedNet(program.name, source.neurons, source.capacity, source.spikes, layers, steps, batch, optimizer)


def _chain(program: StepProgram) -> tuple[ConnectionInfo, ...]:
    """Return the connections from the input to the readout, in order."""
    if len(program.inputs) != 1:
        raise PublishedNetError(f"{program.name!r} has {len(program.inputs)} inputs; the published program runs one.")
    found: list[ConnectionInfo] = []
    source = program.inputs[0].id
    while len(found) < len(program.populations):
        leaving = [c for c in program.connections if c.source == source]
        if len(leaving) != 1:
            where = found[-1].target if found else source
            raise PublishedNetError(
                f"{_label(program, where)!r} of {program.name!r} feeds {len(leaving)} connections; the published program runs a chain in "
                "which every layer feeds the next one and nothing else: no recurrence, no branches."
            )
        _check_connection(program, leaving[0])
        found.append(leaving[0])
        source = leaving[0].target
    if len(program.connections) != len(found):
        extra = next(c for c in program.connections if c not in found)
        raise PublishedNetError(
            f"{extra.label!r} of {program.name!r} is not part of a chain of layers, and the published program runs nothing else."
        )
    return tuple(found)


def _check_connection(program: StepProgram, connection: ConnectionInfo) -> None:
    what = f"{connection.label!r} of {program.name!r}"
    if connection.kind != "dense" or connection.delay > 1 or connection.bias is not None or not connection.event_driven:
        raise PublishedNetError(
            f"{what} is a {connection.kind} connection of delay {connection.delay} that carries "
            f"{'spikes' if connection.event_driven else 'values'}, {'without' if connection.bias is None else 'with'} a bias; "
            "the published program runs dense ones without bias that carry spikes, with a delay of one step (0 is read as 1)."
        )
    target = _population(program, connection.target)
    if forward_kernel(target.model).forward != forward_kernel(LIF(reset="zero")).forward:
        raise PublishedNetError(
            f"{target.label!r} of {program.name!r} has neurons {target.model.name!r}; the published program runs "
            "LIF(reset='zero') in every layer, the readout among them."
        )


def _population(program: StepProgram, name: str) -> PopulationInfo:
    return next(p for p in program.populations if p.id == name)


def _label(program: StepProgram, name: str) -> str:
    return ({i.id: i.label for i in program.inputs} | {p.id: p.label for p in program.populations})[name]
