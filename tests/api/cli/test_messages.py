"""User errors in Python and on the command line cause one message with a code."""

import json

import numpy as np
import pytest

import snnc
from snnc.backends.registry import backend_of, named
from snnc.backends.runtime.errors import SessionError
from snnc.cli import main as cli
from snnc.compiler.machines import target_names
from snnc.errors import SnncError

OTHERS = [backend.name for backend in named()]
X, Y = np.zeros((8, 5, 4), np.float32), np.zeros(8, np.int64)
NAN = X.copy()
NAN[1, 2, 3] = np.nan


def network(kind="spikes"):
    net = snnc.Network()
    source, readout = net.input(4, kind=kind), net.population(3, snnc.LI())
    net.connect(source, readout, snnc.Dense())
    return net


@pytest.fixture(scope="module")
def session():
    with snnc.compile(network(), loss="ce_mean_membrane", steps=5) as made:
        yield made


# ---- training --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epochs", [1.5, 2.0, 0, -1, True, "2", None, float("nan"), float("inf")])
def test_epochs_are_whole_numbers(session, epochs):
    with pytest.raises(SnncError, match=r"SNNC-E519: epochs is .*; it must be a whole number of 1 or more"):
        session.fit(X, Y, epochs=epochs)


@pytest.mark.parametrize(
    "options",
    [
        *({"batch": value} for value in (2.5, 0, "4", True)),
        *({"seed": value} for value in (1.5, -1, "a")),
        *({"accumulate": value} for value in (1.5, 0, "2")),
        *({"first_epoch": value} for value in (0.5, -1)),
        *({"learning_rate": value} for value in (float("nan"), -1, "-0.1", True)),
        pytest.param({"learning_rate": lambda epoch: None}, id="learning_rate of no value"),
    ],
    ids=str,
)
def test_numbers_of_training_that_are_none_are_refused(session, options):
    (name,) = options
    with pytest.raises(SnncError, match=rf"SNNC-E519: .*{name.replace('_', ' ') if name == 'learning_rate' else name}"):
        session.fit(X, Y, **options)


def test_numbers_of_numpy_are_numbers(session):
    assert len(session.fit(X, Y, epochs=np.int64(2), batch=np.int32(4), learning_rate=np.float32(0.1), seed=np.uint8(1)).losses) == 2


@pytest.mark.parametrize(
    ("x", "y", "says"),
    [
        (X[:0], Y[:0], r"SNNC-E503: .*shape \[0, 5, 4\] \(no samples\)"),
        ([], [], r"SNNC-E503: .*no samples"),
        (X[:, :0], Y, r"SNNC-E503: .*they are empty"),
        (NAN, Y, r"SNNC-E505: .*nan at index \[1, 2, 3\] \(1 of 160"),
        (X.astype(object), Y, r"SNNC-E504: .*objects \(float\)"),
        ([[1, 2], [3]], Y, r"SNNC-E504: .*not an array of numbers.*same length"),
        (X + 1j, Y, "SNNC-E504: .*complex64"),
        ("abc", Y, "SNNC-E504: .*<U3"),
        (None, Y, r"SNNC-E504: .*NoneType"),
        (X + 0.5, Y, r"SNNC-E507: .*0\.5 at index \[0, 0, 0\] \(160 of 160"),
        (X, Y + 3, r"SNNC-E506: label 3 of sample 0 is not in 0 … 2 \(8 of 8"),
        (X, Y - 1, "SNNC-E506: label -1"),
        (X, Y * 1.0, r"SNNC-E504: the labels are float64; give integers, class indices, as in y\.astype\(int\)"),
        (X, Y > 0, "SNNC-E504: the labels are bool"),
        (X, np.eye(3, dtype=int)[Y], r"SNNC-E503: .*\[8, 3\].*y\.argmax\(axis=1\)"),
        (X, ["a"] * 8, r"SNNC-E504: .*<U1.*return_inverse"),
        (X, [None] * 8, "SNNC-E504: y contains objects"),
        (X, Y[:3], r"SNNC-E503: .*shape \[3\]; 8 samples"),
    ],
)
def test_samples_and_labels_that_are_none_are_refused_in_python_and_on_the_command_line(session, x, y, says, tmp_path, capsys):
    with pytest.raises(SessionError, match=says):
        session.fit(x, y)
    if "E503: the labels" not in says and np.asarray(y).dtype != object and not isinstance(x, list | str) and x is not None:
        arrays = {"x": np.asarray(x), "y": np.asarray(y)}
        if all(a.dtype != object for a in arrays.values()):
            snnc.compile(network(), loss="ce_mean_membrane", steps=5, output=tmp_path / "p").close()
            np.savez(tmp_path / "d.npz", **arrays)
            assert cli.run_command(["train", str(tmp_path / "p"), "--data", str(tmp_path / "d.npz")]) == 2
            assert capsys.readouterr().err.splitlines()[-1].startswith(f"error: {says[:9]}")


def test_swapped_samples_and_steps_are_named():
    swapped = X.swapaxes(0, 1)
    with snnc.compile(network(), loss="ce_mean_membrane", optimizer="sgd", steps=5) as fixed:
        says = r"E508: .*shape \[5, 8, 4\], so 8 steps of 5 samples.* 5 steps.*\[samples, T, 4\].*swapaxes"
        for call in (lambda: fixed.fit(swapped, Y), lambda: fixed.predict(swapped), lambda: fixed.evaluate(swapped, Y)):
            with pytest.raises(SessionError, match=says):
                call()
        says = r"E508: the inputs have 8 steps; the network was compiled for 5\. They have 5 .*\[T, B, 4\]"
        with pytest.raises(SessionError, match=says):
            fixed.run(X)
        with pytest.raises(SessionError, match=r"E508: .*shape \[8, 3, 4\].*must be \[samples, T, 4\]\.$"):
            fixed.predict(X[:, :3])
        with pytest.raises(SessionError, match=r"E508: the inputs have 3 steps; the network was compiled for 5\.$"):
            fixed.run(swapped[:3])


