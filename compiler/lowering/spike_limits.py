"""Limits on the spikes that a source sends in a step: which spikes are sent, and the limits as run-time values.

For each source of spikes (an input, or an output of a population), sample and step, at most K of its spikes are sent; the others are
dropped. Receivers, and the gradients of their weights, use only the sent spikes. The source itself, its reset and its records use all of
them. Gradients returned by receivers reach all neurons of the source, as if no spike had been dropped, with one exception. If the
surrogate of the source has bounded support (a gradient window), dense connections return a gradient to the neurons of sent spikes, and to
the neurons in the support that did not fire. Dropped spikes then receive none, as in the code published by Finkbeiner et al. 2023.

The policy chooses the sent spikes, in the same way on every target:

- ``"lowest"``: those with the lowest ids, as in the code of Finkbeiner et al.;
- ``"random"``: those with the lowest :func:`scores`, so that every spike of a step has the same probability of being sent. The scores
  depend on the step and on a *key*, a hash of the seed, the update and the source.

The limit and the key of each source are parameters of the program that training does not change and weight files do not contain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from snnc.compiler.ir.plan import Mode
from snnc.compiler.ir.step_operations import Fill, NeuronStep, Record
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.lowering.capacities import Capacities
from snnc.compiler.lowering.gradient_support import support_bounds

DropPolicy: TypeAlias = Literal["lowest", "random"]
POLICIES: Final = get_args(DropPolicy)
LOWEST: Final = -1.0
"""Key that selects the lowest ids."""
_CAPACITY: Final = "capacity"
_KEY: Final = "choice"
_KEY_BYTES: Final = 3
"""Number of bytes of a key; float32 represents all whole numbers of this size exactly."""


@dataclass(frozen=True)
class SpikeLimit:
    """Limit on spikes: each source sends at most `capacity` spikes in a step, which `policy` and `seed` choose."""

    capacity: int | Capacities
    policy: DropPolicy = "lowest"
    seed: int = 0

    def of(self, label: str, width: int) -> int | None:
        """Return the capacity of the source `label`; None: it sends all spikes."""
        return self.capacity.of(label, width) if isinstance(self.capacity, Capacities) else self.capacity


def limit_of(mode: Mode, capacity: int | Capacities | None, policy: DropPolicy, seed: int) -> SpikeLimit | None:
    """Return the limit requested by options of these names; None if no spikes are dropped."""
    return None if mode != "drop" or capacity is None else SpikeLimit(capacity, policy, seed)


@dataclass(frozen=True)
class LimitedSource:
    """Buffer of a limited source, and the names of its parameters: maximum number of spikes per step, and key of the choice."""

    buffer: str
    capacity: str
    key: str


def limit_values(limit: SpikeLimit, buffer: str, capacity: int) -> dict[str, float]:
    """Return the initial values of a source's limit parameters, by name."""
    return {f"{buffer}_{_CAPACITY}": float(capacity), f"{buffer}_{_KEY}": choice_key(limit, buffer, 0)}


def limited_sources(program: StepProgram) -> dict[str, LimitedSource]:
    """Return the sources of `program` whose spikes are limited, by buffer."""
    buffers = [name.removesuffix(f"_{_CAPACITY}") for name in program.parameters if name.endswith(f"_{_CAPACITY}")]
    return {b: LimitedSource(b, f"{b}_{_CAPACITY}", f"{b}_{_KEY}") for b in buffers}


def limits_of(program: StepProgram) -> dict[str, tuple[float, float]]:
    """Return the capacity and the key of each limited source, by buffer."""
    parameters = program.parameters
    return {buffer: (float(parameters[s.capacity].value), float(parameters[s.key].value)) for buffer, s in limited_sources(program).items()}


def without_limits(program: StepProgram) -> StepProgram:
    """Return `program` without the parameters of its limits, for tile machines, whose relays choose the spikes."""
    removed = {name for source in limited_sources(program).values() for name in (source.capacity, source.key)}
    parameters = {name: p for name, p in program.parameters.items() if name not in removed}
    return replace(program, parameters=parameters, buffers={name: b for name, b in program.buffers.items() if name not in removed})


def is_limit_value(name: str) -> bool:
    """Return whether a parameter, given by its name in the program, is a limit or key of a source."""
    return name.endswith((f"_{_CAPACITY}", f"_{_KEY}"))


def choice_key(limit: SpikeLimit, buffer: str, update: int) -> float:
    """Return the key of the choice during update number `update`."""
    if limit.policy == "lowest":
        return LOWEST
    digest = hashlib.blake2b(f"{limit.seed} {update} {buffer}".encode(), digest_size=_KEY_BYTES).digest()
    return float(int.from_bytes(digest, "little"))


def scores(key: int, step: int, ids: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """Return a score for each id, uniformly distributed over 32-bit unsigned integers; emitted programs compute the same scores.

    The factors are the first three primes of xxHash32.
    """
    of_step = _mixed(np.array([(key * 0x9E3779B1 + step * 0x85EBCA77) & 0xFFFFFFFF], np.uint32))
    return _mixed(of_step + ids.astype(np.uint32) * np.uint32(0xC2B2AE3D))


def _mixed(x: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Hash 32-bit unsigned integers with the finaliser of murmur3, a bijection with full avalanche."""
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return x ^ (x >> np.uint32(16))


def sent(spikes: npt.NDArray[Any], capacity: int, key: float, step: int) -> npt.NDArray[Any]:
    """Return `spikes` [B, n] of a step without the dropped spikes."""
    fired = spikes != 0
    if key == LOWEST:
        kept = np.cumsum(fired, axis=1) <= capacity
        return spikes * kept
    ids = np.arange(spikes.shape[1])
    order = np.lexsort((ids, scores(int(key), step, ids)))
    rank = np.empty(len(order), np.int64)
    rank[order] = ids
    result = np.zeros_like(spikes)
    for sample, row in enumerate(fired):
        spiking = np.flatnonzero(row)
        spiking = spiking[np.argsort(rank[spiking])[:capacity]]
        result[sample, spiking] = spikes[sample, spiking]
    return result


def without_returns(program: StepProgram) -> frozenset[str]:
    """Return the limited sources whose dropped spikes receive no gradient from dense connections."""
    limited = limited_sources(program)
    buffers = set()
    for op in program.forward:
        if isinstance(op, NeuronStep) and any(o in limited for o in op.outputs):
            info = program.population(op.population)
            outputs = zip(info.kernel.outputs, op.outputs, strict=True)
            buffers |= {b for canonical, b in outputs if b in limited and support_bounds(info, canonical) is not None}
    return frozenset(buffers)


def spike_sources(forward: tuple[Any, ...], kinds: Mapping[str, str]) -> list[str]:
    """Return the buffers of spikes that connections of a program with the operations `forward` read, in the order of their first reader."""
    reads = (op.source.buffer for op in forward if not isinstance(op, Fill | NeuronStep | Record))
    return list(dict.fromkeys(buffer for buffer in reads if kinds[buffer] == "spikes"))
