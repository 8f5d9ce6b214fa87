"""Compiling into an existing folder keeps trained weights, and leaves other files alone."""

import os

import numpy as np
import pytest
from forked import command

import snnc
from snnc.backends.folders.folder_lock import locked
from snnc.backends.folders.manifest import MANIFEST, TRAINED, read_manifest
from snnc.cli import main as cli
from snnc.driver.compiling import compile_to_folder
from snnc.errors import OptionConflictError
from snnc.options.compile_options import options


def net(hidden=5):
    return snnc.Sequential(6, snnc.Dense(hidden), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")


def compiled(folder, target="reference", **given):
    snnc.compile(net(), target, loss="ce_mean_membrane", optimizer="adam:0.01", batch=10, output=folder, **given).close()
    return folder


def trained(folder):
    with snnc.open(folder) as session:
        rng = np.random.default_rng(0)
        session.fit(rng.integers(0, 2, (20, 8, 6)), rng.integers(0, 3, 20))
        session.save(folder / TRAINED, optimizer=True)
    return (folder / TRAINED).read_bytes()


@pytest.mark.wide
@pytest.mark.parametrize("target", ["reference", "cpu", "gc200"])
def test_the_list_of_a_project_names_all_that_the_compiler_wrote(tmp_path, target):
    steps = {"steps": 8} if target == "gc200" else {}
    folder = compiled(tmp_path / "p", target, **steps)
    there = {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}
    assert set(read_manifest(folder)) == there - {MANIFEST}


def test_recompiling_puts_trained_weights_aside_and_they_can_be_brought_back(tmp_path, capsys):
    folder = compiled(tmp_path / "p")
    weights = trained(folder)
    (folder / "notes.txt").write_text("mine")
    arguments = ["compile", str(folder), "-o", str(folder), "--target", "reference", "--loss", "ce_mean_membrane", "--batch", "10"]
    assert cli.run_command(arguments) == 0
    said = capsys.readouterr().err
    assert f"before-1/{TRAINED}" in said
    assert (folder / "before-1" / TRAINED).read_bytes() == weights
    assert (folder / "notes.txt").read_text() == "mine"
    (folder / "before-1" / TRAINED).rename(folder / TRAINED)
    snnc.open(folder).close()


def test_recompiling_with_overwrite_deletes_trained_weights_and_says_so(tmp_path, capsys):
    folder = compiled(tmp_path / "p")
    trained(folder)
    assert cli.run_command(["compile", str(folder), "-o", str(folder), "--target", "reference", "--overwrite"]) == 0
    assert "are deleted" in capsys.readouterr().err
    assert not list(folder.rglob("trained*"))


def test_a_folder_of_another_tool_is_refused_before_the_model_is_read(tmp_path, capsys):
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "project.json").write_text('{"name": "thesis"}')
    assert cli.run_command(["compile", str(tmp_path / "missing.onnx"), "-o", str(tmp_path / "theirs")]) == 2
    assert "SNNC-E414" in capsys.readouterr().err
    assert [p.name for p in (tmp_path / "theirs").iterdir()] == ["project.json"]


def test_compiling_over_a_folder_in_training_is_refused(tmp_path):
    folder = compiled(tmp_path / "p")
    with locked(folder, "trains"):
        other = command("compile", folder, "-o", folder, "--target", "reference")
        _, err = other.communicate()
    assert other.returncode == 2
    assert "SNNC-E417" in err
    assert f"process {os.getpid()} on" in err


def test_overwriting_without_a_folder_is_refused(tmp_path, capsys):
    with pytest.raises(OptionConflictError):
        snnc.compile(net(), overwrite=True)
    folder = compiled(tmp_path / "p")
    for further in (["--estimate-only"], ["--estimate-only", "-o", str(tmp_path / "q")]):
        assert cli.run_command(["compile", str(folder), "--overwrite", *further]) == 2
        assert OptionConflictError.code in capsys.readouterr().err


def commands_that_write(folder, place):
    """What writes a file, with what it reads: a model, inputs and a host program."""
    np.savez(place / "x.npz", input=np.zeros((8, 5, 6), np.uint8))
    (place / "host.cpp").write_text("int main() {}")
    snnc.write_onnx(net().graph(), place / "m.onnx")
    yield ["run", folder, "--inputs", place / "x.npz", "--outputs"], [place / "x.npz"]
    yield ["convert", place / "m.onnx"], [place / "m.onnx"]
    yield ["inspect", folder, "--format", "json", "-o"], [folder / "plan.json"]
    yield ["explore", place / "m.onnx", "--steps", "8", "--json"], [place / "m.onnx"]
    yield ["emulate", place / "host.cpp", "-o"], [place / "host.cpp"]
    yield ["emulate", place / "host.cpp", "--profile"], [place / "host.cpp"]


def test_no_command_writes_over_what_it_reads_or_over_a_file_of_a_project(tmp_path, capsys):
    folder = tmp_path / "p"
    compile_to_folder(net().graph(), options("gc200", steps=8), folder)
    (folder / TRAINED).write_text("weights")
    tried = 0
    for arguments, read in commands_that_write(folder, tmp_path):
        for output in [*read, *(folder / name for name in ("weights.safetensors", "snnc.json", TRAINED))]:
            before = output.read_bytes()
            assert cli.run_command([*map(str, arguments), str(output)]) == 2
            assert "SNNC-E418" in capsys.readouterr().err
            assert output.read_bytes() == before
            tried += 1
    assert tried == 6 * 4


def test_what_a_killed_run_left_half_written_is_gone_after_recompiling(tmp_path):
    folder = compiled(tmp_path / "p")
    (folder / "model" / ".profile.json.abc123.snnc-temporary").write_text("{")
    compiled(folder)
    assert not list(folder.rglob("*.snnc-temporary"))
