"""Printed C++ compared with the interpreter, and its form."""

import ctypes
import itertools
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnc.backends.codegen.printing import c_assignments, c_expression, c_literal
from snnc.compiler.neurons.adjoint import derive_kernel
from snnc.compiler.neurons.expression import FUNCTIONS, LOWERED, Assignment, Call, Symbol, parse_assignments, parse_expression, symbols
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.library import ALIF, IF, LI, LIBRARY, LIF, Alpha
from snnc.compiler.neurons.surrogates.library import LIBRARY as SURROGATES
from snnc.compiler.neurons.surrogates.library import atan, fast_sigmoid
from snnc.compiler.tiles.mapped.operations import KINDS, operation_counts


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("a + b * c", "a + b * c"),
        ("(a + b) * c", "(a + b) * c"),
        ("a - (b - c)", "a - (b - c)"),
        ("(a - b) - c", "a - b - c"),
        ("a + (b + c)", "a + (b + c)"),
        ("a / (b * c)", "a / (b * c)"),
        ("-a + b", "-a + b"),
        ("-a * b", "(-a) * b"),
        ("-(a * b)", "-(a * b)"),
        ("a - -b", "a - (-b)"),
        ("0.1 * x", "0.1f * x"),
        ("x * -2", "x * (-2.0f)"),
        ("spike(v - th)", "(v - th > 0.0f ? 1.0f : 0.0f)"),
        ("where(gt(a, b), a, -b)", "(a > b ? a : -b)"),
        ("where(a, b, c)", "(a != 0.0f ? b : c)"),
        ("exp(-x) + abs(x)", "expf(-x) + fabsf(x)"),
        ("detach(a + b) * c", "(a + b) * c"),
        ("sigmoid(x)", "1.0f / (1.0f + expf(-x))"),
    ],
)
def test_expressions_carry_the_parentheses_they_need(text, printed):
    assert c_expression(parse_expression(text)) == printed


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_literals_read_back_as_the_same_float(value):
    text = c_literal(value)
    assert text.endswith("f")
    assert np.float32(text[:-1]) == np.float32(value)
    assert "." in text or "e" in text


def test_literals_outside_the_type_are_infinite():
    assert c_literal(1e300) == "INFINITY"
    assert c_literal(-1e300) == "-INFINITY"
    assert c_literal(1e300, "double") == "1e+300"


def test_names_and_stores_are_replaced():
    code = parse_assignments("k = a * x\ny = k + 1")
    assert c_assignments(code, names={"x": "in[n]", "y": "out[n]"}, stores={"y"}) == ["const float k = a * in[n];", "out[n] = k + 1.0f;"]


def _kernels():
    for factory in LIBRARY:
        model = factory()
        kernel = derive_kernel(model, atan(), model.parameters)
        yield f"{model.name} forward", kernel.forward
        yield f"{model.name} backward", kernel.backward
    for name, surrogate in SURROGATES.items():
        yield f"LIF {name}", derive_kernel(LIF(detach=False), surrogate()).backward
    yield "immediate", derive_kernel(LIF(reset_delay=False), atan(), ("beta", "threshold")).backward
    for function, arity in FUNCTIONS.items():
        yield f"function {function}", (Assignment("y", Call(function, tuple(Symbol(n) for n in "abc"[:arity]))),)


CODE = dict(_kernels())


def _reads(code):
    targets = {a.target for a in code}
    return sorted({n for a in code for n in symbols(a.value)} - targets)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("no g++")
    lines = ["#include <cmath>"]
    for (number, code), real in itertools.product(enumerate(CODE.values()), ("float", "double")):
        reads, targets = _reads(code), [a.target for a in code]
        lines.append(f'extern "C" void f{number}_{real}(int count, const {real}* in, {real}* out) {{')
        lines.append("for (int n = 0; n < count; ++n) {")
        lines += [f"const {real} {name} = in[{k} * count + n];" for k, name in enumerate(reads)]
        lines += c_assignments(code, real)
        lines += [f"out[{k} * count + n] = {name};" for k, name in enumerate(targets)]
        lines.append("}}")
    folder = tmp_path_factory.mktemp("printing")
    (folder / "code.cpp").write_text("\n".join(lines))
    subprocess.run(
        [compiler, "-std=c++17", "-O1", "-Wall", "-Werror", "-ffp-contract=off", "-shared", "-fPIC", "code.cpp", "-o", "code.so"],
        cwd=folder,
        check=True,
    )
    return ctypes.CDLL(str(folder / "code.so"))


@pytest.mark.parametrize("real", ["float", "double"])
@pytest.mark.parametrize("name", CODE)
def test_compiled_code_computes_what_the_interpreter_computes(library, name, real):
    code = CODE[name]
    reads, targets = _reads(code), [a.target for a in code]
    dtype = np.float32 if real == "float" else np.float64
    count = 64
    values = np.random.default_rng(0).uniform(-2, 2, (len(reads), count)).astype(dtype)
    values[:, :3] = 0.0, 1.0, -1.0
    values[[n.startswith("a") for n in reads]] = abs(values[[n.startswith("a") for n in reads]]) + 0.05
    out = np.empty((len(targets), count), dtype)
    getattr(library, f"f{list(CODE).index(name)}_{real}")(
        count, values.ctypes.data_as(ctypes.c_void_p), out.ctypes.data_as(ctypes.c_void_p)
    )
    found = evaluate(code, dict(zip(reads, values, strict=True)) | {"unused": np.zeros(1, dtype)})
    for target, row in zip(targets, out, strict=True):
        expected = np.broadcast_to(found[target], count)
        finite = np.isfinite(expected)
        tolerance = 2e-5 if real == "float" else 1e-12
        np.testing.assert_allclose(row[finite], expected[finite], rtol=tolerance, atol=tolerance)
        assert finite.any() or name.startswith("function")


def test_float32_stays_float32_in_the_interpreter():
    code = parse_assignments("y = 0.1*x + where(gt(x, 0), 1, 2) + erf(x) + sigmoid(x) + pow(x, 2)\nz = 3\nw = spike(x)")
    found = evaluate(code, {"x": np.ones(3, np.float32)})
    assert {v.dtype for v in found.values()} == {np.dtype(np.float32)}
    assert found["z"].shape == ()


def test_the_interpreter_leaves_its_inputs_alone():
    x = np.ones(3, np.float32)
    environment = {"x": x}
    evaluate(parse_assignments("y = x + 1\nz = -y"), environment)
    assert list(environment) == ["x"]
    np.testing.assert_array_equal(x, 1)


def test_operations_are_counted_by_kind():
    assert operation_counts(derive_kernel(IF(), atan()).forward) == {"add": 4, "mul": 1, "compare": 2}
    assert operation_counts(derive_kernel(LI(), atan()).backward) == {"add": 1, "mul": 1}
    counts = operation_counts(derive_kernel(LIF(), fast_sigmoid()).backward)
    assert counts == {"add": 3, "mul": 3, "abs": 1, "div": 1}
    assert operation_counts(parse_assignments("y = where(gt(a, b), a, sigmoid(b))")) == {
        "compare": 1,
        "select": 1,
        "neg": 1,
        "exp": 1,
        "add": 1,
        "div": 1,
    }
    assert set(KINDS) == set(LOWERED)


def test_adjoint_code_stays_small():
    for model, most in ((LIF(), 12), (ALIF(), 30), (Alpha(), 40)):
        assert sum(operation_counts(derive_kernel(model, atan()).backward).values()) <= most
