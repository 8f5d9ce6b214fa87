"""Rounding of updates of float16 weights: the definition, which the code of every target follows bit for bit.

The update is computed in float32 and then rounded to the nearest float16 number, or to one of the two adjacent numbers at random, with
probabilities that preserve the mean (stochastic rounding). The random number of a weight depends only on a counter (Salmon et al. 2011, DOI
10.1145/2063384.2063405): the seed, the parameter, the update and the position of the weight in the array, mixed by ``lowbias32``
(C. Wellons 2018, "Prospecting for hash functions", public domain), so the order of computation does not matter. An IPU has stochastic
rounding in hardware, but the state of its generator depends on the order of instructions, so no other target could reproduce its results.

Values beyond the largest float16 number become that number; NaN remains NaN.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from snnc.compiler.errors import HalfNumbersError

Rounding: TypeAlias = Literal["nearest", "stochastic", "master"]
"""Nearest; stochastic; or ``"master"``: nearest, with the remainder as float32, so that weight plus remainder is the float32 weight."""

LARGEST: Final = float(np.finfo(np.float16).max)
NORMAL: Final = float(np.finfo(np.float16).tiny)
"""Smallest number with all eleven significant bits; below it, float16 numbers are multiples of 2^-24."""
REMAINDER: Final = "remainder"
"""Name of the array with the remainders of rounding; stored with the moments of the optimiser."""

Words: TypeAlias = npt.NDArray[np.uint32]
Floats: TypeAlias = npt.NDArray[np.float32]


@dataclass(frozen=True)
class WeightRounding:
    """Rounding of updates of float16 weights; `seed` is the seed of the random numbers of stochastic rounding."""

    kind: Rounding = "nearest"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in get_args(Rounding):
            raise HalfNumbersError(f"the rounding of weights is {self.kind!r}; it must be nearest, stochastic or master.")


def mixed(numbers: Words) -> Words:
    """Return ``lowbias32`` of each number: an invertible function of 32 bits, in which every input bit affects every output bit."""
    x = numbers.copy()
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    x ^= x >> np.uint32(16)
    return x


def parameter_key(seed: int, parameter: int) -> int:
    """Return the key of a parameter for its index among the updated parameters.

    The factor 0x9E3779B9 is 2^32 divided by the golden ratio, so keys of consecutive indices differ in many bits.
    """
    return int(mixed(np.array([seed + 0x9E3779B9 * (parameter + 1) & 0xFFFFFFFF], dtype=np.uint32))[0])


def draws(key: int, update: int, count: int) -> Words:
    """Return the random numbers of the weights 0, 1, … of a parameter at an update, counted from 1."""
    of_update = mixed(np.array([key ^ (update & 0xFFFFFFFF)], dtype=np.uint32))
    return mixed(np.arange(count, dtype=np.uint32) ^ of_update)


def nearest(values: npt.ArrayLike) -> Floats:
    """Return the nearest float16 numbers, ties to even, as float32."""
    limited = np.clip(np.asarray(values, dtype=np.float32), np.float32(-LARGEST), np.float32(LARGEST))
    return limited.astype(np.float16).astype(np.float32)


def at_random(values: npt.ArrayLike, random: Words) -> Floats:
    """Return one of the two float16 numbers adjacent to each value, as float32; the nearer one is more likely.

    Thirteen random bits are added below the eleven remaining significant bits; for subnormal numbers, a random fraction of 2^-24.
    """
    x = np.clip(np.asarray(values, dtype=np.float32), np.float32(-LARGEST), np.float32(LARGEST))
    normal = ((x.view(np.uint32) + (random >> np.uint32(19))) & np.uint32(0xFFFFE000)).view(np.float32)
    small = np.where(np.abs(x) < np.float32(NORMAL), np.abs(x), np.float32(0)) * np.float32(2.0**24)
    fraction = (random >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    subnormal = (small + fraction).astype(np.int32).astype(np.float32) * np.float32(2.0**-24)
    return np.where(np.abs(x) < np.float32(NORMAL), np.copysign(subnormal, x), normal)
