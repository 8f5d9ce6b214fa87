"""Where surrogates are zero, and windows that make them zero."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnc.compiler.errors import SurrogateValueError
from snnc.compiler.ir.graph_data import surrogate_from_data, surrogate_to_data
from snnc.compiler.neurons.expression import Assignment, parse_expression, to_text
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.surrogates import library as surrogates
from snnc.compiler.neurons.surrogates.surrogate import support

X = np.concatenate([np.linspace(-4, 4, 1601), [1e-7, -1e-7, 1e3, -1e3]])


def derivative(surrogate, x=X):
    return np.broadcast_to(evaluate([Assignment("y", surrogate.derivative)], {"x": x})["y"], np.shape(x))


def within(found, x=X):
    low, high = found or (-math.inf, math.inf)
    return (x >= low) & (x <= high)


@pytest.mark.parametrize("name", surrogates.LIBRARY)
def test_library_derivatives_are_zero_outside_their_support(name):
    surrogate = surrogates.LIBRARY[name]()
    assert not derivative(surrogate)[~within(surrogate.support)].any()


@pytest.mark.parametrize(
    ("surrogate", "wanted"),
    [
        (surrogates.boxcar(0.5, 2.0), (-0.25, 0.25)),
        (surrogates.piecewise_linear(2.0, 0.3), (-2.0, 2.0)),
        (surrogates.heaviside(), (0.0, math.inf)),
        (surrogates.sparse_fast_sigmoid(10, 0.5), (0.5, math.inf)),
        (surrogates.atan(), None),
        (surrogates.triangular(), None),
        (surrogates.leaky_spike(), None),
        (surrogates.leaky_spike(0.0), (0.0, math.inf)),
        (surrogates.custom("max(1 - 4*abs(x), 0)*exp(x)"), (-0.25, 0.25)),
    ],
    ids=str,
)
def test_bounds_of_known_surrogates(surrogate, wanted):
    assert surrogate.support == (None if wanted is None else pytest.approx(wanted))


lines = st.tuples(st.sampled_from(["x", "abs(x)"]), st.floats(-3, 3), st.floats(-2, 2)).map(lambda t: f"({t[1]!r}*{t[0]} + {t[2]!r})")
factors = st.one_of(
    lines.map(lambda line: f"max({line}, 0)"),
    lines.map(lambda line: f"spike({line})"),
    st.sampled_from(["1", "0", "exp(x)", "abs(x)", "(1/(1 + x*x))"]),
)
expressions = st.recursive(
    factors,
    lambda inner: st.tuples(inner, st.sampled_from("*+-"), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
    max_leaves=6,
)


@given(expressions)
def test_whatever_is_written_is_zero_outside_its_support(text):
    expression = parse_expression(text)
    value = np.broadcast_to(evaluate([Assignment("y", expression)], {"x": X})["y"], X.shape)
    low, high = support(expression)
    # Where a line meets zero, rounding may leave 1e-16 of it on the other side.
    outside = (low - 1e-9 > X) | (high + 1e-9 < X)
    # An exponential that overflows makes 0 * inf of what is 0.
    assert not value[outside & np.isfinite(value)].any()


@pytest.mark.parametrize("name", surrogates.LIBRARY)
@pytest.mark.parametrize(("low", "high"), [(-0.1, math.inf), (-0.5, 0.25), (0.2, 0.3)])
def test_a_window_leaves_the_derivative_inside_and_zero_outside(name, low, high):
    plain = surrogates.LIBRARY[name]()
    windowed = plain.windowed(low, high)
    np.testing.assert_array_equal(derivative(windowed), np.where((low < X) & (high > X), derivative(plain), 0))
    assert not derivative(windowed)[~within(windowed.support)].any()
    found = windowed.support
    assert found[0] > found[1] or (found[0] >= low and found[1] <= high)


def test_a_windowed_surrogate_says_so_and_survives_a_file():
    surrogate = surrogates.parse_surrogate("fast_sigmoid:10").windowed(-0.1, 0.5)
    assert str(surrogate) == "windowed_fast_sigmoid(slope=10, low=-0.1, high=0.5)"
    again = surrogate_from_data(surrogate_to_data(surrogate))
    assert to_text(again.derivative) == to_text(surrogate.derivative)
    assert again.support == surrogate.support == (-0.1, 0.5)


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.1), (0.2, 0.1), (math.nan, 1), (-math.inf, 1), (0, math.nan)])
def test_empty_or_open_windows_are_refused(low, high):
    with pytest.raises(SurrogateValueError, match=r"SNNC-E104.*low < high"):
        surrogates.atan().windowed(low, high)
