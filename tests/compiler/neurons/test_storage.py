"""A sequence stores the minimum number of arrays."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from wide import examples

from snnc.compiler.neurons.expression import symbols
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.single_assignment import lower
from snnc.compiler.neurons.stored_values import choose_storage


def suffices(equations, stored, needed):
    """True when `needed` can be computed from parameters, the histories and the other values in `stored`."""
    known = {*equations.parameters, *stored, *(f"{s}_prev" for s in equations.states if s in stored)}
    for assignment in equations.assignments:
        if set(symbols(assignment.value)) <= known:
            known.add(assignment.target)
    return needed <= known


def fewest(equations, needed):
    values = sorted({*equations.inputs, *equations.states, *(a.target for a in equations.assignments)})
    return next(n for n in range(len(values)) if any(suffices(equations, set(c), needed) for c in itertools.combinations(values, n)))


@st.composite
def programs(draw):
    names, lines = ["v", "u", "i", "j", "a"], []
    for n in range(draw(st.integers(1, 6))):
        operands = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True))
        target = draw(st.sampled_from(["v", "u", f"t{n}"]))
        lines.append(f"{target} = {' + '.join(operands)}")
        names.append(target)
    model = neuron(
        "random", inputs=["i", "j"], states={"v": 0, "u": 0}, params={"a": 1}, equations="\n".join(lines), output=["v", *names[5:]]
    )
    equations = lower(model)
    values = [*equations.inputs, "s0_prev", "s1_prev", *(a.target for a in equations.assignments)]
    return equations, frozenset(draw(st.lists(st.sampled_from(values), max_size=4)))


@settings(max_examples=examples(50, 150), deadline=None, derandomize=True)
@given(programs())
def test_no_smaller_storage_suffices(program):
    equations, needed = program
    storage = choose_storage(equations, needed)
    stored = {*storage.history, *storage.saved}
    assert suffices(equations, stored, needed)
    assert len(stored) == fewest(equations, needed)


@pytest.mark.parametrize("needed", [(), ("a0",)])
def test_parameters_are_not_stored(needed):
    equations = lower(neuron("n", states={"v": 0}, params={"a": 1}, equations="v = a*v + i", output="v"))
    storage = choose_storage(equations, needed)
    assert (storage.history, storage.saved) == ((), ())


def test_states_are_preferred_among_equals():
    equations = lower(neuron("n", states={"v": 0}, equations="v = v + i\nt = 2*v", output="t"))
    storage = choose_storage(equations, ["o0"])
    assert (storage.history, storage.saved) == (("s0",), ())


def test_a_costly_value_is_stored_rather_than_its_argument():
    equations = lower(neuron("n", equations="t = tanh(i)", output="t"))
    assert choose_storage(equations, ["o0"]).saved == ("o0",)
