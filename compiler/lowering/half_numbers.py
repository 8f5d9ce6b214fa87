"""User's choice of the numbers stored as float16 (weights, past and running states, deltas) and of the rounding of float16 weights.

:class:`HalfNumbers` is a choice for the whole network, and :class:`HalfLayers` has one for each layer. In text, semicolons separate
parts, and a part with a name applies to that layer: ``"weights,history; hidden=states; readout=float32"``. A name that
contains ``;``, ``=`` or ``:`` is written in quotes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from snnc.compiler.errors import HalfLayersError, HalfNumbersError
from snnc.compiler.losses.weight_rounding import Rounding
from snnc.compiler.lowering.named_parts import named_parts, quoted

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
        Whether running states are float16: every value assigned to a state is rounded, which can change spikes.
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


@dataclass(frozen=True)
class HalfLayers:
    """Numbers stored as float16, by layer."""

    default: HalfNumbers | None  # choice of all layers without their own; None: float32
    named: tuple[tuple[str, HalfNumbers | None], ...]
    """Choices of populations and of connections, by name; None: float32. The choice of a population also applies to the weights of its
    incoming connections, unless these have their own."""

    def __post_init__(self) -> None:
        roundings = sorted({one.weights for one in self._chosen if one.weights is not None})
        if len(roundings) > 1:
            raise HalfLayersError(
                f"half has weights:{' and weights:'.join(roundings)}, but all updates of a program are rounded in the same way; give the "
                "same rounding to all layers."
            )
        if not roundings and not (self.history or self.deltas or self.states):
            raise HalfNumbersError(f"half is empty: every layer is float32; give some of {', '.join(KINDS)}, or omit it.")

    @property
    def _chosen(self) -> Iterator[HalfNumbers]:
        return (one for one in (self.default, *dict(self.named).values()) if one is not None)

    @property
    def weights(self) -> Rounding | None:
        """Rounding of updates of float16 weights; None if no layer has any."""
        return next((one.weights for one in self._chosen if one.weights is not None), None)

    @property
    def history(self) -> bool:
        """Whether the history of some layer is float16."""
        return any(one.history for one in self._chosen)

    @property
    def deltas(self) -> bool:
        """Whether the deltas of some layer are float16."""
        return any(one.deltas for one in self._chosen)

    @property
    def states(self) -> bool:
        """Whether the states of some layer are float16."""
        return any(one.states for one in self._chosen)


HalfOption: TypeAlias = HalfNumbers | HalfLayers
HalfArgument: TypeAlias = str | HalfNumbers | HalfLayers | Mapping[str, str | HalfNumbers | None]
"""One choice, text, or choices by name of the layer; the name ``"*"`` means all other layers."""
OTHERS: Final = "*"
FLOAT32: Final = "float32"
"""Word for a layer without float16 numbers."""


def parse_half(half: HalfArgument | None) -> HalfOption | None:
    """Parse the numbers to store as float16: ``"weights,history"``, ``"weights:stochastic; readout=float32"``.

    A word that is unknown or occurs twice, or a text without float16 numbers, raises a HalfNumbersError; a layer with two choices or an
    empty name, or different roundings, raise a HalfLayersError.

    Examples
    --------
    >>> parse_half("weights:stochastic, history")
    HalfNumbers(weights='stochastic', history=True, deltas=False, states=False)
    >>> half_text(parse_half({"*": "weights", "hidden": "states,history", "readout": "float32"}))
    'weights:nearest; hidden=history,states; readout=float32'
    """
    if half is None or isinstance(half, HalfNumbers | HalfLayers):
        return half
    if isinstance(half, str) and not set(half) & set(";="):
        return _numbers(half, half)
    choices: dict[str, str | HalfNumbers | None] = {}
    for name, choice in half.items() if isinstance(half, Mapping) else _parts(half):
        if name in choices or not name:
            raise HalfLayersError(f"half {half!r} has {f'two choices for {name!r}' if name else 'an empty name'}; name each layer once.")
        choices[name] = choice
    named = tuple((name, _layer(choice, half)) for name, choice in choices.items() if name != OTHERS)
    default = _layer(choices.get(OTHERS), half)
    return default if default is not None and not named else HalfLayers(default, named)


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Yield (name of the layer, choice) for each part of a text; the name ``"*"`` means all other layers."""
    for quoted_name, part in named_parts(text):
        if quoted_name is not None:
            yield quoted_name, part.strip()
        else:
            name, equals, choice = part.rpartition("=")
            yield name.strip() if equals else OTHERS, choice.strip()


def _layer(choice: str | HalfNumbers | None, half: object) -> HalfNumbers | None:
    if not isinstance(choice, str):
        return choice
    return None if choice.strip() == FLOAT32 else _numbers(choice, half)


def _numbers(words: str, half: object) -> HalfNumbers:
    rounding: Rounding | None = None
    names: list[str] = []
    for word in words.replace(" ", "").split(","):
        name, colon, how = word.partition(":")
        if name in names or name not in KINDS or (colon and (name != "weights" or how not in ROUNDINGS)):
            raise HalfNumbersError(
                f"half is {half!r}, but {word!r} is invalid; give some of {', '.join(KINDS)}, each once, separated by commas, "
                f"weights optionally with the rounding of their updates: weights:{', weights:'.join(ROUNDINGS)}. Choices by layer: "
                "'weights; hidden=states; readout=float32'."
            )
        names.append(name)
        if name == "weights":
            rounding = next((r for r in ROUNDINGS if r == how), "nearest")
    return HalfNumbers(rounding, "history" in names, "deltas" in names, "states" in names)


def half_text(half: HalfOption) -> str:
    """Return the text from which :func:`parse_half` returns `half`."""
    if isinstance(half, HalfLayers):
        default = [] if half.default is None else [half_text(half.default)]
        return "; ".join([*default, *(f"{quoted(name)}={FLOAT32 if one is None else half_text(one)}" for name, one in half.named)])
    words = [f"weights:{half.weights}"] if half.weights else []
    return ",".join([*words, *(name for name in KINDS[1:] if getattr(half, name))])


def half_data(half: HalfOption) -> str | dict[str, str]:
    """Return `half` as JSON types, which :func:`parse_half` reads; names of layers may contain any characters."""
    if isinstance(half, HalfNumbers):
        return half_text(half)
    choices = {OTHERS: half.default, **dict(half.named)}
    return {name: FLOAT32 if one is None else half_text(one) for name, one in choices.items()}
