"""The numbers that a user wants stored as float16: weights, the past, deltas; and the rounding of updates of such weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from snnc.compiler.errors import HalfNumbersError
from snnc.compiler.losses.weight_rounding import Rounding

ROUNDINGS: Final[tuple[Rounding, ...]] = ("nearest", "stochastic", "master")
KINDS: Final = ("weights", "pasts", "deltas")


@dataclass(frozen=True)
class HalfNumbers:
    """Numbers stored as float16; sums, running states and gradients are float32.

    Attributes
    ----------
    weights
        How updates of weights are rounded: ``"nearest"``, ``"stochastic"`` (at random, without changing the mean) or ``"master"`` (to the
        nearest, with the remainder stored as float32). None: weights are float32.
    pasts
        States and values of all steps that the backward pass reads.
    deltas
        Values that sources read from their targets in the backward pass.
    """

    weights: Rounding | None = None
    pasts: bool = False
    deltas: bool = False

    def __post_init__(self) -> None:
        if self.weights is not None and self.weights not in ROUNDINGS:
            raise HalfNumbersError(f"weights of half is {self.weights!r}; it must be None or one of {', '.join(ROUNDINGS)}.")
        if not (self.weights or self.pasts or self.deltas):
            raise HalfNumbersError(f"half names no numbers; give some of {', '.join(KINDS)}, or leave it out.")


def parse_half(half: str | HalfNumbers | None) -> HalfNumbers | None:
    """Read the numbers to store as float16: ``"weights,pasts"``, ``"weights:stochastic"``.

    Raises
    ------
    HalfNumbersError
        A word is unknown or occurs twice.

    Examples
    --------
    >>> parse_half("weights:stochastic, pasts")
    HalfNumbers(weights='stochastic', pasts=True, deltas=False)
    """
    if half is None or isinstance(half, HalfNumbers):
        return half
    rounding: Rounding | None = None
    names: list[str] = []
    for word in half.replace(" ", "").split(","):
        name, colon, how = word.partition(":")
        if name in names or name not in KINDS or (colon and (name != "weights" or how not in ROUNDINGS)):
            raise HalfNumbersError(
                f"half is {half!r}, but {word!r} cannot be read; give some of {', '.join(KINDS)}, each once, separated by commas, and "
                f"after weights perhaps how their updates are rounded: weights:{', weights:'.join(ROUNDINGS)}."
            )
        names.append(name)
        if name == "weights":
            rounding = next((r for r in ROUNDINGS if r == how), "nearest")
    return HalfNumbers(rounding, "pasts" in names, "deltas" in names)


def half_text(half: HalfNumbers) -> str:
    """Undo :func:`parse_half`."""
    words = [f"weights:{half.weights}"] if half.weights else []
    return ",".join([*words, *(["pasts"] if half.pasts else []), *(["deltas"] if half.deltas else [])])
