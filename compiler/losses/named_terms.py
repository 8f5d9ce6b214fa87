"""Terms by name, as on the command line and in Python: cross entropies, squared errors, and regularisers of populations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from snnc.compiler.errors import UnknownLossError
from snnc.compiler.losses.base import LossPort
from snnc.compiler.losses.term import SQUARED_ERROR, Statistic, Term

COMPARED: Final[Mapping[str, tuple[Statistic, LossPort]]] = {
    "count": ("count", "spikes"),
    "rate": ("mean", "spikes"),
    "mean_membrane": ("mean", "membrane"),
    "max_membrane": ("max", "membrane"),
    "last_membrane": ("last", "membrane"),
    "first_spike": ("first_spike", "spikes"),
    "spikes": ("steps", "spikes"),
    "membrane": ("steps", "membrane"),
}
"""Statistic and port by name, for cross entropies and squared errors; ``spikes`` and ``membrane`` are the values of every step."""
REGULARISERS: Final[Mapping[str, str]] = {
    "l1": "abs(x)",
    "l2": "x * x",
    "upper": "where(gt(x, {0}), (x - {0}) * (x - {0}), 0)",
    "lower": "where(gt({0}, x), ({0} - x) * ({0} - x), 0)",
}
"""Equations of regularisers by the first part of their name; ``{0}`` is a bound."""
REGULARISED: Final[Mapping[str, tuple[Statistic, LossPort]]] = {"rate": ("mean", "spikes"), "membrane": ("steps", "membrane")}
"""Statistic and port that a regulariser reads, by the second part of its name."""
_SYNONYMS: Final[Mapping[str, str]] = {
    "spike_count": "count",
    "spike_rate": "rate",
    "mean": "mean_membrane",
    "max": "max_membrane",
    "last": "last_membrane",
}


def key_of(text: str) -> str:
    """Return the key of a statistic or a loss for its name: ``"Mean membrane"`` becomes ``mean_membrane``."""
    return "_".join(text.lower().replace("-", " ").split())


def compared_term(criterion: str, of: str, **more: Any) -> Term:
    """Return a term of a cross entropy (``"ce"``) or a squared error (``"mse"``) of the statistic called `of`.

    `of` is a name in :data:`COMPARED` or a synonym; any other name raises an UnknownLossError. A cross entropy of the ``rate`` applies to
    every step, as in snnTorch's ``ce_rate_loss``; a squared error applies to the mean. For first spikes, the default targets of a squared
    error are snnTorch's: step 0 for the right class, the last step for all others. `more` are further fields of the term, such as
    ``weight``.
    """
    name = key_of(of)
    name = _SYNONYMS.get(name, name)
    if name not in COMPARED:
        raise UnknownLossError(f"the statistic {of!r} of a loss is unknown; use one of {', '.join(COMPARED)}.")
    statistic, port = COMPARED["spikes" if (criterion, name) == ("ce", "rate") else name]
    if criterion == "mse":
        more = {"criterion": SQUARED_ERROR} | ({"on": 0.0, "off": -1.0} if statistic == "first_spike" else {}) | more
    return Term(statistic, **{"port": port} | more)


def regulariser(name: str, of: str | None = None, bound: float | None = None, weight: float = 1.0) -> Term:
    """Return a regulariser by name, such as ``l1_rate``, of the population `of`: of its rates (means of spikes) or membrane potentials.

    Raises an UnknownLossError if the regulariser is unknown, or a bound is missing or has no effect.
    """
    kind, _, read = name.partition("_")
    if kind not in REGULARISERS or read not in REGULARISED:
        known = ", ".join(f"{kind}_{read}" for kind in REGULARISERS for read in REGULARISED)
        raise UnknownLossError(
            f"the regulariser {name!r} is unknown; use one of {known}. Regularisers of weights are settings of the optimiser: l1, "
            "weight_decay and bound, for all parameters or a group."
        )
    # Rates are not negative, so they need no absolute value; without it, the derivative is 1 for silent neurons too.
    equation = "x" if name == "l1_rate" else REGULARISERS[kind]
    if (bound is not None) != ("{0}" in equation):
        raise UnknownLossError(f"the regulariser {name!r} {'needs a bound' if bound is None else 'has no bound'}.")
    statistic, port = REGULARISED[read]
    text = equation if bound is None else equation.format(f"({float(bound)!r})" if bound < 0 else repr(float(bound)))
    return Term(statistic, text, port, weight, of)
