"""Losses: ``loss=snnc.losses.CrossEntropy("count", classes=10) + 0.1 * snnc.losses.L2("hidden")``.

A loss compares a statistic of the outputs over time with targets; a regulariser is a loss without targets. Losses can be scaled and
added: add regularisers of hidden populations, or other losses of the same targets. `targets` and `lengths` define the targets that
``fit`` accepts:

===================  ==============================================================  ===========================
``targets``          targets of B samples of T steps, for n outputs                  ignored
===================  ==============================================================  ===========================
``"class"``          [B] class indices; with `lengths` [B, 2]: class, length
``"step_classes"``   [B, T] class indices                                            steps of class -1
``"values"``         [B, n] numbers; with `lengths` [B, n + 1]: the length is last   NaN
``"step_values"``    [B, T, n] numbers                                               NaN
===================  ==============================================================  ===========================

With `lengths`, steps beyond a sequence's length are ignored. With `classes`, the outputs are groups of neurons of equal size, one
per class in order, and each group is summed at every step. The loss of a batch is the mean over its samples, whatever their lengths.
"""

from __future__ import annotations

from snnc.compiler.losses.base import LossPort
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.named_terms import compared_term, regulariser
from snnc.compiler.losses.term import Inverse, Statistic, TargetKind, Term

__all__ = ["L1", "L2", "Composed", "CrossEntropy", "Equation", "Lower", "SquaredError", "Term", "Upper"]


def CrossEntropy(  # noqa: N802
    of: str = "count", *, classes: int | None = None, targets: TargetKind = "class", lengths: bool = False, inverse: Inverse = "negate"
) -> Composed:
    """Softmax cross entropy between classes and scores.

    Parameters
    ----------
    of
        ``"count"`` of spikes, ``"rate"`` (at every step, like snnTorch's ``ce_rate_loss``), ``"mean membrane"``, ``"max membrane"``,
        ``"last membrane"``, ``"membrane"`` (at every step) or ``"first spike"`` (snnTorch's ``ce_temporal_loss``).
    classes, targets, lengths
        See the module's docstring.
    inverse
        Score of a first spike at step t: ``-t`` (``"negate"``), or ``1/(t + 1)`` (``"reciprocal"``).

    Raises
    ------
    UnknownLossError
        The statistic is unknown or does not fit the other arguments.
    """
    return Composed((compared_term("ce", of, inverse=inverse),), classes, targets, lengths)


def SquaredError(  # noqa: N802
    of: str = "count",
    *,
    on: float | None = None,
    off: float | None = None,
    classes: int | None = None,
    targets: TargetKind = "class",
    lengths: bool = False,
) -> Composed:
    """Mean squared error between a statistic of the outputs and targets.

    Parameters
    ----------
    of
        As for :func:`CrossEntropy`; ``"rate"`` is the mean of the spikes. Squared errors of counts are divided by the number of steps, and
        those of first spikes by the square of this number, as in snnTorch's ``mse_count_loss`` and ``mse_temporal_loss``.
    on, off
        For class targets: the target values of the correct class (default 1) and of the others (default 0). For counts, they are shares of
        the steps; for first spikes, steps (defaults 0 and -1, the last step).
    classes, targets, lengths
        See the module's docstring.

    Raises
    ------
    UnknownLossError
        The statistic is unknown or does not fit the other arguments.
    """
    values = {name: value for name, value in (("on", on), ("off", off)) if value is not None}
    return Composed((compared_term("mse", of, **values),), classes, targets, lengths)


def Equation(  # noqa: N802
    text: str,
    *,
    statistic: Statistic = "mean",
    port: LossPort = "membrane",
    population: str | None = None,
    on: float = 1.0,
    off: float = 0.0,
    classes: int | None = None,
    targets: TargetKind = "class",
    lengths: bool = False,
) -> Composed:
    """A custom loss, given as an equation in ``x``, the statistic of an output, and ``y``, its target.

    The equation is in the language of neuron equations and is differentiated symbolically. Without ``y`` it is a regulariser.

    Parameters
    ----------
    text
        For example ``"log(1 + exp(-(2*y - 1)*x))"``, or ``"where(gt(abs(x - y), 1), abs(x - y) - 0.5, 0.5*(x - y)**2)"``.
    statistic
        ``"count"``, ``"mean"``, ``"max"``, ``"last"``, ``"first_spike"``, or ``"steps"`` for a loss at every step.
    port
        ``"spikes"`` or ``"membrane"``: whether ``x`` is computed from spikes or from membrane potentials.
    population
        The population, or ``"population.port"``, that ``x`` is computed from; None for the output that the loss reads.
    on, off
        For class targets: ``y`` of the correct class, and of the others.
    classes, targets, lengths
        See the module's docstring.

    Raises
    ------
    UnknownLossError
        The equation is invalid, or does not fit the targets.

    Examples
    --------
    >>> Equation("abs(x - y)", statistic="last", targets="values").terms[0].reads_targets
    True
    """
    return Composed((Term(statistic, text, port, 1.0, population, on, off),), classes, targets, lengths)


def L1(population: str | None = None, of: str = "rate") -> Composed:  # noqa: N802
    """Mean of a population's rates (``"rate"``), or of the magnitudes of its membrane potentials at every step (``"membrane"``)."""
    return Composed((regulariser(f"l1_{of}", population),))


def L2(population: str | None = None, of: str = "rate") -> Composed:  # noqa: N802
    """Mean of the squares of a population's rates, or of its membrane potentials at every step."""
    return Composed((regulariser(f"l2_{of}", population),))


def Upper(bound: float, population: str | None = None, of: str = "rate") -> Composed:  # noqa: N802
    """Mean squared excess of rates, or membrane potentials, over a bound."""
    return Composed((regulariser(f"upper_{of}", population, bound),))


def Lower(bound: float, population: str | None = None, of: str = "rate") -> Composed:  # noqa: N802
    """Mean squared shortfall of rates, or membrane potentials, below a bound."""
    return Composed((regulariser(f"lower_{of}", population, bound),))
