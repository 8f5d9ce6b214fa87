"""Kernels of populations as C++ functions over rows of neurons."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from snnc.backends.codegen.names import comment_text
from snnc.backends.codegen.printing import c_assignments, c_expression
from snnc.backends.native.row_buffers import padded, pitch
from snnc.compiler.ir.plan import Precision
from snnc.compiler.ir.step_program import PopulationInfo
from snnc.compiler.lowering.gradient_support import argument_name, support_bounds, with_arguments
from snnc.compiler.neurons.expression import Assignment, Expression, Number, Symbol, call, symbols
from snnc.compiler.neurons.single_assignment import reads


@dataclass(frozen=True)
class Function:
    """A function of ``neurons.cpp``, as data of its template."""

    name: str
    arguments: tuple[str, ...]
    """Declarations of the arguments."""
    comment: str
    width: int
    """Number of neurons in a row, padded to whole cache lines."""
    pitch: int
    """Distance between two rows, in values."""
    scalars: tuple[str, ...]
    """Statements before the loop over neurons."""
    lines: tuple[str, ...]
    """Statements for one neuron, ``n``, of the row that begins at ``first``."""

    @property
    def signature(self) -> str:
        """The declaration of the function."""
        return f"void {self.name}({', '.join(('std::size_t rows', *self.arguments))})"


@dataclass(frozen=True)
class ShortNumbers:
    """C++ names of a 16-bit type, and of functions that round to it, convert from it to float32, and store states before the first step."""

    type: str
    rounded: str
    widened: str
    keep: str


SHORT: Final[Mapping[Precision, ShortNumbers]] = {
    "float32": ShortNumbers("BFloat16", "rounded", "widened", "keep_rounded"),
    "bfloat16": ShortNumbers("BFloat16", "rounded", "widened", "keep_rounded"),
    "float16": ShortNumbers("Float16", "half_of", "float_of", "keep_halves"),
}
"""The 16-bit type of each precision; nothing is stored in 16 bits if the precision is float32."""


def forward_function(
    info: PopulationInfo,
    size: int,
    scalars: Mapping[str, bool],
    near: Sequence[str],
    rounded: Mapping[str, Expression],
    numbers: ShortNumbers,
) -> Function:
    """Return ``<id>_forward``.

    Its arguments are parameters, inputs, old states, new states, outputs, saved values stored as float32, the flags of `near`, and the
    states and saved values stored in 16 bits.

    `scalars` says for each parameter whether all neurons share one value. `near` are the outputs for which the function stores flags: 1 for
    a neuron that receives a gradient, because it is in the support of the surrogate, else 0
    (:mod:`snnc.compiler.lowering.gradient_support`). `rounded` maps states and saved values stored in 16 bits to the offset that is
    subtracted first (:mod:`snnc.compiler.neurons.rounded_values`).
    """
    kernel = info.kernel
    stores = [(s, f"{s}_after") for s in kernel.states] + [(o, f"{o}_row") for o in kernel.outputs]
    stores += [(k, f"{k}_kept") for k in kernel.saved if k not in rounded]  # an output may also be a saved value
    inside = {o: _inside(info, o) for o in near}
    body = (*with_arguments(kernel, near), *inside.values())
    stores += [(a.target, f"{o}_near") for o, a in inside.items()]
    short = {n: f"{n}_kept" for n in rounded}
    used = reads(body, (*kernel.saved, *rounded)) | {n for offset in rounded.values() for n in symbols(offset)}
    places = {i: f"{i}_row" for i in kernel.inputs} | {f"{s}_prev": f"{s}_before" for s in kernel.states}
    arguments = [f"const float *{a}_row" for a in kernel.parameters]
    arguments += [f"const float *{p}" for p in places.values()]
    arguments += [f"float *{p}" for _, p in stores] + [f"{numbers.type} *{p}" for p in short.values()]
    return Function(
        f"{info.id}_forward",
        tuple(arguments),
        comment_text(f"{info.label}: {info.model.name}, forward"),
        padded(size),
        pitch(size),
        _before_loop(kernel.parameters, scalars, places, used),
        (
            *_loads(places, used),
            *_parameter_loads(kernel.parameters, scalars, used),
            *c_assignments(body),
            *(f"{p}[first + n] = {n};" for n, p in stores),
            *(f"{p}[first + n] = {numbers.rounded}({_with_offset(n, '-', rounded[n])});" for n, p in short.items()),
        ),
    )


def _with_offset(value: str, sign: str, offset: Expression) -> str:
    """Return C++ that adds the offset to a value (sign "+") or subtracts it ("-")."""
    return value if offset == Number(0.0) else f"{value} {sign} {c_expression(offset)}"


def _inside(info: PopulationInfo, output: str) -> Assignment:
    """Return the assignment that tests whether the argument of a spike is in the surrogate's support."""
    bounds, x = support_bounds(info, output), Symbol(argument_name(output))
    assert bounds is not None
    low, high = bounds
    if low > high:
        return Assignment(f"near_{output}", Number(0.0))
    # The ends belong to the support (as for a boxcar), so neurons there receive a gradient.
    tests = [call("ge", x, low)] * math.isfinite(low) + [call("ge", high, x)] * math.isfinite(high)
    return Assignment(f"near_{output}", call("mul", *tests) if len(tests) == 2 else tests[0])


