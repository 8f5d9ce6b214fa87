"""Masks of dropout layers, drawn for every sample of an update and passed to the network as initial values of a state.

Random numbers are counter-based (Salmon et al. 2011, DOI 10.1145/2063384.2063405): the finaliser of SplitMix64 (Steele et al. 2014, DOI
10.1145/2714064.2660195) hashes the position of each number. As the generator has no state, the masks are the same on every target, however
a batch is divided.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from snnc.backends.runtime.engine import Array, Initial
from snnc.compiler.ir.step_operations import NeuronStep
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.neurons.library.dropout import MASK, is_dropout

_GOLDEN: Final = 0x9E3779B97F4A7C15
"""Increment of SplitMix64."""
_MULTIPLIERS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
"""Shifts and factors of the finaliser of SplitMix64."""
_BITS: Final = 64


@dataclass(frozen=True)
class DropoutLayer:
    """A dropout layer: its number, the id of its population, the state that contains the mask, names of parameters, number of neurons."""

    number: int
    population: str
    state: str
    rate: str
    seed: str
    neurons: int


@dataclass(frozen=True)
class Masks:
    """Draws the masks of a program's dropout layers."""

    layers: tuple[DropoutLayer, ...] = ()

    def of(self, read: Callable[[str], Array], update: int, first: int, batch: int) -> Initial:
        """Return the masks of some samples of an update, as initial values of the states.

        `read` returns the value of a parameter in the engine. `update` counts from 0. The samples are `batch` samples of the batch of the
        update, from position `first` on.
        """
        masks = {}
        for layer in self.layers:
            rate, seed = np.asarray(read(layer.rate), np.float64).reshape(-1), int(np.asarray(read(layer.seed)).reshape(-1)[0])
            drawn = uniform((seed, layer.number, update), first, batch, layer.neurons)
            masks[layer.population, layer.state] = np.where(drawn < rate, 0, 1 / (1 - rate)).astype(np.float32)
        return masks


def masks_of(program: StepProgram) -> Masks:
    """Return the object that draws the masks of a program; dropout layers are numbered in the order of its populations."""
    steps = {op.population: op for op in program.forward if isinstance(op, NeuronStep)}
    layers: list[DropoutLayer] = []
    for info in program.populations:
        if is_dropout(info.model):
            kernel = info.kernel
            parameters = {kernel.labels[a]: name for a, name in zip(kernel.parameters, steps[info.id].parameters, strict=True)}
            (state,) = (s for s in kernel.states if kernel.labels[s] == MASK)
            layers.append(DropoutLayer(len(layers), info.id, state, parameters["rate"], parameters["seed"], math.prod(info.shape)))
    return Masks(tuple(layers))


def uniform(key: tuple[int, ...], first: int, rows: int, columns: int) -> npt.NDArray[np.float64]:
    """Return [rows, columns] numbers in [0, 1), as a function of `key`, the row (counted from `first`) and the column."""
    state = 0
    for part in key:
        state = int(_mixed(np.array([(state + _GOLDEN + part) % (1 << _BITS)], np.uint64))[0])
    row = _mixed(np.arange(first, first + rows, dtype=np.uint64) + np.uint64(state))
    drawn = _mixed(row[:, None] + np.arange(1, columns + 1, dtype=np.uint64) * np.uint64(_GOLDEN))
    return np.asarray((drawn >> np.uint64(11)) * 2.0**-53, np.float64)  # the upper 53 bits, which float64 represents exactly


def _mixed(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Apply the finaliser of SplitMix64 to each number."""
    for shift, factor in _MULTIPLIERS:
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray(values ^ (values >> np.uint64(31)))
