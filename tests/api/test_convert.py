"""``snnc convert``: a model of any form as a file of another."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import snnc
from snnc import cli

CORPUS = Path(__file__).parents[1] / "corpus"
MODEL = CORPUS / "snntorch_leaky_dynbatch_dyn.onnx"


def run(capsys, *arguments):
    code = cli.run_command(["convert", *map(str, arguments)])
    return code, capsys.readouterr()


def test_a_model_becomes_an_onnx_file_that_computes_the_same(capsys, tmp_path):
    code, said = run(capsys, MODEL, tmp_path / "m.onnx")
    assert code == 0
    assert said.out.startswith(f"wrote {tmp_path / 'm.onnx'} (")
    assert "inputs: x; outputs: spk, mem" in said.out
    assert "note: The file does not hold the surrogate" in said.err
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


def test_nir_files_are_written_by_the_nir_writer(capsys, tmp_path, monkeypatch):
    import snnc.frontends.nir as nir

    given = {}

    def write_nir(graph, path, *, dt):
        given.update(dt=dt)
        path.write_bytes(b"nir")
        return ("Something is not in the file.",)

    monkeypatch.setattr(nir, "write_nir", write_nir)
    code, said = run(capsys, MODEL, tmp_path / "m.nir", "--dt", "1e-4")
    assert code == 0
    assert given == {"dt": 1e-4}
    assert "note: Something is not in the file." in said.err
    assert (tmp_path / "m.nir").read_bytes() == b"nir"
    code, said = run(capsys, MODEL, tmp_path / "m.nir")
    assert (code, said.out) == (2, "")
    assert "SNNC-E528" in said.err
    assert "--dt" in said.err


def test_without_a_nir_writer_it_says_so(capsys, tmp_path, monkeypatch):
    import snnc.frontends

    monkeypatch.setitem(sys.modules, "snnc.frontends.nir", None)
    monkeypatch.delattr(snnc.frontends, "nir", raising=False)
    code, said = run(capsys, MODEL, tmp_path / "m.nir", "--dt", "1e-4")
    assert code == 2
    assert "SNNC-E541" in said.err


@pytest.mark.parametrize("name", ["m.pt", "m"])
def test_other_suffixes_are_refused_before_anything_is_read(name, capsys, tmp_path):
    code, said = run(capsys, tmp_path / "missing.onnx", tmp_path / name)
    assert code == 2
    assert "SNNC-E540" in said.err
    assert list(tmp_path.iterdir()) == []


def test_steps_fill_what_the_model_leaves_open(capsys, tmp_path):
    code, _ = run(capsys, CORPUS / "snntorch_step_leaky_ts.onnx", tmp_path / "m.onnx", "--steps", 7)
    assert code == 0
    assert snnc.load(tmp_path / "m.onnx").steps == 7
    code, said = run(capsys, MODEL, tmp_path / "n.onnx", "--steps", 0)
    assert code == 2
    assert "SNNC-E528" in said.err
