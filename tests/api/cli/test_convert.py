"""``snnc convert``: convert a model file to another format."""

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from graph_equality import differences

import snnc
from snnc.cli import main as cli

CORPUS = Path(__file__).parents[2] / "corpus"
MODEL = CORPUS / "snntorch_leaky_dynbatch_dyn.onnx"
NIR = CORPUS / "hand_nir_recurrent.nir"


def run(capsys, *arguments):
    code = cli.run_command(["convert", *map(str, arguments)])
    return code, capsys.readouterr()


def test_a_model_becomes_an_onnx_file_that_computes_the_same(capsys, tmp_path):
    code, said = run(capsys, MODEL, tmp_path / "m.onnx")
    assert code == 0
    assert said.out.startswith(f"wrote {tmp_path / 'm.onnx'} (")
    assert "inputs: x; outputs: spk, mem" in said.out
    x = np.load(CORPUS / "snntorch_leaky_dynbatch_dyn.npz")["in_x"]
    with snnc.compile(str(MODEL)) as one, snnc.compile(tmp_path / "m.onnx") as two:
        np.testing.assert_array_equal(one.run(x)["spk"], two.run(x)["spk"])


def test_a_project_is_written_with_its_trained_weights(capsys, tmp_path):
    net = snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")
    rng = np.random.default_rng(0)
    x, y = (rng.random((20, 8, 6)) < 0.5).astype(np.float32), rng.integers(0, 3, 20)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    snnc.compile(net, loss="ce_mean_membrane", optimizer="adam:0.1", batch=10, output=tmp_path / "p").close()
    assert cli.run_command(["train", str(tmp_path / "p"), "--data", str(tmp_path / "d.npz"), "--epochs", "1"]) == 0
    capsys.readouterr()
    code, said = run(capsys, tmp_path / "p", tmp_path / "m.onnx", "--json")
    assert code == 0
    found = json.loads(said.out)
    assert found["populations"] == 2
    assert found["weights"] == 6 * 5 + 5 + 5 * 3 + 3
    assert [f["file"] for f in found["files"]] == [str(tmp_path / "m.onnx")]
    with snnc.open(tmp_path / "p") as one, snnc.compile(tmp_path / "m.onnx") as two, snnc.compile(net) as untrained:
        wanted = one.run(x.swapaxes(0, 1))["output"]
        np.testing.assert_allclose(two.run(x.swapaxes(0, 1))["output"], wanted, atol=1e-5)
        assert np.abs(untrained.run(x.swapaxes(0, 1))["output"] - wanted).max() > 0.01


def test_a_nir_file_needs_the_length_of_a_step(capsys, tmp_path):
    code, said = run(capsys, NIR, tmp_path / "m.nir", "--dt", "1e-4")
    assert code == 0
    assert said.out.startswith(f"wrote {tmp_path / 'm.nir'} (")
    code, said = run(capsys, NIR, tmp_path / "n.nir")
    assert (code, said.out) == (2, "")
    assert "SNNC-E528" in said.err
    assert "--dt" in said.err
    assert [p.name for p in tmp_path.iterdir()] == ["m.nir"]


def test_what_nir_cannot_express_is_refused_with_the_reason(capsys, tmp_path):
    code, said = run(capsys, MODEL, tmp_path / "m.nir", "--dt", "1e-4")
    assert code == 2
    assert "SNNC-E716" in said.err
    assert "a NIR neuron has only its output 's'" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("form", ["plain", "functions"])
def test_there_and_back_is_the_same_network(form, capsys, tmp_path):
    assert run(capsys, NIR, tmp_path / "a.onnx", "--dt", "1e-4", "--form", form)[0] == 0
    assert run(capsys, tmp_path / "a.onnx", tmp_path / "b.nir", "--dt", "1e-4")[0] == 0
    assert run(capsys, tmp_path / "b.nir", tmp_path / "c.onnx", "--form", form)[0] == 0
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "c.onnx").read_bytes()
    first, last = (snnc.load(path) for path in (tmp_path / "a.onnx", tmp_path / "b.nir"))
    assert differences(first, last) == []
    assert bool(onnx.load(tmp_path / "a.onnx").functions) == (form == "functions")


def test_a_form_that_is_not_known_or_of_another_format_is_refused(capsys, tmp_path):
    for name, form in (("m.onnx", "pretty"), ("m.nir", "plain")):
        code, said = run(capsys, NIR, tmp_path / name, "--dt", "1e-4", "--form", form)
        assert code == 2
        assert "SNNC-E528" in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["m.pt", "m"])
def test_other_suffixes_are_refused_before_anything_is_read(name, capsys, tmp_path):
    code, said = run(capsys, tmp_path / "missing.onnx", tmp_path / name)
    assert code == 2
    assert "SNNC-E540" in said.err
    assert list(tmp_path.iterdir()) == []


def test_steps_fill_what_the_model_leaves_open(capsys, tmp_path):
    code, said = run(capsys, CORPUS / "snntorch_step_leaky_ts.onnx", tmp_path / "m.onnx", "--steps", 7)
    assert code == 0
    assert "note: The file is one time step" in said.err
    assert snnc.load(tmp_path / "m.onnx").steps == 7
    code, said = run(capsys, MODEL, tmp_path / "n.onnx", "--steps", 0)
    assert code == 2
    assert "SNNC-E528" in said.err
