"""Contents of a package for PopTorch: Python 3.8 that imports only torch and poptorch, shared codelets, weights, clear messages."""

import ast
import json
import re
import runpy
import shutil
import subprocess
import sys
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from poplar_projects import project  # noqa: E402  # torch is an extra
from poptorch_packages import CASES, STEPS, imported, package  # noqa: E402
from safetensors.numpy import load_file, save_file  # noqa: E402

import snnc  # noqa: E402
from snnc.backends.poptorch.emit import emit_poptorch, render  # noqa: E402
from snnc.backends.poptorch.errors import PopArtError, PopTorchFolderError, UnsupportedOnPopTorchError  # noqa: E402
from snnc.backends.poptorch.operation import PopartOperation  # noqa: E402
from snnc.backends.poptorch.popart import open_operation  # noqa: E402
from snnc.compiler.losses import LOSSES, parse_loss  # noqa: E402
from snnc.driver.compiling import compile_to_folder  # noqa: E402
from snnc.driver.folder import read_project  # noqa: E402
from snnc.driver.loading import as_graph  # noqa: E402
from snnc.emulated_poptorch import install, main  # noqa: E402
from snnc.options.compile_options import options  # noqa: E402

NEEDED = {"torch", "poptorch", "popdist", "train", "spiking_network"}
"""What emitted Python imports beside the standard library."""


def sources(name):
    return {path: text for path, text in render(package(name).operation).items() if path.endswith(".py")}