def backward_function(
    info: PopulationInfo,
    size: int,
    scalars: Mapping[str, bool],
    rounded: Mapping[str, Expression],
    numbers: ShortNumbers,
) -> Function:
    """Return ``<id>_backward``; parameters are those of :func:`forward_function`.

    Its arguments are parameters, stored states before and after the step, saved values, adjoints of outputs and states, adjoints of
    inputs, and sums of the gradients of parameters.
    """
    kernel = info.kernel
    used = reads(kernel.backward, ())
    places: dict[str, str] = {}
    short: dict[str, Expression] = {}
    for s in kernel.history:
        places |= {f"{s}_prev": f"{s}_before", s: f"{s}_after"}
        short |= {f"{s}_prev": rounded[s], s: rounded[s]} if s in rounded else {}
    places |= {k: f"{k}_kept" for k in kernel.saved} | {f"d_{o}": f"d_{o}_row" for o in kernel.outputs}
    short |= {k: rounded[k] for k in kernel.saved if k in rounded}
    arguments = [f"const float *{a}_row" for a in kernel.parameters]
    arguments += [f"const {numbers.type if n in short else 'float'} *{p}" for n, p in places.items()]
    used |= {a for n, offset in short.items() if n in used for a in symbols(offset)}
    arguments += [f"float *d_{s}_row" for s in kernel.states] + [f"float *d_{i}_row" for i in kernel.inputs]
    arguments += [f"float *d_{a}_sum" for a in kernel.learnable]
    adjoints = {f"d_{s}": f"d_{s}_row" for s in kernel.states}
    return Function(
        f"{info.id}_backward",
        tuple(arguments),
        comment_text(f"{info.label}: {info.model.name}, adjoint"),
        padded(size),
        pitch(size),
        _before_loop(kernel.parameters, scalars, places, used),
        (
            *_parameter_loads(kernel.parameters, scalars, used),
            *_loads({n: p for n, p in (places | adjoints).items() if n not in short}, used),
            *(
                f"const float {n} = {_with_offset(f'{numbers.widened}({places[n]}[first + n])', '+', short[n])};"
                for n in short
                if n in used
            ),
            *c_assignments(kernel.backward),
            *(f"d_{s}_row[first + n] = d_{s}_prev;" for s in kernel.states),
            *(f"d_{i}_row[first + n] = d_{i};" for i in kernel.inputs),
            *(f"d_{a}_sum[n] += d_{a};" for a in kernel.learnable),
        ),
    )


def _loads(places: Mapping[str, str], used: set[str]) -> list[str]:
    return [f"const float {n} = {p}[first + n];" for n, p in places.items() if n in used]


def _before_loop(parameters: Sequence[str], scalars: Mapping[str, bool], places: Mapping[str, str], used: set[str]) -> tuple[str, ...]:
    """Return the statements that read scalars, and those that name unread arguments so that the C++ compiler does not warn."""
    unread = [*(f"{a}_row" for a in parameters if a not in used), *(p for n, p in places.items() if n not in used)]
    read = [f"const float {a} = {a}_row[0];" for a in parameters if scalars[a] and a in used]
    return (*read, *(f"static_cast<void>({p});" for p in unread))


def _parameter_loads(parameters: Sequence[str], scalars: Mapping[str, bool], used: set[str]) -> list[str]:
    return [f"const float {a} = {a}_row[n];" for a in parameters if not scalars[a] and a in used]
