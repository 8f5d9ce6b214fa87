"""Predicted seconds of a recurrent core: the kernel that runs all steps of a population with one recurrence.

The model is that of ``recurrent_choice.hpp``, which selects a shape of ``recurrent_shapes.cuh``. Its constants are fitted to steps measured
on an H100, with 256 neurons in clusters of 2, 4 and 8 blocks; beyond that, predictions are extrapolations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

_SHARED = 232448
"""Bytes of shared memory that blocks of a multiprocessor can use (227 KiB on an H100)."""
CLOCK: Final = 1.66e9
"""Cycles per second that the model assumes."""
COUNT: Final = 1840
"""Cycles of a barrier over blocks by a counter in memory, with three barriers within the block."""
MEMORY_BYTES: Final = 30
"""Bytes per cycle that a multiprocessor reads if blocks exchange data through memory."""
BARRIER: Final = 60
"""Cycles of a barrier within a block."""
ARRIVAL: Final = 270
"""Cycles until words from another block of the cluster arrive."""
BYTE: Final = 0.028
"""Cycles per byte that a block receives from its cluster."""
NEURONS: Final[Mapping[bool, tuple[int, int]]] = {False: (110, 155), True: (130, 235)}
"""Cycles of the equations in a step, forward (False) and backward (True): a constant, and cycles per 32 values of a warp."""
START: Final = 1.5e-6
"""Seconds to start the kernel."""
WEIGHT: Final = 2.6e-10
"""Seconds in which a block loads a weight."""
PROCESSORS: Final = 132
"""Number of multiprocessors of an H100. Shapes and slices are always chosen for this device, so that sums are the same on all devices."""
_MAX_REGISTERS: Final = 64
"""Number of registers of a thread that weights can use."""
_FRAGMENT: Final = 16 * 16 * 8
"""Multiplications of a fragment with a group of 8 samples."""
_PER_CYCLE: Final = 1213
"""Multiplications on tensor cores per cycle and multiprocessor."""
MAX_NEURONS = 2048
"""Maximum number of neurons whose weights fit on a GPU, in teams that communicate through memory."""


@dataclass(frozen=True)
class CoreShape:
    """Thread blocks that run a core for some samples."""

    blocks: int
    groups: int
    """Number of groups of 8 samples, which are multiplied on tensor cores; 0: a single sample, multiplied in float32."""
    warps: int
    """Number of warps in a block."""
    over_memory: bool = False
    """Whether blocks exchange data through global memory instead of the shared memory of a CUDA cluster."""


def core_seconds(neurons: int, batch: int, steps: int, *, back: bool, parts: int) -> float:
    """Return the predicted seconds of a core with its fastest shape, forward or `back`; a weight is split into `parts` 16-bit parts."""
    return min(shape_seconds(shape, neurons, batch, steps, back=back, parts=parts) for shape in _shapes(neurons, parts))


def core_processors(neurons: int, batch: int, steps: int, *, back: bool, parts: int) -> int:
    """Return the number of multiprocessors that the fastest shape occupies; see :func:`core_seconds`."""
    shape = min(_shapes(neurons, parts), key=lambda shape: shape_seconds(shape, neurons, batch, steps, back=back, parts=parts))
    return shape.blocks * min(math.ceil(batch / (8 * shape.groups or 1)), _at_once(shape.blocks))


def _shapes(neurons: int, parts: int) -> Iterator[CoreShape]:
    spike_words = math.ceil(neurons / 32)  # one bit per neuron
    if spike_words <= 4:
        if parts > 1:
            yield CoreShape(1, 0, 8)
        yield CoreShape(1, 1, 8 if spike_words <= 2 else 16)
    elif spike_words <= 8:
        yield from (CoreShape(8, 1, 8), CoreShape(1, 1, 16))
    elif spike_words <= 16:
        yield CoreShape(8, 1, 16)
    elif spike_words <= 32:
        yield from (CoreShape(16, 1, 16), CoreShape(16, 2, 16))
    else:
        yield CoreShape(spike_words, 1, 16, over_memory=True)


@dataclass(frozen=True)
class _BlockWork:
    inputs: int
    """Number of inputs of a neuron, with padding."""
    products: float
    """Cycles of the multiplications."""
    shared_words: float
    """Number of words of shared memory that are read and written."""
    shared_bytes: float
    """Bytes of shared memory that are allocated."""
    latency: int
    """Cycles that do not depend on the number of products."""


def shape_seconds(shape: CoreShape, neurons: int, batch: int, steps: int, *, back: bool, parts: int) -> float:
    """Return the predicted seconds of a core with a given shape; see :func:`core_seconds`.

    The code calls the blocks that process the same samples a *cluster*, even if they are not a CUDA cluster and exchange data through
    global memory. If not all clusters of a batch fit on the device, they run in several rounds.
    """
    chunks, samples = _chunks(shape, neurons), 8 * shape.groups or 1
    block = _on_tensor_cores(shape, neurons, back, parts) if shape.groups else _in_float32(shape, neurons, back)
    sent = shape.blocks * chunks * samples * ((16 * parts if shape.groups else 32) * 4 if back else 4)
    exchange = COUNT + sent / MEMORY_BYTES if shape.over_memory else BARRIER if shape.blocks == 1 else ARRIVAL + BYTE * sent
    clusters = math.ceil(batch / samples)
    # Blocks that a multiprocessor can run at once, and clusters that run at once with one block on each multiprocessor.
    fitting = max(1, min(512 // (32 * shape.warps), int(_SHARED / (block.shared_bytes + 1024))))
    fitting, at_once = (1, max(1, PROCESSORS // shape.blocks)) if shape.over_memory else (fitting, _at_once(shape.blocks))
    rounds = math.ceil(clusters / (at_once * fitting))
    resident = min(fitting, math.ceil(min(clusters, at_once * fitting) / at_once))  # blocks that share a multiprocessor
    work = max(block.products, block.shared_words / 32) * resident
    constant, per_values = NEURONS[back]
    equations = constant + per_values * math.ceil(chunks * samples / shape.warps) + (0 if shape.groups else 60)
    cycles = exchange + block.latency + equations + work
    return START + rounds * (32 * chunks * block.inputs * WEIGHT + steps * cycles / CLOCK)


def _chunks(shape: CoreShape, neurons: int) -> int:
    """Return the number of groups of 32 neurons in a block."""
    return math.ceil(math.ceil(neurons / 32) / shape.blocks)


def _on_tensor_cores(shape: CoreShape, neurons: int, back: bool, parts: int) -> _BlockWork:
    """Return the work of a block that multiplies fragments (16 neurons by 16 inputs) on tensor cores."""
    warps, samples, spike_words = shape.warps, 8 * shape.groups, math.ceil(neurons / 32)
    block_neurons = 32 * _chunks(shape, neurons)
    groups = _tile_groups(block_neurons, spike_words, warps, back, parts)
    fragments = block_neurons // 16 // groups * math.ceil(spike_words / (warps // groups)) * 2
    # Weights are in registers; if these do not suffice for both parts, the low parts are in shared memory.
    low_in_shared = parts == 2 and fragments * 8 > _MAX_REGISTERS
    multiplied = 1 if parts == 1 else 3 if back else 2
    products = multiplied * fragments * warps * shape.groups * _FRAGMENT / _PER_CYCLE * (1.16 if back else 1)
    read = _traffic(groups, spike_words, warps, block_neurons, back, parts) * samples + (fragments * warps * 128 if low_in_shared else 0)
    shared = read * 2 + (fragments * warps * 512 if low_in_shared else 0)
    return _BlockWork(32 * spike_words, products, read, shared, 140 if back else 95)


def _in_float32(shape: CoreShape, neurons: int, back: bool) -> _BlockWork:
    """Return the work of a block that multiplies in float32 for one sample; each warp processes a part of the inputs."""
    warps, chunks = shape.warps, _chunks(shape, neurons)
    inputs = math.ceil(math.ceil(neurons / warps) / 4) * 4 * warps
    products = chunks * inputs * 32 / 128  # 128 multiplications per cycle
    return _BlockWork(inputs, products, 2.0 * warps * 32 * chunks, 4.0 * warps * 32 * chunks, 120 if back else 30)


def _traffic(groups: int, spike_words: int, warps: int, block_neurons: int, back: bool, parts: int) -> int:
    """Return the number of words of shared memory that a block reads and writes per sample if its warps form `groups` groups."""
    return groups * spike_words * (16 * parts if back else 8) + 2 * (warps // groups) * block_neurons


def _tile_groups(block_neurons: int, spike_words: int, warps: int, back: bool, parts: int) -> int:
    """Return the number of groups of warps with the least traffic; each group multiplies a part of the block's neurons."""

    def traffic(groups: int) -> int:
        return _traffic(groups, spike_words, warps, block_neurons, back, parts)

    best, groups = 1, 1
    while groups <= warps and block_neurons // 16 % groups == 0:
        if warps // best > spike_words or traffic(groups) <= traffic(best):
            best = groups
        groups *= 2
    return best


def _at_once(blocks: int) -> int:
    """Return the number of clusters that run at once on an H100."""
    return {1: 132, 2: 66, 4: 30, 8: 15}.get(blocks, 7)