@pytest.mark.parametrize("name", CASES)
def test_emitted_python_is_that_of_3_8_and_imports_torch_and_poptorch_alone(name):
    for path, text in sources(name).items():
        tree = ast.parse(text, path, feature_version=(3, 8))
        found = {a.name.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
        found |= {node.module.partition(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
        assert found <= NEEDED | sys.stdlib_module_names, path
        assert ("popdist" in found) == (path == "train_popdist.py")
        calls = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        assert not calls & {"eval", "exec", "compile", "__import__"}, path
        annotations = [
            n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and (n.returns or any(a.annotation for a in n.args.args))
        ]
        assert annotations == [], "no annotation that 3.8 would evaluate"


def test_names_of_the_model_stand_in_network_json_alone():
    case = package("hostile")
    texts = {p: t for p, t in render(case.operation).items() if p != "network.json"}
    for text in texts.values():
        assert "system(" not in re.sub(r"//[^\n]*", "", text).replace('"""', "").split("\n", 3)[-1]
    for path in case.folder.glob("*.hpp"):
        assert "ünïcode" not in path.read_text()
    labels = {o["label"] for o in json.loads((case.folder / "network.json").read_text())["outputs"]}
    assert labels == {o.label for o in case.program.outputs}


def test_codelets_are_those_of_the_poplar_target():
    """The classes of the same plan are printed alike; only what updates parameters and computes the loss is missing."""
    poplar = project("recurrent")
    texts = render(PopartOperation(poplar.program, poplar.plan))
    ours, theirs = classes_of(texts["codelets.cpp"]), classes_of((poplar.folder / "codelets.cpp").read_text())
    shared = {name for name in ours if ours[name] == theirs.get(name)}
    assert {name for name in theirs if re.match("Clock|Forward|Backward|Relay|SourceGradient|WeightRows", name)} <= shared
    assert set(theirs) - set(ours) == {"Loss", "LossScores", "LossSum", "Schedule", "Update"}
    assert texts["layout.hpp"] == (poplar.folder / "layout.hpp").read_text()


def classes_of(text):
    return {m.group(1): m.group(0) for m in re.finditer(r"class (\w+) : public poplar::\w+ \{.*?\n\};", text, re.DOTALL)}


def test_without_poptorch_the_package_says_what_is_missing(monkeypatch):
    folder = package("hostile").folder
    monkeypatch.syspath_prepend(folder)
    said = r"PopTorch is not installed.*python -m snnc\.emulated_poptorch train\.py"
    with mock.patch.dict(sys.modules, {"poptorch": None}), pytest.raises(ImportError, match=said):
        runpy.run_path(str(folder / "train.py"), run_name="__main__")


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
def test_make_builds_one_library_from_the_operation(tmp_path):
    """What the Makefile asks of a compiler: flags and libraries as the user guide of PopART names them."""
    folder, said = tmp_path / "package", tmp_path / "said"
    shutil.copytree(package("hostile").folder, folder)
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho "$@" > {said}\ntouch build/libspiking_network.so\n')
    compiler.chmod(0o755)
    call = ["make", f"CXX={compiler}", "CPPFLAGS=-I/else"]
    subprocess.run(call, cwd=folder, check=True, timeout=60, stdout=subprocess.DEVNULL)
    words = set(said.read_text().split())
    assert {"-std=c++17", "-shared", "-fPIC", "-DONNX_NAMESPACE=onnx", "-I/else", "operation.cpp", "-lpopart", "-lpoplar"} <= words
    said.unlink()
    subprocess.run(call, cwd=folder, check=True, timeout=60, stdout=subprocess.DEVNULL)
    assert not said.exists(), "nothing is built twice"
    (folder / "layout.hpp").touch()
    subprocess.run(call, cwd=folder, check=True, timeout=60, stdout=subprocess.DEVNULL)
    assert said.exists(), "a changed header builds it again"


def test_the_script_trains_on_the_emulator(tmp_path, capsys, monkeypatch):
    case = package("windows")
    random = np.random.default_rng(0)
    inputs = {i.id: (random.random((20, STEPS, *i.shape)) < 0.3).astype(np.float32) for i in case.program.inputs}
    save_file({**inputs, "labels": random.integers(0, 4, 20)}, tmp_path / "data.safetensors")
    with imported(case, "train", "spiking_network.options") as [script, chosen]:
        import poptorch

        words = [
            "--data",
            str(tmp_path / "data.safetensors"),
            "--epochs",
            "2",
            "--accumulation",
            "2",
            "--save",
            str(tmp_path / "w.safetensors"),
        ]
        args = chosen.parser("").parse_args(words)
        losses = script.train(args, chosen.chosen_options(args, poptorch.Options()))
        with pytest.raises(SystemExit, match="--accumulation 3 or more"):
            chosen.chosen_options(chosen.parser("").parse_args(["--pipelined"]), poptorch.Options())
    assert len(losses) == 2
    assert capsys.readouterr().out.count("epoch") == 2
    saved, before = load_file(tmp_path / "w.safetensors"), load_file(case.folder / "weights.safetensors")
    assert saved.keys() == set(case.operation.learned)
    assert all(not np.array_equal(value, before[name]) for name, value in saved.items())


def test_weights_are_read_without_pickle_and_damaged_files_are_refused(tmp_path):
    random = np.random.default_rng(0)
    arrays = {"a": random.random((3, 4), np.float32), "b": np.arange(5), "c": np.float32(2.5).reshape(1), "e": np.zeros((0, 2), np.float32)}
    save_file(arrays, tmp_path / "w.safetensors")
    content = (tmp_path / "w.safetensors").read_bytes()
    with imported(package("hostile"), "spiking_network.weights") as [weights]:
        found = weights.load_file(tmp_path / "w.safetensors")
        weights.save_file({"x": torch.arange(6.0).reshape(2, 3).T}, tmp_path / "x.safetensors")
        for number, damaged in enumerate((b"", content[:-1], content[:40], (1 << 60).to_bytes(8, "little") + content[8:])):
            (tmp_path / f"{number}").write_bytes(damaged)
            with pytest.raises(ValueError, match=r"safetensors|truncated|size"):
                weights.load_file(tmp_path / f"{number}")
    assert found.keys() == arrays.keys()
    assert all(np.array_equal(found[name].numpy(), array) for name, array in arrays.items())
    assert np.array_equal(load_file(tmp_path / "x.safetensors")["x"], np.arange(6.0).reshape(2, 3).T)


@pytest.mark.parametrize("name", [loss.name for loss in LOSSES])
def test_losses_are_those_of_the_compiler(name):
    case, loss = package("windows"), parse_loss(name)
    program = replace(case.program, loss=loss)
    space = {}
    exec(render(PopartOperation(program, case.plan))["spiking_network/loss.py"], space)  # our own text
    random = np.random.default_rng(2)
    record, labels = random.normal(size=(STEPS, 6, 4)).astype(np.float32), random.integers(0, 4, 6)
    given = torch.from_numpy(np.swapaxes(record, 0, 1).copy()).requires_grad_()
    value = space["loss_of"](given, torch.from_numpy(labels))
    value.backward()
    wanted, gradient = loss.value_and_gradient(record, labels)
    assert value.item() == pytest.approx(wanted, rel=1e-5)
    np.testing.assert_allclose(np.swapaxes(given.grad.numpy(), 0, 1), gradient, atol=1e-6)
    assert np.allclose(space["scores_of"](given).detach().numpy(), loss.scores(record), atol=1e-5)


def test_what_lies_outside_the_tiles_is_refused(tmp_path):
    case = package("windows")
    plan = replace(case.plan, streamed="inputs")
    with pytest.raises(UnsupportedOnPopTorchError, match="stores inputs outside the tiles"):
        emit_poptorch(case.program, plan, tmp_path / "package")
    assert not (tmp_path / "package").exists()


def test_a_folder_without_a_package_is_refused(tmp_path, capsys):
    with pytest.raises(PopTorchFolderError, match="contains no package"):
        install(tmp_path)
    assert main([str(tmp_path / "train.py")]) == 2
    assert "SNNC-E431" in capsys.readouterr().err
    assert main([]) == 2


def test_an_operation_that_no_library_registers_is_an_error():
    with pytest.raises(PopArtError, match=r"no loaded library registers the operation snnc\.Nothing:1"):
        open_operation("snnc", "Nothing", 1, {}, [(2,)], machine="ipu2", tiles=2)


def test_inputs_of_another_shape_or_number_are_refused():
    case = package("windows")
    with imported(case, "spiking_network") as [network]:
        model = network.SpikingNetwork()
        with pytest.raises(ValueError, match=r"has shape \[5, 11, 30\], not \[5, 12, 30\]"):
            model(torch.zeros(5, 11, 30))
        with pytest.raises(ValueError, match="takes 1 inputs, not 2"):
            model(torch.zeros(5, 12, 30), torch.zeros(5, 12, 30))
    with pytest.raises(PopArtError, match="input x0 of the network does not have the shape"):
        name = json.loads((case.folder / "network.json").read_text())["operation"]
        shapes = [(1,), *(g.shape for g in case.operation.operation_inputs[1:])]
        open_operation("snnc", name, 1, {"folder": str(case.folder)}, shapes, machine="ipu2", tiles=100)


def test_a_device_with_fewer_tiles_is_refused():
    case = package("windows")
    name = json.loads((case.folder / "network.json").read_text())["operation"]
    with imported(case, "spiking_network"), pytest.raises(PopArtError, match="placed on 100 tiles, but the device has 8"):
        shapes = [i.shape for i in case.operation.operation_inputs]
        open_operation("snnc", name, 1, {"folder": str(case.folder)}, shapes, machine="ipu2", tiles=8)


def test_compile_writes_a_package(tmp_path):
    net = snnc.Sequential(6, snnc.Dense(8), snnc.LIF(), snnc.Dense(3), snnc.LI())
    chosen = options("poptorch:bow", steps=4, batch=2, loss="ce_mean_membrane")
    compile_to_folder(as_graph(net), chosen, tmp_path / "package")
    names = {p.name for p in (tmp_path / "package").iterdir()}
    assert names >= {"Makefile", "operation.cpp", "codelets.cpp", "train.py", "train_popdist.py", "spiking_network", "plan.json", "model"}
    compiled = read_project(tmp_path / "package")
    assert (compiled.plan.target.name, compiled.plan.streamed, compiled.parts) == ("bow", "off", None)
    with pytest.raises(snnc.SnncError, match="only machines distribute a network over tiles"):
        options("poptorch", parts=2)
