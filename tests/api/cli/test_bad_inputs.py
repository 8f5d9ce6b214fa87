"""An invalid model or path causes one line with a code and exit code 2, and leaves no files."""

import os
import pwd
import re
import shutil
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from caches import lend_objects
from onnx import TensorProto, helper, numpy_helper

import snnc
from snnc.cli import main as cli
from snnc.compiler.errors import CacheFolderError, TemporaryFolderError
from snnc.compiler.files.cache import reporting_write_errors

CORPUS = Path(__file__).parents[2] / "corpus"
DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


def small(path, nodes, inputs, outputs, **weights):
    """Write a model of float32 values [1, 3]."""
    values = {name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3]) for name in (*inputs, *outputs)}
    initialisers = [numpy_helper.from_array(np.asarray(value, np.float32), name) for name, value in weights.items()]
    graph = helper.make_graph(nodes, "small", [values[n] for n in inputs], [values[n] for n in outputs], initialisers)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def without_state(path):
    """Neurons that fire, but carry nothing from step to step."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["mem"]),
        helper.make_node("Greater", ["mem", "threshold"], ["above"]),
        helper.make_node("Cast", ["above"], ["spk"], to=TensorProto.FLOAT),
    ]
    small(path, nodes, ["x"], ["spk"], w=np.eye(3), threshold=1.0)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A file with one layer, in a folder of its own."""
    file = tmp_path_factory.mktemp("model") / "small.onnx"
    net = snnc.Network("net")
    net.connect(net.input(64, name="spikes"), net.population(10, snnc.LIF(), name="readout"), snnc.Dense())
    snnc.write_onnx(net.graph(), file)
    return file


def from_corpus(name):
    return lambda path: shutil.copy(CORPUS / name, path)


def truncated(path):
    path.write_bytes(DIGITS.read_bytes()[:5000])


def poisoned(path):
    model = onnx.load(DIGITS)
    weight = next(i for i in model.graph.initializer if len(i.dims) == 2)
    values = numpy_helper.to_array(weight).copy()
    values[0, 0] = np.nan
    weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    onnx.save(model, path)


@pytest.mark.parametrize(
    "write",
    [
        truncated,
        poisoned,
        lambda path: path.write_bytes(b""),
        lambda path: path.symlink_to("/dev/zero"),
        os.mkfifo,
        lambda path: path.write_bytes(bytes(range(256)) * 9),
        from_corpus("bad_truncated_half.onnx"),
        from_corpus("bad_cycle_no_delay.onnx"),
        from_corpus("bad_shape_weight_mismatch.onnx"),
        from_corpus("bad_nan_weight.onnx"),
        from_corpus("bad_unknown_op.onnx"),
        from_corpus("bad_zero_timesteps.onnx"),
        from_corpus("bad_nir_truncated.nir"),
    ],
    ids=["cut", "nan", "empty", "endless", "pipe", "bytes", "half", "cycle", "shapes", "nan weight", "unknown operator", "no steps", "nir"],
)
@pytest.mark.parametrize("command", ["check", "compile", "run"])
def test_a_bad_model_is_one_coded_line_and_nothing_is_left(capsys, tmp_path, write, command):
    model = tmp_path / "model.onnx"
    write(model)
    np.savez(tmp_path / "x.npz", x=np.zeros((2, 1, 4), np.float32))
    before = sorted(tmp_path.iterdir())
    rest = {
        "check": [],
        "compile": ["--steps", "3", "-o", tmp_path / "out"],
        "run": ["--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"],
    }
    assert cli.run_command([str(a) for a in (command, model, *rest[command])]) == 2
    captured = capsys.readouterr()
    (line,) = [text for text in captured.err.splitlines() if text.startswith("error: ")]
    assert line.startswith("error: SNNC-E")
    assert "E599" not in line
    assert "Traceback" not in captured.err
    assert captured.out == ""
    assert sorted(tmp_path.iterdir()) == before


def test_a_name_that_no_file_can_have(capsys):
    assert cli.run_command(["check", "x" * 5000]) == 2
    assert "cannot be used: file name too long" in capsys.readouterr().err


def test_neurons_without_memory_are_never_taken_silently(capsys, tmp_path):
    without_state(tmp_path / "model.onnx")
    code = cli.run_command(["check", str(tmp_path / "model.onnx")])
    captured = capsys.readouterr()
    assert code == 2 or "state" in captured.out + captured.err, captured


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--batch", "0"], "SNNC-E528"),
        (["--batch", "many"], "SNNC-E520"),
        (["--target", "gc9000"], "SNNC-E"),
        (["--data", "missing.npz"], "SNNC-E521"),
        (["--loss", "ce_count", "--lr", "0"], "SNNC-E528"),
        (["--capacity", "0"], "SNNC-E528"),
        (["--target", "cpu", "-o", "/proc/snnc/out"], "SNNC-E412"),
    ],
)
def test_bad_options_of_compile(capsys, tmp_path, monkeypatch, options, code):
    monkeypatch.chdir(tmp_path)
    out = [] if "-o" in options else ["-o", "out"]
    assert cli.run_command(["compile", str(DIGITS), *out, *options]) == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].startswith(f"error: {code}")
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_while_a_program_is_emitted(capsys, tmp_path, model, monkeypatch):
    opened = Path.open

    def full(path, mode="r", *rest, **options):
        if path.name == "codelets.cpp" and "w" in mode:
            raise OSError(28, "No space left on device")
        return opened(path, mode, *rest, **options)

    monkeypatch.setattr(Path, "open", full)
    assert cli.run_command(["compile", str(model), "--steps", "25", "-o", str(tmp_path / "out")]) == 2
    err = capsys.readouterr().err
    assert "disk is full" in err or "no space" in err
    assert list(tmp_path.iterdir()) == []


