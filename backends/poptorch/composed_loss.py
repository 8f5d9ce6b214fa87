"""Template data for the PyTorch module of a composed loss, and the description of its targets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from snnc.backends.native.composed_loss import length_divisor
from snnc.backends.poplar.parts import Body
from snnc.backends.runtime.targets import target_shape
from snnc.compiler.losses.composed import Composed
from snnc.compiler.losses.term import Term
from snnc.compiler.neurons.expression import Call, Expression, to_text

_UNARY: Final = ("exp", "log", "sqrt", "sign", "tanh", "sigmoid", "erf", "sin", "cos")
"""Functions of one argument that PyTorch has by the same name."""
HELPERS: Final[Mapping[str, str]] = {
    **{name: f"def {name}(a):\n    return torch.{name}(torch.as_tensor(a, dtype=torch.float32))" for name in _UNARY},
    "min": "def min(a, b):\n    return torch.minimum(*_both(a, b))",
    "max": "def max(a, b):\n    return torch.maximum(*_both(a, b))",
    "gt": "def gt(a, b):\n    a, b = _both(a, b)\n    return (a > b).to(torch.float32)",
    "ge": "def ge(a, b):\n    a, b = _both(a, b)\n    return (a >= b).to(torch.float32)",
    "spike": "def spike(a):\n    return (torch.as_tensor(a) > 0).to(torch.float32)",
    "spike_ge": "def spike_ge(a):\n    return (torch.as_tensor(a) >= 0).to(torch.float32)",
    "detach": "def detach(a):\n    return torch.as_tensor(a, dtype=torch.float32).detach()",
    "where": "def where(a, b, c):\n    b, c = _both(b, c)\n    return torch.where(torch.as_tensor(a) != 0, b, c)",
}
"""Python definitions of functions of the equation language; they accept numbers and tensors."""
_OF_TWO: Final = ("min", "max", "gt", "ge", "where")
"""Functions whose definitions call ``_both``, which converts two arguments to tensors."""


def composed_context(loss: Composed, steps: int) -> Body:
    """Return the template data of a lowered loss for sequences of `steps` steps."""
    used = list(dict.fromkeys(name for term in loss.terms if not term.softmax for name in _called(term.equations[0].value)))
    return {
        "steps": steps,
        "kind": loss.targets,
        "lengths": loss.lengths,
        "helpers": [HELPERS[name] for name in used if name in HELPERS],
        "pairs": any(name in _OF_TWO for name in used),
        "main": loss.terms.index(loss.main),
        "terms": [_term(loss, term, *bounds, steps) for term, bounds in zip(loss.terms, loss.slices, strict=True)],
    }


def targets_description(loss: Composed, steps: int) -> dict[str, Any]:
    """Return the description of the targets in ``network.json``.

    It contains their kind, shape per sample, number of classes (0 for values), and whether the length of each sample is given.
    """
    of_classes = loss.targets in ("class", "step_classes")
    shape = list(target_shape(loss, loss.width(0), steps))
    return {"kind": loss.targets, "shape": shape, "classes": loss.width(0) if of_classes else 0, "lengths": loss.lengths}


def _called(expression: Expression) -> Iterator[str]:
    if isinstance(expression, Call):
        yield expression.function
        for argument in expression.args:
            yield from _called(argument)


def _term(loss: Composed, term: Term, first: int, stop: int, steps: int) -> Body:
    of_values = loss.targets in ("values", "step_values")
    on, off = (repr(float(number)) for number in (term.on, term.off))
    if term.squares_counts and not of_values:
        lengths = range(steps + 1) if loss.lengths else (steps,)
        tables = [[float(int(n * number * loss.group)) for n in lengths] for number in (term.on, term.off)]
        on, off = (f"torch.tensor({table})[index]" if loss.lengths else repr(table[0]) for table in tables)
    return {
        "first": first,
        "stop": stop,
        "weight": repr(float(term.weight)),
        "statistic": term.statistic,
        "steps": term.statistic == "steps",
        "softmax": term.softmax,
        "inverse": term.inverse == "reciprocal",
        "compares": term.reads_targets and not term.softmax,
        "tables": term.squares_counts and loss.lengths and not of_values,
        "on": on,
        "off": off,
        "scale": length_divisor(term),
        "equation": "" if term.softmax else to_text(term.equations[0].value),
    }
