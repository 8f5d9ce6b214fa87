"""Kernels compared with PyTorch's autograd over the author's equations."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from neuron_oracles import Case, relative_error, run_kernel, run_torch
from wide import examples

from snnc.compiler.errors import EquationError, NeuronDefinitionError
from snnc.compiler.neurons.adjoint import derive_kernel
from snnc.compiler.neurons.expression import symbols
from snnc.compiler.neurons.forward_kernel import forward_kernel
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.library import ALIF, IF, LI, LIF, SLSTM, Alpha, CubaLIF, I, Identity, Lapicque, Relay, Threshold
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.surrogates.library import LIBRARY, atan, custom, fast_sigmoid, piecewise_linear

MODELS = {
    "LIF": LIF(),
    "LIF clamped": LIF(clamp=True),
    "LIF at threshold": LIF(strict=False),
    "LIF subtract, through the reset": LIF(detach=False),
    "LIF zero": LIF(reset="zero"),
    "LIF zero, input lost": LIF(reset="zero", input_kept=False),
    "LIF value": LIF(reset="value", v_reset=-0.3),
    "LIF value, input lost": LIF(reset="value", v_reset=-0.3, input_kept=False, detach=False),
    "LIF none": LIF(reset="none"),
    "LIF subtract at once": LIF(reset_delay=False),
    "LIF subtract at once, through the reset": LIF(reset_delay=False, detach=False),
    "LIF zero at once, through the reset": LIF(reset="zero", reset_delay=False, detach=False),
    "LIF value at once": LIF(reset="value", v_reset=0.2, reset_delay=False),
    "LIF subtract compensated": LIF(reset_delay=False, compensated=True, detach=False),
    "LIF zero compensated": LIF(reset="zero", reset_delay=False, compensated=True, detach=False),
    "IF": IF(),
    "IF zero at once": IF(reset="zero", reset_delay=False),
    "CubaLIF": CubaLIF(),
    "CubaLIF zero": CubaLIF(reset="zero", clamp=True),
    "CubaLIF value at once": CubaLIF(reset="value", v_reset=0.1, reset_delay=False, detach=False),
    "ALIF": ALIF(),
    "ALIF unscaled": ALIF(normalised=False, detach=False, kappa=0.4),
    "Alpha": Alpha(),
    "Alpha subtract": Alpha(reset="subtract"),
    "Alpha none, fixed tau": Alpha(reset="none", fixed_tau=True, clamp=True),
    "Lapicque": Lapicque(R=5, C=2),
    "Lapicque zero": Lapicque(beta=0.8, reset="zero"),
    "LI": LI(),
    "LI clamped": LI(clamp=True),
    "I": I(),
    "SLSTM": SLSTM(0.1),
    "SLSTM subtract": SLSTM(0.1, reset="subtract"),
    "SLSTM zero": SLSTM(0.1, reset="zero", detach=False),
    "Identity": Identity(),
    "Relay": Relay(),
    "Threshold": Threshold(),
}

VARIED = ("LIF", "LIF value at once", "LIF zero compensated", "CubaLIF", "ALIF", "Alpha", "SLSTM")
"""Models with all kinds of states and resets."""


def check(model, surrogate, *, learnable=None, ports=None, tolerance=1e-10, **options):
    learnable = tuple(model.parameters) if learnable is None else learnable
    kernel = derive_kernel(model, surrogate, learnable, ports)
    case = Case(model, ports, **options)
    outputs, gradients = run_kernel(kernel, case)
    expected_outputs, expected = run_torch(case, surrogate, learnable)
    np.testing.assert_allclose(outputs, expected_outputs, rtol=1e-4, atol=1e-5)
    error = relative_error(gradients, expected)
    assert error <= tolerance
    for name in kernel.binary:
        assert set(np.unique(outputs[kernel.outputs.index(name)])) <= {0.0, 1.0}
    return kernel, error


@pytest.mark.representative("atan-*", "*-LIF subtract at once, through the reset", "*-CubaLIF value at once", "*-ALIF unscaled")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("surrogate", [atan(), fast_sigmoid(5), piecewise_linear()], ids=["atan", "fast_sigmoid", "piecewise_linear"])
def test_gradients_of_library_neurons_are_those_of_autograd(name, surrogate):
    check(MODELS[name], surrogate)


@pytest.mark.representative(*VARIED)
@pytest.mark.parametrize("name", MODELS)
def test_gradients_in_float32_stay_within_1e_4(name):
    check(MODELS[name], atan(), dtype=np.float32, tolerance=1e-4)


@pytest.mark.parametrize("name", LIBRARY)
def test_every_surrogate_in_a_kernel_gives_the_gradient_of_autograd(name):
    check(LIF(detach=False), LIBRARY[name]())


@pytest.mark.parametrize("name", ["LIF", "LIF subtract at once", "CubaLIF", "ALIF", "Alpha", "Lapicque", "SLSTM subtract"])
def test_parameters_of_each_neuron_have_their_own_gradients(name):
    check(MODELS[name], atan(), per_neuron=tuple(MODELS[name].parameters))


def test_only_the_parameters_asked_for_are_differentiated():
    kernel, _ = check(LIF(), atan(), learnable=("threshold",))
    assert kernel.learnable == ("a1",)
    assert "d_a0" not in {a.target for a in kernel.backward}


USER = {
    "a state twice in a step": (
        {"v": 0.1},
        "v = v + i\nw = v*v\nv = 0.5*v + spike(w - a)\nv = tanh(v)\ns = spike(v - 0.2)",
        ("s", "v", "w"),
    ),
    "a state that is never assigned": ({"v": 0.1, "u": 0.7}, "v = 0.9*v + i*u\ns = spike(v - a)", ("s", "u")),
    "an output that is the state of the step before": ({"v": 0.3}, "r = v\nv = 0.9*v + i\nq = r + 1", ("r", "q")),
    "states that swap": ({"v": 0.3, "u": -0.2}, "t = v\nv = 0.9*u + i\nu = a*t", ("v", "u")),
    "an input that is not read": ({"v": 0.3}, "v = a*v", ("v",)),
    "constants only": ({"v": 0.3}, "v = 2 - 1\nw = 3/4", ("w", "v")),
    "branches": ({"v": 0.3}, "v = where(gt(v, i), a*v, min(v + i, 2)) + where(v - v, 1, i)", ("v",)),
    "a straight-through step by hand": ({"v": 0.3}, "q = sigmoid(v)\nv = a*v + i + q + detach(gt(v, 0) - q)", ("v",)),
    "powers": ({"v": 0.5}, "v = pow(1 + v*v, 0.5) - v - pow(a, i) + pow(2 + tanh(v), -3) + pow(i, 3) + pow(2, v/9) + pow(i, 0)", ("v",)),
    "all functions": (
        {"v": 0.3},
        "w = abs(sin(v)) + log(1 + exp(cos(i)))\nv = erf(w - a) + sqrt(1 + v*v)/2 + max(i, 0)*sign(i) + spike_ge(i - v)",
        ("v", "w"),
    ),
    "shared subexpressions": ({"v": 0.3}, "s = spike(v - a)\nt = spike(v - a) * sigmoid(i)\nv = v*sigmoid(i) + i - s", ("s", "t")),
    "reassigned names that are no state": ({"v": 0.3}, "t = v\nt = t*i\nt = t + a\nv = 0.5*v + t", ("t",)),
    "products and complements of spikes": (
        {"v": 0.3},
        "x = spike(i - a)\ny = 1 - spike(v)\nz = x*y\nv = 0.5*v + i",
        ("z", "y"),
    ),
}


@pytest.mark.parametrize("name", USER)
def test_equations_of_users(name):
    states, equations, outputs = USER[name]
    check(neuron("user", states=states, params={"a": 0.8}, equations=equations, output=outputs), atan())


@pytest.mark.parametrize("ports", [("s",), ("v",), ("s", "v"), ("z", "b", "s"), ("s", "s")])
def test_any_state_or_assigned_name_can_be_a_port(ports):
    kernel, _ = check(ALIF(), atan(), ports=ports)
    assert [kernel.labels[o] for o in kernel.outputs] == list(ports)


def test_products_and_complements_of_spikes_are_binary():
    states, equations, outputs = USER["products and complements of spikes"]
    model = neuron("user", states=states, params={"a": 0.8}, equations=equations, output=[*outputs, "v"])
    assert derive_kernel(model, atan()).binary == {"o0", "o1"}


@pytest.mark.parametrize(
    ("model", "learnable", "history", "saved"),
    [
        (LIF(), (), ("s0",), 0),
        (LIF(), ("beta", "threshold"), ("s0",), 0),
        (LIF(reset="none"), (), ("s0",), 0),
        (LIF(reset_delay=False), (), (), 1),
        (LIF(reset_delay=False), ("beta",), ("s0",), 1),
        (CubaLIF(), (), ("s1",), 0),
        (CubaLIF(), ("alpha",), ("s0", "s1"), 0),
        (ALIF(), (), ("s0", "s1"), 0),
        (LI(), (), (), 0),
        (LI(), ("beta",), ("s0",), 0),
        (Relay(), (), (), 0),
    ],
)
def test_the_fewest_arrays_are_kept(model, learnable, history, saved):
    kernel = derive_kernel(model, atan(), learnable)
    assert kernel.history == history
    assert len(kernel.saved) == saved


def test_forward_code_keeps_the_authors_operations():
    kernel = derive_kernel(LIF(), atan())
    assert [str(a) for a in kernel.forward] == ["k0 = spike(s0_prev - a1)", "s0 = a0 * s0_prev + i0 - k0 * a1", "o0 = spike(s0 - a1)"]


@pytest.mark.parametrize("name", MODELS)
def test_code_is_in_single_assignments_and_reads_what_the_contract_allows(name):
    kernel = derive_kernel(MODELS[name], atan(), MODELS[name].parameters)
    known = {*kernel.inputs, *(f"{s}_prev" for s in kernel.states), *kernel.parameters}
    allowed = {*kernel.parameters, *kernel.saved, *kernel.history, *(f"{s}_prev" for s in kernel.history)}
    allowed |= {f"d_{n}" for n in (*kernel.states, *kernel.outputs)}
    for code, names in ((kernel.forward, known), (kernel.backward, allowed)):
        for assignment in code:
            assert assignment.target not in names
            assert set(symbols(assignment.value)) <= names
            assert "detach" not in str(assignment)
            names.add(assignment.target)
    assert {*kernel.states, *kernel.outputs, *kernel.saved} <= known
    assert {f"d_{n}" for n in (*kernel.inputs, *kernel.learnable)} | {f"d_{s}_prev" for s in kernel.states} <= allowed


def test_dead_assignments_are_dropped():
    model = neuron("n", states={"v": 0}, equations="v = v + i\ndead = exp(v)\ns = spike(v)")
    assert "exp" not in "".join(map(str, derive_kernel(model, atan()).forward))


def test_no_power_and_no_division_by_a_constant_is_left_in_simple_adjoints():
    model = neuron("n", states={"v": 0}, equations="v = pow(v, 2)/3 + pow(v, 3)/7 + i", output="v")
    text = "".join(map(str, derive_kernel(model, atan()).backward))
    assert "pow" not in text
    assert "/" not in text


def test_deep_equations_are_derived():
    deep = "v"
    for _ in range(60):
        deep = f"tanh({deep})*v + i"
    check(neuron("deep", states={"v": 0.1}, params={"a": 1}, equations=f"v = {deep}\ns = spike(v - a)"), atan(), steps=2)


@pytest.mark.parametrize("text", ["2*v", "1.5*v + i"])
def test_nested_powers_end(text):
    for _ in range(8):
        text = f"pow({text}, 1000)"
    with pytest.raises(EquationError, match="not finite"):
        derive_kernel(LIF(), custom(text.replace("v", "x").replace(" + i", "")))
    kernel = derive_kernel(neuron("n", states={"v": 0}, equations=f"v = tanh({text})\ns = spike(v)"), atan())
    assert len(kernel.backward) < 100


def test_unknown_learnable_names_are_refused():
    with pytest.raises(NeuronDefinitionError, match="tau cannot be learned; it has beta, threshold"):
        derive_kernel(LIF(), atan(), ["tau"])


def test_unknown_ports_are_refused():
    with pytest.raises(NeuronDefinitionError, match="the output w is neither"):
        derive_kernel(LIF(), atan(), ports=["w"])


@pytest.mark.parametrize("equation", ["v = v/0", "v = v*pow(0, -1)", "v = v*pow(-1, 0.3)"])
def test_constant_parts_that_are_not_finite_are_refused(equation):
    with pytest.raises(EquationError):
        derive_kernel(neuron("n", states={"v": 0}, equations=equation, output="v"), atan())


def test_a_surrogate_of_the_user_is_used():
    check(LIF(), custom("where(ge(1, abs(x)), 1 - x*x, 0.1*exp(-abs(x)))"))


FORMS = (
    *("({} + {})", "({} - {})", "({} * {})", "({} * {})", "(-{})", "({} / (2 + sigmoid({})))", "tanh({})", "sigmoid({})"),
    *("sin({})", "cos({})", "erf({})", "abs({})", "exp(tanh({}))", "sqrt(1 + pow({}, 2))", "log(1.5 + sin({}))"),
    *("min({}, {})", "max({}, {})", "spike({} - 0.3)", "spike_ge({})", "detach({})", "where(gt({}, {}), {}, {})"),
    *("where({}, {}, {})", "sign({})", "ge({}, {})", "pow(1.1 + sin({}), {})"),
)


@st.composite
def expressions(draw, names, depth=3):
    if depth == 0 or draw(st.integers(0, 5)) == 0:
        return draw(st.sampled_from([*names, *names, "0.5", "1", "-0.25", "2"]))

    def operand():
        return draw(expressions(names, depth - 1))

    form = draw(st.sampled_from(FORMS))
    return form.format(*(operand() for _ in range(form.count("{}"))))


@st.composite
def models(draw):
    names = ["v", "u", "i", "j", "a", "b"]
    lines = []
    for _ in range(draw(st.integers(1, 5))):
        value = draw(expressions(tuple(names)))
        target = draw(st.sampled_from(["v", "u", "t", "s", "w"]))
        lines.append(f"{target} = tanh({value})" if draw(st.booleans()) else f"{target} = {value}")
        names.append(target)
    assigned = [n for n in ("v", "u", "t", "s", "w") if n in names]
    ports = draw(st.lists(st.sampled_from(assigned), min_size=1, max_size=3, unique=True))
    return neuron(
        "random", inputs=["i", "j"], states={"v": 0.2, "u": -0.1}, params={"a": 0.7, "b": 1.3}, equations="\n".join(lines), output=ports
    )


@settings(max_examples=examples(12, 60), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(models())
def test_random_equations(model):
    case = Case(model, steps=3, batch=2, neurons=3)
    with np.errstate(all="ignore"):
        outputs, expected = run_torch(case, atan(), ("a", "b"))
        assume(np.isfinite(outputs).all() and all(np.isfinite(g).all() and np.abs(g).max() < 1e8 for g in expected))
        check(model, atan(), steps=3, batch=2, neurons=3, tolerance=1e-8)


@pytest.mark.parametrize("name", MODELS)
def test_code_without_an_adjoint_computes_bit_for_bit_the_same(name):
    model = MODELS[name]
    alone, whole = forward_kernel(model), derive_kernel(model, atan(2.0), model.parameters)
    rng = np.random.default_rng(3)
    names = [*whole.inputs, *whole.parameters, *(f"{s}_prev" for s in whole.states)]
    values = {n: rng.normal(size=50).astype(np.float32) for n in names}
    one, other = evaluate(alone.forward, values), evaluate(whole.forward, values)
    assert (alone.backward, alone.history, alone.saved) == ((), (), ())
    for n in (*whole.states, *whole.outputs):
        np.testing.assert_array_equal(one[n], other[n])


def test_running_a_network_does_not_load_sympy():
    code = (
        "import sys, numpy as np, snnc\n"
        "net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF())\n"
        "with snnc.compile(net, steps=2) as session: session.run(np.ones((2, 1, 4)))\n"
        "print('sympy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"