def test_swapped_samples_are_named_where_any_number_of_steps_runs():
    swapped = X.swapaxes(0, 1)
    with snnc.compile(network(), loss="ce_mean_membrane", optimizer="sgd") as free:
        with pytest.raises(SessionError, match=r"E503: the labels have shape \[8\]; 5 samples .*; the samples have 8 steps.*swapaxes"):
            free.fit(swapped, Y)
        with pytest.raises(SessionError, match=r"E508: the inputs have 5 steps, but 3 were requested\.$"):
            free.run(swapped, steps=3)


def test_swapped_targets_of_each_step_are_named():
    with snnc.compile(network(), loss="mse_membrane:targets=step_values", optimizer="sgd", steps=5) as session:
        session.fit(X, np.zeros((8, 5, 3)))
        with pytest.raises(SessionError, match=r"E503: the targets have shape \[5, 8, 3\].*\[8, 5, 3\]\. Samples and steps look swapped"):
            session.fit(X, np.zeros((5, 8, 3)))
        with pytest.raises(SessionError, match=r"E503: the targets have shape \[8, 4, 3\].*\[8, 5, 3\]\.$"):
            session.fit(X, np.zeros((8, 4, 3)))


@pytest.mark.parametrize("call", ["predict", "evaluate", "run"])
def test_every_method_refuses_empty_and_wrong_arrays(session, call):
    run = {"predict": session.predict, "evaluate": lambda x: session.evaluate(x, Y), "run": lambda x: session.run(x.swapaxes(0, 1))}[call]
    for x, code in ((X[:0], "SNNC-E503"), (NAN, "SNNC-E505"), (X.astype(object), "SNNC-E504"), (X + 0.5, "SNNC-E507")):
        with pytest.raises(SessionError, match=code):
            run(x)


# ---- options ---------------------------------------------------------------------------------------------------------


class FrameworksLoss:
    name = "ce_count"


@pytest.mark.parametrize(
    ("option", "value", "says"),
    [
        ("loss", lambda a, b: 0, r"loss is the function <lambda>.*'ce_count'.*snnc\.torch\.Module"),
        ("loss", FrameworksLoss(), "FrameworksLoss"),
        ("loss", FrameworksLoss, "the class FrameworksLoss instead of an instance"),
        ("loss", snnc.CrossEntropy, "the function cross_entropy"),
        ("loss", 3, r"3 \(an int\)"),
        ("optimizer", snnc.Adam, "the class Adam instead of an instance"),
        ("optimizer", 0.1, r"0\.1 \(a float\)"),
        ("optimizer", FrameworksLoss(), r"snnc\.Adam\(0\.001\)"),
        ("surrogate", lambda x: x, "custom:"),
        ("surrogate", 25, "fast_sigmoid:25"),
        ("target", None, "target is None"),
        ("target", 200, r"200 \(an int\)"),
    ],
)
def test_an_option_of_another_kind_is_refused(option, value, says):
    with pytest.raises(SnncError, match=rf"SNNC-E572: .*{says}"):
        snnc.compile(network(), **{"loss": "ce_count"} | {option: value})


def test_a_time_step_that_is_no_number_is_refused():
    with pytest.raises(SnncError, match="SNNC-E528: dt is 'a'"):
        snnc.compile(network(), dt="a")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gc20", "gc200"),
        ("GC200", "gc200"),
        ("cup", "cpu"),
        ("gpu", "cuda"),
        ("cuda:0", "cuda"),
        ("refrence", "reference"),
        ("pop torch", "poptorch"),
    ],
)
def test_an_unknown_target_names_what_there_is_and_what_is_nearest(name, meant, tmp_path, capsys):
    with pytest.raises(SnncError, match=rf"SNNC-E301: .*Did you mean '{meant}'\?") as found:
        snnc.compile(network(), target=name, steps=4)
    assert all(known in str(found.value) for known in (*OTHERS, *target_names()))
    snnc.write_onnx(network().graph(), tmp_path / "m.onnx")
    assert cli.run_command(["compile", str(tmp_path / "m.onnx"), "--target", name, "--steps", "4", "-o", str(tmp_path / "b")]) == 2
    assert f"Did you mean '{meant}'?" in capsys.readouterr().err


def test_a_name_like_no_other_and_a_file_that_is_not_there():
    with pytest.raises(SnncError, match=r"SNNC-E301: the target 'xyzzy' is unknown\. Targets are"):
        snnc.compile(network(), target="xyzzy", steps=4)
    with pytest.raises(SnncError, match=r"SNNC-E301: the target file 'no\.toml' does not exist"):
        snnc.compile(network(), target="no.toml", steps=4)


# ---- the list of targets ---------------------------------------------------------------------------------------------


def test_the_list_of_targets_names_all_with_a_line_each(capsys):
    assert cli.run_command(["targets"]) == 0
    starts = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert {*OTHERS, *target_names()} <= set(starts)
    assert cli.run_command(["targets", "--json"]) == 0
    found = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert set(found) == {*OTHERS, *target_names()}
    assert {name for name, entry in found.items() if entry["kind"] == "machine"} == set(target_names())
    assert all(found[name]["description"] for name in OTHERS)
    for name in ("cpu", "gc200"):
        assert cli.run_command(["targets", name, "--json"]) == 0
        assert json.loads(capsys.readouterr().out) == found[name]
    assert cli.run_command(["targets", "cpu"]) == 0
    assert capsys.readouterr().out == f"cpu        {backend_of('cpu').about}\n"
