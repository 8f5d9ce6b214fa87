"""The equation language: accepted and refused texts; printing and parsing are inverse."""

import ast
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wide import examples

from snnc.compiler.errors import EquationError
from snnc.compiler.neurons.expression import (
    FUNCTIONS,
    MAX_TEXT,
    Assignment,
    Call,
    Number,
    Symbol,
    call,
    parse_assignments,
    parse_expression,
    substitute,
    symbols,
    to_text,
    transform,
)

leaves = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(Number),
    st.integers(-(10**6), 10**6).map(lambda n: Number(float(n))),
    st.sampled_from(["v", "i", "beta", "a0", "s0_prev", "exp_1", "spike"]).map(Symbol),
)


def calls(children):
    return st.sampled_from(sorted(FUNCTIONS)).flatmap(lambda f: st.tuples(*[children] * FUNCTIONS[f]).map(lambda args: Call(f, args)))


@settings(max_examples=examples(100, 400), deadline=None)
@given(st.recursive(leaves, calls, max_leaves=30))
def test_reading_what_was_printed_gives_the_same_tree(tree):
    assert parse_expression(to_text(tree)) == tree


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b - c", call("sub", call("add", Symbol("a"), Symbol("b")), Symbol("c"))),
        ("a - (b - c)", call("sub", Symbol("a"), call("sub", Symbol("b"), Symbol("c")))),
        ("-x**2", call("neg", call("pow", Symbol("x"), 2))),
        ("-2", Number(-2.0)),
        ("+x", Symbol("x")),
        ("1_000", Number(1000.0)),
        ("max(x, 0)", call("max", Symbol("x"), 0)),
    ],
)
def test_the_order_of_the_author_is_kept(text, tree):
    assert parse_expression(text) == tree


@pytest.mark.parametrize(
    "text",
    [
        "v.real",
        "v.__class__",
        "open('f')",
        "__import__('os')",
        "eval(x)",
        "exp.__call__(x)",
        "(lambda: 1)()",
        "lambda x: x",
        "[v for v in v]",
        "(v for v in v)",
        "{v: 1}",
        "[1]",
        "x[0]",
        "x if y else z",
        "x and y",
        "not x",
        "x < y",
        "x := 1",
        "x @ y",
        "x // y",
        "x % y",
        "x << 1",
        "~x",
        "'text'",
        "b'text'",
        "f'{x}'",
        "True",
        "None",
        "1j",
        "...",
        "exp(*x)",
        "exp(**x)",
        "exp(x=1)",
        "exp()",
        "exp(x, y)",
        "where(x, y)",
        "sinh(x)",
        "a__b",
        "__name__",
        "é",
        "await x",
        "yield x",
        "1e999",
        "-1e999",
        "9" * 400,
        "-" + "9" * 400,
        "9" * 5000,
        "(" * 250 + "x" + ")" * 250,
        "-" * 250 + "x",
        "x" + " + x" * 250,
        "x" + " + x" * 4000,
        "[" + "1 + " * 4000 + "1]",
        "x" * (MAX_TEXT + 1),
        "x\x00",
        "",
        "x y",
    ],
)
def test_everything_outside_the_language_is_refused(text):
    with pytest.raises(EquationError, match="SNNC-E101"):
        parse_expression(text)
    with pytest.raises(EquationError):
        parse_assignments(f"v = {text}")


@pytest.mark.parametrize(
    "text",
    [
        "v += 1",
        "v: float = 1",
        "v = w = 1",
        "v, w = 1, 2",
        "v.x = 1",
        "v[0] = 1",
        "import os",
        "def f(): pass",
        "v",
        "pass",
        "a__b = 1",
        "x" * (MAX_TEXT + 1),
    ],
)
def test_statements_other_than_assignments_are_refused(text):
    with pytest.raises(EquationError):
        parse_assignments(text)


def test_comments_indentation_and_empty_lines_are_allowed():
    text = """
        # a leak
        v = 0.9*v + i   # and the current

          s = spike(v - 1)
    """
    assert [a.target for a in parse_assignments(text)] == ["v", "s"]


def test_assignments_print_as_they_are_read():
    text = "v = beta * v + (i - r) * (th / 2)"
    (assignment,) = parse_assignments(text)
    assert str(assignment) == text
    assert parse_assignments(str(assignment)) == (assignment,)


def test_the_message_names_the_line_at_fault():
    with pytest.raises(EquationError, match="line 2"):
        parse_assignments("v = 1\nimport os")


def test_symbols_come_left_to_right():
    assert list(symbols(parse_expression("b*a + exp(b)"))) == ["b", "a", "b"]


def test_substitution_replaces_all_occurrences_at_once():
    tree = substitute(parse_expression("a + b*a"), {"a": Symbol("b"), "b": Symbol("a")})
    assert to_text(tree) == "b + a * b"


def test_transform_rebuilds_from_the_leaves():
    doubled = transform(parse_expression("1 + exp(2)"), lambda e: Number(e.value * 2) if isinstance(e, Number) else e)
    assert to_text(doubled) == "2 + exp(4)"


def test_calls_of_unknown_functions_cannot_be_made():
    with pytest.raises(EquationError):
        call("system", 1)


def test_trees_are_equal_by_value():
    assert {Assignment("v", parse_expression("a+1")), Assignment("v", parse_expression("a + 1.0"))} == {parse_assignments("v = a + 1")[0]}


def test_texts_are_parsed_by_one_thread_at_a_time(monkeypatch):
    """Python's own parser fails now and then if several threads use it."""
    parse, inside, most = ast.parse, [], []

    def watched(*args, **options):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)
        inside.pop()
        return parse(*args, **options)

    monkeypatch.setattr(ast, "parse", watched)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(parse_expression, ["a + b"] * 4))
        list(pool.map(parse_assignments, ["c = a + b"] * 4))
    assert most == [1] * 8
