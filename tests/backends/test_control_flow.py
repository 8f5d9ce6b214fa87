"""Control flow of emitted code is in templates; Python prints only expressions and calls."""

import ast
import importlib
import re
from pathlib import Path

import pytest

FOLDERS = ("codegen", "cpu", "cuda", "native", "poptorch")
CONTROL_FLOW = re.compile(r"\b(?:for|while|if|switch) ?\(|\bdo ?\{|\belse\b ?(?:\{|if\b)|#pragma")


def texts(source):
    """Yield the line and text of every string that is no docstring; an expression in an f-string counts as ``{}``."""
    tree = ast.parse(source)
    skipped = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(value) for value in node.values)
            yield node.lineno, "".join(value.value if isinstance(value, ast.Constant) else "{}" for value in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped:
            yield node.lineno, node.value


def control_flow(source):
    return [(line, text) for line, text in texts(source) if CONTROL_FLOW.search(text)]


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_string_of_a_backend_holds_control_flow(folder):
    root = Path(importlib.import_module(f"snnc.backends.{folder}").__file__).parent
    files = sorted(root.rglob("*.py"))
    assert len(files) > 5
    assert {str(file): found for file in files if (found := control_flow(file.read_text(encoding="utf-8")))} == {}


@pytest.mark.parametrize(
    "code",
    [
        '"for (int t = 0; t < steps; ++t) {"',
        'f"if (t >= {delay}) {call}"',
        '["x = 1;", "while (more())", "}"]',
        '{"a": f"{call} switch (kind) {{"}',
        '"do {"',
        '"} else {"',
        '"#pragma unroll"',
    ],
)
def test_control_flow_in_a_string_is_found(code):
    assert control_flow(f"lines = {code}")


def test_prose_expressions_and_docstrings_are_no_control_flow():
    source = '"""Runs for (some) steps."""\nlines = [f"x = {a} ? 1 : 0;", "what it is for", "one if there is one"]'
    assert control_flow(source) == []