def test_no_compiler_is_told_with_exit_code_3(capsys, tmp_path, model, monkeypatch):
    assert cli.run_command(["compile", str(model), "--target", "cpu", "-o", str(tmp_path / "out")]) == 0
    np.savez(tmp_path / "x.npz", spikes=np.zeros((25, 1, 64), np.uint8))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    capsys.readouterr()
    arguments = ["run", tmp_path / "out", "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"]
    assert cli.run_command([str(a) for a in arguments]) == 3
    assert "SNNC-E400" in capsys.readouterr().err
    assert not (tmp_path / "y.npz").exists()


@pytest.mark.parametrize("cache", ["/proc/snnc", "/dev/null/snnc"])
def test_a_cache_folder_that_cannot_be_written_is_told_with_the_knob(capsys, tmp_path, model, monkeypatch, cache):
    monkeypatch.setenv("SNNC_CACHE", cache)
    assert cli.run_command(["compile", str(model), "--target", "cpu", "-o", str(tmp_path / "out")]) == 0
    np.savez(tmp_path / "x.npz", spikes=np.zeros((25, 1, 64), np.uint8))
    capsys.readouterr()
    arguments = ["run", tmp_path / "out", "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"]
    assert cli.run_command([str(a) for a in arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: SNNC-E028: snnc stores its builds in '{cache}'")
    assert "SNNC_CACHE=" in err
    assert not (tmp_path / "y.npz").exists()


@pytest.fixture
def lent(tmp_path):
    """A cache in which what all projects share is compiled already."""
    lend_objects(tmp_path / "cache")


@pytest.fixture
def homeless(monkeypatch):
    """A user without HOME and without an entry in /etc/passwd, as in a container that runs as a number."""

    def nobody(_):
        raise KeyError("uid not found")

    for name in ("HOME", "SNNC_CACHE", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)


def test_without_a_home_what_needs_no_build_works_and_the_rest_says_what_to_set(capsys, tmp_path, model, lent, homeless, monkeypatch):
    np.savez(tmp_path / "x.npz", spikes=np.zeros((25, 1, 64), np.uint8))

    def call(*arguments):
        return cli.run_command([str(a) for a in arguments]), capsys.readouterr()

    for target in ("reference", "cpu", "gc200"):
        assert call("compile", model, "--target", target, "--steps", 25, "-o", tmp_path / target)[0] == 0
    for target in ("reference", "cpu", "gc200"):
        status, said = call("run", tmp_path / target, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz")
        assert status == (0 if target == "reference" else 2)
        assert target == "reference" or said.err.startswith(
            "error: SNNC-E028: snnc stores its builds in the home folder, which does not exist"
        )
        assert target == "reference" or "SNNC_CACHE=FOLDER" in said.err
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path / "cache"))
    line = ("run", tmp_path / "cpu", "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz")
    status, said = call(*line)
    assert (status, said.err[:17]) == (2, "error: SNNC-E445:")  # nothing could remember who compiled it
    assert call(*line, "--trust")[0] == 0
    assert call(*line)[0] == 0


def test_doctor_says_where_the_cache_is_and_what_to_set_where_there_is_none(capsys, homeless, tmp_path, monkeypatch):
    assert cli.run_command(["doctor"]) == 0
    assert re.search(r"missing +cache: no home folder .*\n.*SNNC_CACHE=FOLDER", capsys.readouterr().out)
    monkeypatch.setenv("SNNC_CACHE", "/dev/null/snnc")
    assert cli.run_command(["doctor"]) == 0
    assert re.search(r"missing +cache: /dev/null/snnc cannot be written", capsys.readouterr().out)
    monkeypatch.setenv("SNNC_CACHE", str(tmp_path / "cache"))
    assert cli.run_command(["doctor"]) == 0
    assert f"cache: {tmp_path / 'cache'}" in capsys.readouterr().out.replace("\n", "")
    assert not (tmp_path / "cache").exists()


def test_without_a_folder_for_temporary_files_it_is_said_what_to_set(capsys, monkeypatch):
    def nowhere():
        raise FileNotFoundError(2, "No usable temporary directory found")

    monkeypatch.setattr(tempfile, "gettempdir", nowhere)
    with pytest.raises(TemporaryFolderError, match=r"SNNC-E434: no folder for temporary files .*TMPDIR=FOLDER"):
        snnc.compile(str(DIGITS), target="cpu", steps=25)


def test_a_full_disk_under_the_cache_is_told_with_the_knob(tmp_path):
    for error in (OSError(28, "No space left on device"), shutil.Error([("a", "b", "No space left on device")])):
        message = f"{tmp_path}.*: No space left on device; .*SNNC_CACHE="
        with pytest.raises(CacheFolderError, match=message), reporting_write_errors(tmp_path):
            raise error
