"""Evaluates printed equations from their text alone."""

import math
import re

import numpy as np

TOKEN = re.compile(r"[A-Za-z_]\w*(?:\[t(?:-1)?\])?|\d+(?:\.\d+)?(?:e[+-]?\d+)?|>=|!=|[-+*/^(),>]|\s+")
FUNCTIONS = {
    "H": lambda x: np.asarray(x, np.float64),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "min": np.minimum,
    "max": np.maximum,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "erf": np.vectorize(math.erf),
}


def computed(lines, environment):
    """Run printed lines on ``{"v[t-1]": ..., "beta": ...}`` and return every value by its printed name."""
    scope = dict(environment)
    for line in lines:
        target, _, value = line.partition(" = ")
        names = {}
        code = python_of(value, names)
        scope[target] = eval(code, {}, FUNCTIONS | {new: scope[old] for old, new in names.items()})
    return scope


def python_of(text, names):
    """Write multiplication signs where the text has two factors side by side."""
    tokens = [token for token in TOKEN.findall(text) if token.strip()]
    assert "".join(tokens) == text.replace(" ", ""), text
    found, before = [], ""
    for token in tokens:
        word = bool(re.match(r"[A-Za-z_]", token))
        starts = token == "(" or word or token[0].isdigit()
        ended = before not in ("", "(", ",") and (before == ")" or before[-1].isalnum() or before[-1] in "]_") and before not in FUNCTIONS
        if starts and ended and token not in ("if", "else") and before not in ("if", "else"):
            found.append("*")
        if word and token not in FUNCTIONS and token not in ("if", "else"):
            names.setdefault(token, f"x{len(names)}")
            found.append(names[token])
        else:
            found.append({"^": "**"}.get(token, token))
        before = token
    # a division by several factors is bracketed, so a product stands above the bar as a whole
    return " ".join(found)
