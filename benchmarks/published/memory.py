"""Predicted bytes on the fullest tile of each layer of the published program, by category.

The program (``poplar_code_stateBasedReset.cpp``, commit 2b0fe90) allocates all tensors with 32-bit elements. They are live for the whole
training step, except the exchange buffers, of which only the largest is counted.
"""

from __future__ import annotations

from collections.abc import Iterable

from snnc.benchmarks.published.backward import FIRST_STAGE, groups
from snnc.benchmarks.published.forward import FLAGS
from snnc.benchmarks.published.layout import ceil_div, linear_share, slice_share
from snnc.benchmarks.published.machine import Machine, Superstep
from snnc.benchmarks.published.net import PRIVATE_COPIES
from snnc.compiler.ir.arrays.sizes import FLOAT

STATES = 4
"""Number of values per neuron and sample: initial and current membrane potential, its gradient, and a scaled copy of the gradient."""
PARAMETERS = 4
"""Number of values per neuron that all samples share: the decay, one minus the decay, and two thresholds."""
CODELETS = 6144
"""Bytes of codelets on a tile: assumed, as in a similar program."""
ID_COPIES = 2
"""Number of copies of the ids and counts of all steps: as integers and as floats."""


def memory_by_layer(machine: Machine, supersteps: Iterable[Superstep]) -> tuple[dict[str, int], ...]:
    """Return, for each layer, the bytes by category of a tile that takes part in the largest exchanges of `supersteps`.

    The code of a tile grows with the fragments that it exchanges. The surrogate runs on the first tiles of a chip, and the largest group
    of the first stage (a sum of input gradients) on its last tiles, so a tile has the code of only one of the two: the larger is counted.
    """
    known = tuple(supersteps)
    surrogate = sum(step.pieces for step in known if step.category == "gather and scatter of U and dU")
    sums = sum(step.pieces for step in known if step.name == FIRST_STAGE)
    pieces = int(sum(step.pieces for step in known) - min(surrogate, sums))
    return tuple(_of_layer(machine, i, pieces) for i in range(len(machine.net.layers)))


def _of_layer(machine: Machine, i: int, pieces: int) -> dict[str, int]:
    net, target = machine.net, machine.target
    neurons, capacity = machine.per_tile(i), machine.incoming(i)[0]
    weights = FLOAT * net.widths[i] * neurons
    read = FLOAT * net.batch * (capacity + FLAGS)
    return {
        "weights": weights,
        "optimiser": net.moments * weights,
        "gradients": (PRIVATE_COPIES + 1) * weights,
        "history": FLOAT * net.steps * net.batch * neurons,
        "states": FLOAT * neurons * (STATES * net.batch + PARAMETERS + FLAGS * net.batch),
        "spikes": _spikes(machine, i),
        "replicated ids": read + (FLOAT * net.batch * capacity if i else 0),
        "exchange": _buffer(machine, i),
        "code": target.fixed_tile_bytes + CODELETS + target.fragment_code_bytes * pieces,
    }


def _spikes(machine: Machine, i: int) -> int:
    """Return a tile's share of the ids and counts of all steps, in bytes; they are distributed over all tiles of the chip."""
    net, tiles, chip = machine.net, machine.tiles, machine.layout.ranges[i].chip
    sizes = [net.batch * net.layers[j].capacity for j in machine.layout.layers_of(chip)]
    sizes += [net.batch * net.input_capacity] * (chip == 0)
    return int(ID_COPIES * FLOAT * net.steps * sum(slice_share(n, tiles) + slice_share(FLAGS * net.batch, tiles) for n in sizes))


def _buffer(machine: Machine, i: int) -> int:
    """Return the bytes of the largest receive buffer of a tile: ids, flags, what the surrogate reads, or partial sums."""
    net, layer, spread = machine.net, machine.net.layers[i], machine.layout.spread[i]
    compactions = machine.layout.max_compactions[machine.layout.ranges[i].chip]
    sums = 0
    if i:
        left = net.batch * machine.incoming(i)[0]
        number, largest = groups(net.batch, machine.layout.ranges[i].tiles)
        sums = largest * ceil_div(number * left, machine.tiles) + linear_share(left, machine.tiles)
    gathered = 3 * layer.neurons if machine.options.surrogate == "one tile" else 2 * net.batch * layer.capacity
    return FLOAT * max(net.batch * (machine.incoming(i)[0] + 1), compactions * ceil_div(layer.neurons, spread), gathered, sums)
