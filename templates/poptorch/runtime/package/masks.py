"""Masks of dropout layers, the same as those of snnc's other targets."""

import torch

from .description import NETWORK

MASKS = NETWORK["masks"]
"""Dropout layers: name of the mask, layer, number of neurons, and the buffers with the rate and the seed."""
BITS = 64
GOLDEN = 0x9E3779B97F4A7C15
MULTIPLIERS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def drawn(network, update, samples, iterations=1, first=0):
    """Return the masks of a call of the model: for each dropout layer a tensor [iterations * samples, neurons].

    `network` is the SpikingNetwork, `update` the number of the first weight update of the call, from 0. A call has `iterations` updates
    with `samples` samples each; `first` is the position of the first of these in the batch of an update, which processes may share.
    """
    masks = []
    for about in MASKS:
        rate = getattr(network, about["rate"]).to(torch.float64).reshape(-1)
        seed = int(getattr(network, about["seed"]).reshape(-1)[0])
        parts = [uniform((seed, about["number"], update + n), first, samples, about["neurons"]) for n in range(iterations)]
        numbers = torch.cat(parts)
        masks.append(torch.where(numbers < rate, torch.zeros_like(numbers), 1 / (1 - rate)).to(torch.float32))
    return masks


def uniform(key, first, rows, columns):
    """Return [rows, columns] numbers in [0, 1), as a function of `key`, the row (counted from `first`) and the column."""
    state = torch.zeros(1, dtype=torch.int64)
    for part in key:
        state = mixed(state + signed(GOLDEN + part))
    row = mixed(torch.arange(first, first + rows, dtype=torch.int64) + state)
    numbers = mixed(row[:, None] + torch.arange(1, columns + 1, dtype=torch.int64) * signed(GOLDEN))
    return shifted(numbers, 11).to(torch.float64) * 2.0**-53


def mixed(values):
    """Apply the finaliser of SplitMix64 to 64-bit integers; sums and products wrap."""
    for shift, factor in MULTIPLIERS:
        values = (values ^ shifted(values, shift)) * signed(factor)
    return values ^ shifted(values, 31)


def shifted(values, bits):
    """Shift 64-bit integers to the right, as if they had no sign."""
    return (values >> bits) & ((1 << (BITS - bits)) - 1)


def signed(number):
    """Return the signed integer with the same lowest 64 bits."""
    number %= 1 << BITS
    return number - (1 << BITS) if number >> (BITS - 1) else number
