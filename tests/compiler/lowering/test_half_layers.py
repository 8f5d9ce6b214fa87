"""Float16 numbers by layer: which values of the step program are rounded, and the choices that are refused."""

import numpy as np
import pytest
from half_layers import CHOICES, chain, chosen, spikes_of

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.errors import HalfLayersError, HalfNumbersError, NothingRoundedError
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.half_numbers import HalfLayers, HalfNumbers, half_data, half_text, parse_half
from snnc.compiler.lowering.halves import Halves
from snnc.compiler.lowering.lower import lower
from snnc.options.compile_options import from_data, options, to_data

TRAINS = {"loss": parse_loss("ce_count"), "optimizer": SGD(0.1)}


def lowered(half=(), **given):
    return lower(chain(np.random.default_rng(3)), steps=9, half=half, **TRAINS, **given)


def layer(current, beta, half):
    """A LIF in NumPy whose membrane is float16 or float32; arithmetic is float32."""
    f, stored = np.float32, np.float16 if half else np.float32
    v, spikes = np.zeros(current.shape[1:], stored), []
    for now in current:
        fired = (v.astype(f) > 1).astype(f)
        v = (f(beta) * v.astype(f) + now - fired).astype(stored)
        spikes.append((v.astype(f) > 1).astype(f))
    return np.array(spikes)


def numpy_run(program, inputs, half):
    values = {p.label: p.value for p in program.parameters.values()}
    found = inputs["x0"]
    for number, name in enumerate(("first", "second", "readout"), 1):
        found = layer(found @ values[f"fc{number}.weight"].T + values[f"fc{number}.bias"], values[f"{name}.beta"], half == name)
    return found


def test_only_the_states_of_the_chosen_layer_are_rounded():
    """Weights have few bits, so that every order of adding them gives the same sums."""
    graph = chain(np.random.default_rng(3))
    for name in ("fc1", "fc2", "fc3"):
        op = graph.operation(name)
        op.weight[...], op.bias[...] = np.round(op.weight * 64) / 64, np.round(op.bias * 64) / 64
    found = {}
    for half in ("", "first", "second"):
        program = lower(graph, steps=60, half=Halves(named={half: frozenset(["states"])}) if half else ())
        inputs, _ = spikes_of(program, 60, 16)
        (found[half],) = ReferenceEngine(program).forward(inputs, {}).values()
        np.testing.assert_array_equal(found[half], numpy_run(program, inputs, half))
    assert (found[""] != found["first"]).any()
    assert (found["first"] != found["second"]).any()


def test_each_kind_is_rounded_in_the_chosen_layers_only():
    program = lowered(chosen("mixed"))
    kernels = {p.label: p.kernel for p in program.populations}
    assert {name: bool(k.halves) for name, k in kernels.items()} == {"first": True, "second": True, "readout": False}
    assert all(kernel.rounded for kernel in kernels.values())
    weights = {c.label: program.parameters[c.weight].half for c in program.connections}
    assert weights == {"fc1": False, "fc2": False, "fc3": True}
    program = lowered(chosen("history of one"))
    assert {p.label: bool(p.kernel.rounded) for p in program.populations} == {"first": True, "second": False, "readout": True}
    program = lowered(chosen("deltas and weights of one"))
    assert {op.connection: op.half for op in program.backward if hasattr(op, "half")} == {"c1": True, "c2": False}
    assert {c.label: program.parameters[c.weight].half for c in program.connections} == {"fc1": False, "fc2": True, "fc3": False}


def test_parts_of_a_layer_have_its_kinds():
    halves = Halves(frozenset(["history"]), {"hidden": frozenset(["states"]), "in to hidden": frozenset(["weights"])})
    assert halves.of("hidden part 2") == {"states"}
    assert halves.of("in to hidden from part 0 to part 2", "hidden part 2") == {"weights"}
    assert halves.of("other part 1") == halves.of("department 1") == {"history"}
    assert list(halves) == ["history", "weights", "states"]
    assert "deltas" not in halves


@pytest.mark.parametrize("text", [*CHOICES.values(), "weights:master; a=weights:master,states; b = float32"])
def test_choices_survive_text_and_the_files_of_a_project(text):
    half = parse_half(text)
    assert parse_half(half_text(half)) == half == parse_half(half_data(half))
    given = options("reference", loss="ce_count", optimizer="sgd", half=text)
    assert from_data(to_data(given)) == given
    names = parse_half({"a; b=c": "states", "*": HalfNumbers("master")})
    assert parse_half(half_data(names)) == names == parse_half(half_text(names))
    assert names == HalfLayers(HalfNumbers("master"), (("a; b=c", HalfNumbers(states=True)),))


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("states; a=states; a=weights", HalfLayersError, "two choices for 'a'"),
        ("states; weights", HalfLayersError, r"two choices for '\*'"),
        ("=states", HalfLayersError, "empty name"),
        ("weights; a=weights:master", HalfLayersError, "weights:master and weights:nearest"),
        ("a=float32", HalfNumbersError, "every layer is float32"),
        ("states; a=membrane", HalfNumbersError, "'membrane' is invalid"),
    ],
)
def test_choices_without_a_meaning_are_refused(text, error, says):
    with pytest.raises(error, match=says):
        parse_half(text)


@pytest.mark.parametrize(
    ("half", "error", "says"),
    [
        ("hiden=states", HalfLayersError, "'hiden'.*populations are first, second, readout, connections fc1, fc2, fc3"),
        ("fc1=states", NothingRoundedError, "'fc1' has no states"),
        ("first=deltas,history", NothingRoundedError, "'first' has no deltas"),
    ],
)
def test_names_without_such_numbers_are_refused(half, error, says):
    with pytest.raises(error, match=says):
        snnc.compile(chain(np.random.default_rng(3)), "reference", loss="ce_count", optimizer="sgd", half=half)
