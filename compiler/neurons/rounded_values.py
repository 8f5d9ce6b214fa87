"""Selection of the values that are stored for the backward pass in 16 bits, and of the offsets subtracted from them before rounding.

Values that the forward pass itself rounds to float16 are stored exactly. Any other value is rounded only if this cannot change a decision
of the backward pass, that is, the result of a comparison (except with a bound of the surrogate's support). A state that is compared with a
threshold is therefore stored as its distance from the threshold: rounding preserves the sign of the distance, so the backward pass sees the
spikes of the forward pass. (In float16, rounding preserves the sign for thresholds above 0.5; for others, distances up to 2^-25
become 0.) The surrogate, which is steepest at the threshold, reads a distance with a relative error of at most 1 in 2^8 (bfloat16) or 2^11
(float16; more for distances below 2^-14). A value that determines a decision in any other way stays float32.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from snnc.compiler.neurons.expression import ROUND, Call, Expression, Number, Symbol, symbols
from snnc.compiler.neurons.kernel import Kernel

_SPIKES: Final = frozenset({"spike", "spike_ge", "sign"})  # functions whose result depends only on the sign of their argument
_COMPARISONS: Final = frozenset({"gt", "ge"})
_EXACT, _SIGNED, _ROUNDED = range(3)
"""Effects of rounding on a value: none; changed, but with the same sign; changed."""


class _DecidesError(Exception):
    """Rounding may change a decision."""


def float16_values(kernel: Kernel) -> dict[str, Expression]:
    """Return the names of `kernel.history` and `kernel.saved` that the forward code rounds to float16, with the offset 0."""
    assigned = {a.target for a in kernel.forward if isinstance(a.value, Call) and a.value.function == ROUND}
    return {name: Number(0.0) for name in (*kernel.history, *kernel.saved) if name in (kernel.halves | assigned)}


def rounded_values(kernel: Kernel) -> dict[str, Expression]:
    """Return the names of `kernel.history` and `kernel.saved` that can be rounded, with the subtracted offset: 0 or a threshold."""
    offsets = float16_values(kernel)
    for name in (*kernel.history, *kernel.saved):
        if name in offsets:
            continue
        names = (name, f"{name}_prev") if name in kernel.history else (name,)
        candidates = {c for a in kernel.backward for c in _offset_candidates(a.value, names, kernel.parameters)}
        offset = candidates.pop() if candidates else Number(0.0)  # a value with several candidates is not rounded
        if not candidates and not _Rounding(kernel, names, offset).decides():
            offsets[name] = offset
    return offsets


def _offset_candidates(expression: Expression, names: Collection[str], parameters: Collection[str]) -> set[Expression]:
    """Return the constants that one of `names` is compared with, or that are subtracted from it: candidates for its offset."""
    match expression:
        case Call("sub" | "gt" | "ge", (Symbol(name), Number() | Symbol() as offset)) if name in names and _constant(offset, parameters):
            return {offset}
        case Call(_, arguments):
            return {c for argument in arguments for c in _offset_candidates(argument, names, parameters)}
    return set()


def _constant(expression: Expression, parameters: Collection[str]) -> bool:
    return set(symbols(expression)) <= set(parameters)


class _Rounding:
    """Effects of rounding on the values of a kernel's backward code, if `names` are rounded as distances from `offset`."""

    def __init__(self, kernel: Kernel, names: Collection[str], offset: Expression) -> None:
        self.kernel, self.names, self.offset = kernel, names, offset
        self._effects = dict.fromkeys(names, _SIGNED if offset == Number(0.0) else _ROUNDED)
        # If the model itself has no comparisons, those of the adjoint are bounds of a surrogate's support, which rounded values may cross.
        self._model_compares = any(_compares(a.value) for a in kernel.forward)

    def decides(self) -> bool:
        """Return whether rounding may change a decision of the backward code."""
        try:
            for assignment in self.kernel.backward:
                self._effects[assignment.target] = self._effect(assignment.value)
        except _DecidesError:
            return True
        return False

    def _effect(self, expression: Expression) -> int:
        match expression:
            case Symbol(name):
                return self._effects.get(name, _EXACT)
            case Number():
                return _EXACT
            case Call("sub", (Symbol(name), right)) if name in self.names and right == self.offset:
                return _SIGNED
            case Call("gt" | "ge", (Symbol(name), right)) if name in self.names and right == self.offset:
                return _EXACT
        return self._of_call(expression, [self._effect(argument) for argument in expression.args])

    def _of_call(self, call: Call, arguments: Sequence[int]) -> int:
        worst = max(arguments, default=_EXACT)
        if worst == _EXACT or (call.function in _SPIKES and worst == _SIGNED):
            return _EXACT
        if call.function in ("abs", "neg"):
            return worst
        if call.function in _COMPARISONS and worst == _SIGNED and not self._model_compares:
            return _EXACT
        if call.function in _SPIKES | _COMPARISONS or (call.function == "where" and arguments[0] != _EXACT):
            raise _DecidesError
        return _ROUNDED


def _compares(expression: Expression) -> bool:
    return isinstance(expression, Call) and (expression.function in _COMPARISONS or any(map(_compares, expression.args)))
