"""The user's choice of numbers stored as float16: weights, past and running states, deltas; and the rounding of updates of such weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from snnc.compiler.errors import HalfNumbersError
from snnc.compiler.losses.weight_rounding import Rounding

ROUNDINGS: Final[tuple[Rounding, ...]] = ("nearest", "stochastic", "master")
KINDS: Final = ("weights", "history", "deltas", "states")


@dataclass(frozen=True)
class HalfNumbers:
    """Numbers stored as float16; sums, gradients of weights and all other numbers are float32.

    Attributes
    ----------
    weights
        Rounding of updates of weights: ``"nearest"``, ``"stochastic"`` (random, preserving the mean) or ``"master"`` (to the
        nearest, with the remainder stored as float32). None: weights are float32.
    history
        Whether states and values of all steps that the backward pass reads are float16.
    deltas
        Whether values that sources read from their targets in the backward pass are float16.
    states
        Whether running states are float16: every value assigned to a state is rounded, which changes spikes.
    """

    weights: Rounding | None = None
    history: bool = False
    deltas: bool = False
    states: bool = False

    def __post_init__(self) -> None:
        if self.weights is not None and self.weights not in ROUNDINGS:
            raise HalfNumbersError(f"weights of half is {self.weights!r}; it must be None or one of {', '.join(ROUNDINGS)}.")
        if not (self.weights or self.history or self.deltas or self.states):
            raise HalfNumbersError(f"half is empty; give some of {', '.join(KINDS)}, or omit it.")


def parse_half(half: str | HalfNumbers | None) -> HalfNumbers | None:
    """Parse the numbers to store as float16: ``"weights,history"``, ``"weights:stochastic"``.

    Raises
    ------
    HalfNumbersError
        A word is unknown or occurs twice.

    Examples
    --------
    >>> parse_half("weights:stochastic, history")
    HalfNumbers(weights='stochastic', history=True, deltas=False, states=False)
    """
    if half is None or isinstance(half, HalfNumbers):
        return half
    rounding: Rounding | None = None
    names: list[str] = []
    for word in half.replace(" ", "").split(","):
        name, colon, how = word.partition(":")
        if name in names or name not in KINDS or (colon and (name != "weights" or how not in ROUNDINGS)):
            raise HalfNumbersError(
                f"half is {half!r}, but {word!r} is invalid; give some of {', '.join(KINDS)}, each once, separated by commas, "
                f"weights optionally with the rounding of their updates: weights:{', weights:'.join(ROUNDINGS)}."
            )
        names.append(name)
        if name == "weights":
            rounding = next((r for r in ROUNDINGS if r == how), "nearest")
    return HalfNumbers(rounding, "history" in names, "deltas" in names, "states" in names)


def half_text(half: HalfNumbers) -> str:
    """Return the text from which :func:`parse_half` returns `half`."""
    words = [f"weights:{half.weights}"] if half.weights else []
    return ",".join([*words, *(name for name in KINDS[1:] if getattr(half, name))])
