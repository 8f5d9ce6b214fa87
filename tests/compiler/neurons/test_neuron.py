"""Valid and invalid neuron models."""

from pathlib import Path

import pytest

from snnc.compiler.errors import EquationError, NeuronDefinitionError
from snnc.compiler.neurons.library import LIBRARY, LIF, Alpha, CubaLIF, Lapicque
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.surrogates.library import LIBRARY as SURROGATES


def test_a_model_is_equal_to_another_with_the_same_contents():
    assert LIF(beta=0.5) == LIF(beta=0.5)
    assert LIF(beta=0.5) != LIF(beta=0.6)


@pytest.mark.parametrize("factory", LIBRARY, ids=lambda f: f.__name__)
def test_library_neurons_need_no_arguments_and_read_back_from_their_text(factory):
    model = factory()
    again = neuron(
        model.name, inputs=model.inputs, states=model.states, params=model.parameters, equations=model.text, output=model.outputs
    )
    assert again == model
    assert factory.__doc__


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"equations": "v = v + w"}, "reads w"),
        ({"equations": "s = spike(u)\nu = v"}, "reads u"),
        ({"equations": "i = v\ns = v"}, "assigns an input"),
        ({"equations": "beta = v\ns = v"}, "assigns an input or parameter"),
        ({"equations": "exp = v\ns = v"}, "cannot be a name"),
        ({"states": {"i": 0}}, "declared twice"),
        ({"params": {"v": 1}}, "declared twice"),
        ({"inputs": ["i", "i"]}, "declared twice"),
        ({"inputs": "a b"}, "cannot be a name"),
        ({"inputs": "a__b"}, "cannot be a name"),
        ({"inputs": "spike"}, "cannot be a name"),
        ({"output": "w"}, "neither a state nor assigned"),
        ({"output": "i"}, "neither a state nor assigned"),
        ({"output": "beta"}, "neither a state nor assigned"),
        ({"output": []}, "no output"),
    ],
)
def test_models_that_do_not_fit_together_are_refused(change, message):
    good = {"states": {"v": 0}, "params": {"beta": 0.9}, "equations": "v = beta*v + i\ns = spike(v - 1)"}
    neuron("good", **good)
    with pytest.raises(NeuronDefinitionError, match=message):
        neuron("bad", **(good | change))


def test_text_outside_the_language_is_refused():
    with pytest.raises(EquationError):
        neuron("bad", states={"v": 0}, equations="v = open('x')")


@pytest.mark.parametrize(
    "make",
    [
        lambda: LIF(reset="soft"),
        lambda: LIF(compensated=True),
        lambda: CubaLIF(reset="value", reset_delay=False, compensated=True),
        lambda: Alpha(reset="value"),
        lambda: Alpha(alpha=0.8, beta=0.9),
        lambda: Lapicque(R=1, C=1, beta=0.9),
        lambda: Lapicque(beta=1.5),
    ],
)
def test_options_of_library_neurons_are_checked(make):
    with pytest.raises(NeuronDefinitionError, match="SNNC-E102"):
        make()


def test_only_the_parameters_that_are_read_are_declared():
    assert list(LIF().parameters) == ["beta", "threshold"]
    assert list(LIF(reset="value").parameters) == ["beta", "threshold", "v_reset"]


def test_the_reference_page_shows_every_neuron_and_surrogate_as_it_is():
    page = (Path(__file__).parents[3] / "docs/reference/neurons.md").read_text()
    for factory in LIBRARY:
        assert f"### {factory.__name__}\n" in page
        assert f"```text\n{factory().text}\n```" in page
        for parameter, value in factory().parameters.items():
            assert f"{parameter} = {value:g}" in page
    for name in SURROGATES:
        assert f"| `{name}` |" in page
