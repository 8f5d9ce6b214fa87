"""Capacities per source: as numbers, shares, text and schedules, at compilation and during training."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import snnc
from snnc.backends.runtime.errors import ResumeError, SpikeLimitError
from snnc.backends.training.schedules import LinearSchedule, TrainingPosition
from snnc.backends.training.updates.capacities import CapacityPlan
from snnc.compiler.lowering.capacities import Capacities, CapacityTextError, Share, parse_capacity
from snnc.compiler.lowering.spike_limits import limited_sources
from snnc.errors import OptionValueError
from snnc.options.compile_options import from_data, options, to_data
from snnc.recipe import RecipeError, read_recipe

X, Y = (np.random.default_rng(0).random((24, 5, 20)) < 0.5).astype(np.float32), np.arange(24) % 3


def network():
    net = snnc.Network("net", seed=1)
    x, a = net.input(20), net.population(40, snnc.LIF(beta=0.9), name="a")
    b, y = net.population(10, snnc.LIF(beta=0.9), name="b"), net.population(3, snnc.LI(beta=0.9), name="y")
    for source, to in ((x, a), (a, b), (b, y)):
        net.connect(source, to, snnc.Dense(init=snnc.Normal(std=0.6)))
    return net


def compiled(capacity, target="reference", **more):
    given_ = {"loss": "mean membrane", "optimizer": "adam:0.01", "steps": 5, "mode": "drop", "capacity": capacity} | more
    return snnc.compile(network(), target, **given_)


@pytest.mark.parametrize(
    ("given_", "found"),
    [
        (3, {"input": 3, "a": 3, "b": 3}),
        ("10 %", {"input": 2, "a": 4, "b": 1}),
        (Share(25), {"input": 5, "a": 10, "b": 3}),
        ("10 %; a=7", {"input": 2, "a": 7, "b": 1}),
        ({"*": 4, "b": "20 %"}, {"input": 4, "a": 4, "b": 2}),
        ({"a": 2}, {"a": 2}),
    ],
)
def test_a_capacity_is_a_number_a_share_or_one_by_name(given_, found):
    with compiled(given_) as session:
        sources = limited_sources(session.program).values()
        assert [int(session.program.parameters[s.capacity].value) for s in sources] == list(found.values())
        assert session.capacity == (next(iter(found.values())) if len(set(found.values())) == 1 else found)


def test_capacities_change_in_a_run_up_to_the_compiled_ones():
    with compiled("50 %; a=8") as session:
        assert session.capacity == {"input": 10, "a": 8, "b": 5}
        session.capacity = "10 %"
        assert session.capacity == {"input": 2, "a": 4, "b": 1}
        session.capacity = {"b": 4}
        assert session.capacity == {"input": 2, "a": 4, "b": 4}
        session.capacity = 9
        assert session.capacity == {"input": 9, "a": 8, "b": 5}
        for wrong in ({"a": 9}, 11, {"b": 0}):
            with pytest.raises(SpikeLimitError, match="from 1 to the compiled capacity"):
                session.capacity = wrong
        with pytest.raises(CapacityTextError, match=r"^SNNC-E600: .*set for 'c'.* sources of spikes are input, a, b"):
            session.capacity = {"c": 2}


def test_schedules_by_source_are_followed_and_resumed_by_their_text(tmp_path):
    seen = []
    with compiled("50 %") as session:
        given_ = {"input": LinearSchedule(10, 4, updates=3), "*": Share(LinearSchedule(50, 20, updates=3))}
        kept = snnc.Checkpoints(tmp_path / "c")
        session.fit(X, Y, epochs=1, batch=6, capacity=given_, callback=lambda _: seen.append(session.capacity), checkpoints=kept)
        text = CapacityPlan.of(given_).text
        assert "%; input=linear:" in text
        assert CapacityPlan.of(text).text == text
        with pytest.raises(ResumeError):
            session.fit(X, Y, epochs=2, batch=6, capacity=5, checkpoints=snnc.Checkpoints(tmp_path / "c", resume=True))
    assert seen[:4] == [
        {"input": 10, "a": 20, "b": 5},
        {"input": 8, "a": 16, "b": 4},
        {"input": 6, "a": 12, "b": 3},
        {"input": 4, "a": 8, "b": 2},
    ]


NAMES = ("a", "hidden layer", "x.0", "a;b", 'in "x"; y=3', "c\\d:e", " f ", "größe")


@given(
    default=st.none() | st.integers(1, 999) | st.floats(0.1, 100).map(lambda p: Share(float(f"{p:.3g}"))),
    named=st.dictionaries(st.sampled_from(NAMES), st.integers(1, 99) | st.sampled_from([Share(1.5), Share(20.0)])),
)
def test_the_text_of_a_capacity_says_all_of_it(default, named):
    if default is None and not named:
        return
    found = Capacities(default, tuple(named.items()))
    again = parse_capacity(found.text)
    assert again == (default if not named and isinstance(default, int) else found)
    chosen = options("cpu", mode="drop", capacity=again)
    assert from_data(to_data(chosen)) == chosen


UNREADABLE = ("a;b=20", '"a;b=20', '"a;b" 20')
"""Names with a semicolon, without quotes around exactly the name."""


@pytest.mark.parametrize("wrong", [*UNREADABLE, "", "many", "5 %; 6 %", "a=1; a=2", "0 %", "101 %", "=3", "2.5", {}, {"a": "x"}, "nan %"])
def test_what_is_no_capacity_is_refused(wrong):
    with pytest.raises(CapacityTextError, match=r"^SNNC-E600: "):
        options("cpu", mode="drop", capacity=wrong)


def test_names_with_semicolons_are_written_in_quotes():
    net = snnc.Network()
    hidden = net.population(10, snnc.LIF(), name="a;b")
    net.connect(net.input(10, name="x"), hidden)
    net.connect(hidden, net.population(2, snnc.LI()))
    with snnc.compile(net, steps=3, mode="drop", capacity='50 %; "a;b" = 2') as session:
        assert session.capacity == {"x": 5, "a;b": 2}
        assert CapacityPlan.of({"a;b": LinearSchedule(2, 1, updates=3)}).text.startswith('"a;b"=linear:')
    with pytest.raises(CapacityTextError, match=r"two values without a name, '50 %' and 'a'; .* in quotes: '\"a;b\"=20'"):
        parse_capacity("50 %; a; b=2")


def test_a_compilation_refuses_names_of_no_source_and_numbers_below_one():
    for target in ("reference", "gc200"):
        with pytest.raises(CapacityTextError, match="set for 'c'"):
            compiled({"c": 3}, target, batch=4)
    with pytest.raises(OptionValueError):
        compiled({"a": 0})


def test_a_machine_has_windows_of_the_capacities_of_its_sources():
    plan = snnc.estimate(network(), "gc200", steps=5, batch=4, loss="mean membrane", mode="drop", capacity="10 %; a=7").plan
    assert {bus.source: bus.capacity for bus in plan.buses if bus.kind == "events"} == {"x0": 2, "p0": 7, "p1": 1}


def test_recipes_have_capacities_as_text_and_tables(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text('epochs = 1\ncapacity = "linear:10,5,epochs=2 %"\n')
    assert read_recipe(path)["capacity"] == "linear:10,5,epochs=2 %"
    path.write_text('[capacity]\n"*" = "5 %"\nhidden = "linear:20,10,epochs=3"\n')
    plan = CapacityPlan.of(read_recipe(path)["capacity"])
    assert plan.at(TrainingPosition(0, 0, 10)) == Capacities(Share(5.0), (("hidden", 20.0),))
    for wrong in ("capacity = true", "[capacity]\nhidden = [1]", 'capacity = "sometimes"', "[capacity]"):
        path.write_text(wrong + "\n")
        with pytest.raises(RecipeError, match=r"line 1: capacity = .* must be a number of 1 or more, a share"):
            read_recipe(path)
