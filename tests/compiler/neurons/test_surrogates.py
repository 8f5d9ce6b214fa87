"""Surrogate derivatives compared with the formulas of snnTorch and of the literature."""

import numpy as np
import pytest
import snntorch.surrogate as torch_surrogates
import torch

from snnc.compiler.errors import EquationError, SurrogateValueError, UnknownSurrogateError
from snnc.compiler.neurons.expression import Assignment
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.surrogates import library as surrogates

X = np.concatenate([np.linspace(-3, 3, 241), [0.0, 1e-6, -1e-6, 0.5, -0.5, 1.0]]).astype(np.float64)


def derivative(surrogate, x=X):
    return np.broadcast_to(evaluate([Assignment("y", surrogate.derivative)], {"x": x})["y"], x.shape)


class _LeakySpike(torch_surrogates.LeakySpikeOperator):
    @staticmethod
    def backward(ctx, gradient):
        return torch_surrogates.LeakySpikeOperator.backward(ctx, gradient), None


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (surrogates.atan(), torch_surrogates.atan()),
        (surrogates.atan(3.5), torch_surrogates.atan(3.5)),
        (surrogates.fast_sigmoid(), torch_surrogates.fast_sigmoid()),
        (surrogates.fast_sigmoid(4), torch_surrogates.fast_sigmoid(4)),
        (surrogates.sigmoid(), torch_surrogates.sigmoid()),
        (surrogates.sigmoid(3), torch_surrogates.sigmoid(3)),
        (surrogates.straight_through(), torch_surrogates.straight_through_estimator()),
        (surrogates.heaviside(), torch_surrogates.heaviside()),
        (surrogates.triangular(), torch_surrogates.triangular()),
        (surrogates.triangular(0.4), torch_surrogates.triangular(0.4)),
        (surrogates.spike_rate_escape(), torch_surrogates.spike_rate_escape()),
        (surrogates.spike_rate_escape(2, 3), torch_surrogates.spike_rate_escape(2, 3)),
        (surrogates.sparse_fast_sigmoid(10, 0.5), torch_surrogates.SFS(10, 0.5)),
        (surrogates.leaky_spike(), lambda x: _LeakySpike.apply(x, 0.1)),
    ],
    ids=lambda s: str(s) if isinstance(s, surrogates.Surrogate) else "",
)
def test_derivatives_are_those_of_snntorch(ours, theirs):
    x = torch.tensor(X, requires_grad=True)
    theirs(x).sum().backward()
    np.testing.assert_allclose(derivative(ours), x.grad.numpy(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize(
    ("ours", "formula"),
    [
        (surrogates.superspike(), lambda x: 1 / (10 * abs(x) + 1) ** 2),
        (surrogates.piecewise_linear(2.0, 0.3), lambda x: 0.3 * np.maximum(0, 1 - abs(x) / 2)),
        (surrogates.boxcar(0.5, 2.0), lambda x: np.where(abs(x) <= 0.25, 2.0, 0.0)),
        (surrogates.gaussian(0.5), lambda x: np.exp(-(x**2) / 0.5) / np.sqrt(2 * np.pi) / 0.5),
        (surrogates.custom("1/(1 + x*x)"), lambda x: 1 / (1 + x * x)),
        (surrogates.custom("detach(x)*0 + 2"), lambda x: 2 + 0 * x),
    ],
    ids=lambda s: str(s) if isinstance(s, surrogates.Surrogate) else "",
)
def test_derivatives_are_those_of_the_formulas(ours, formula):
    np.testing.assert_allclose(derivative(ours), formula(X), rtol=1e-12)


@pytest.mark.parametrize("name", surrogates.LIBRARY)
def test_derivatives_are_finite_far_from_the_threshold(name):
    x = np.array([-1e4, -100, 100, 1e4], dtype=np.float32)
    assert np.isfinite(derivative(surrogates.LIBRARY[name](), x)).all()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("atan", "atan(alpha=2)"),
        ("fast_sigmoid:10", "fast_sigmoid(slope=10)"),
        (" spike_rate_escape:2, 3 ", "spike_rate_escape(beta=2, slope=3)"),
        ("straight_through", "straight_through()"),
    ],
)
def test_the_command_line_form_is_read(text, shown):
    assert str(surrogates.parse_surrogate(text)) == shown


def test_the_command_line_takes_a_derivative_as_text():
    assert surrogates.parse_surrogate("custom:1/(1+abs(x))").derivative == surrogates.custom("1/(1+abs(x))").derivative


@pytest.mark.parametrize("name", surrogates.LIBRARY)
def test_every_library_name_is_read(name):
    assert surrogates.parse_surrogate(name) == surrogates.LIBRARY[name]()


def test_an_unknown_surrogate_is_refused_with_the_known_ones():
    with pytest.raises(UnknownSurrogateError, match=r"SNNC-E103.*arctan.*atan, fast_sigmoid.*custom"):
        surrogates.parse_surrogate("arctan")


@pytest.mark.parametrize(
    "text", ["atan:", "atan:x", "atan:1,2", "atan:nan", "atan:inf", "atan:0", "atan:-2", "straight_through:1", "boxcar:-1", "gaussian:0"]
)
def test_numbers_that_do_not_fit_are_refused(text):
    with pytest.raises(SurrogateValueError, match="SNNC-E104"):
        surrogates.parse_surrogate(text)


@pytest.mark.parametrize("text", ["1/y", "open(x)", "x.real", ""])
def test_derivatives_that_are_no_expression_in_x_are_refused(text):
    with pytest.raises(EquationError):
        surrogates.custom(text)
