"""``snnc verify``: ONNX Runtime and snnc on the same arrays."""

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from snnc import cli
from snnc.compiler.graph import Layout, Output
from snnc.frontends.onnx_writer.comparison import compare

pytest.importorskip("onnxruntime")

CORPUS = Path(__file__).parents[1] / "corpus"
MODEL = CORPUS / "snntorch_leaky_dynbatch_dyn.onnx"


def run(capsys, *arguments):
    code = cli.run_command(["verify", *map(str, arguments)])
    return code, capsys.readouterr()


@pytest.mark.parametrize(
    "name", ["snntorch_leaky_dynbatch_dyn", "snntorch_scan_leaky", "snntorch_readout_meanmem_dyn", "sj_lif_soft_s_dyn", "norse_lifrec_ts"]
)
def test_models_of_every_framework_agree(name, capsys):
    code, said = run(capsys, CORPUS / f"{name}.onnx")
    assert code == 0, said.out
    assert "ONNX Runtime and snnc (reference) agree." in said.out
    assert "Hidden layers are not compared" in said.out


@pytest.mark.parametrize("name", ["snntorch_step_leaky2_dyn", "snntorch_step_synaptic_ts", "norse_step_lifcell_ts"])
def test_single_steps_are_run_one_by_one_with_their_states_fed_back(name, capsys):
    code, said = run(capsys, CORPUS / f"{name}.onnx", "--steps", 9, "--json")
    found = json.loads(said.out)
    assert code == 0, said.out
    assert found["stepwise"]
    assert next(iter(found["inputs"].values()))[0] == 9
    assert len(found["outputs"]) > 1


def test_given_arrays_and_initial_states_are_used(capsys, tmp_path):
    z = np.load(CORPUS / "snntorch_step_leaky2_dyn.npz")
    np.savez(tmp_path / "x.npz", x=z["in_x"], mem1=z["init_mem1"] + 1, mem2=z["init_mem2"])
    code, said = run(capsys, CORPUS / "snntorch_step_leaky2_dyn.onnx", "--inputs", tmp_path / "x.npz")
    assert code == 0, said.out
    assert "inputs: x 8 x 3 x 20, mem1 3 x 16" in said.out


def test_samples_steps_and_the_seed_are_the_callers(capsys, tmp_path):
    assert cli.run_command(["convert", str(MODEL), str(tmp_path / "m.onnx")]) == 0
    capsys.readouterr()
    code, said = run(capsys, MODEL, "--samples", 6, "--seed", 3, "--json")
    assert code == 0
    assert json.loads(said.out)["inputs"] == {"x": [5, 6, 20]}
    code, said = run(capsys, MODEL, "--steps", 6)
    assert code == 2
    assert "SNNC-E239" in said.err
    assert "the file fixes 5" in said.err


def test_a_difference_is_found_and_placed_and_the_exit_code_is_1(capsys, tmp_path, monkeypatch):
    from snnc.frontends.onnx_writer import runtime

    other = tmp_path / "other.onnx"
    model = onnx.load(MODEL)
    for tensor in model.graph.initializer:
        if len(tensor.dims) == 2:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(1.5), tensor.name))
    onnx.save(model, other)
    load = runtime.RuntimeModel.__init__
    monkeypatch.setattr(runtime.RuntimeModel, "__init__", lambda self, path, graph: load(self, other, graph))
    code, said = run(capsys, MODEL)
    assert code == 1
    assert "DISAGREE" in said.out
    assert "first at step" in said.out
    code, said = run(capsys, MODEL, "--json")
    assert code == 1
    found = json.loads(said.out)
    assert not found["agree"]
    mem = next(c for c in found["outputs"] if c["output"] == "mem")
    assert mem["mismatches"] > 0
    assert mem["step"] is not None
    assert mem["largest"] > 0


def test_the_first_difference_in_time_is_named_then_the_first_sample():
    ours = np.zeros((4, 3, 2))
    theirs = ours.copy()
    theirs[2, 1, 0] = theirs[2, 0, 1] = theirs[3, 0, 0] = 1
    found = compare("y", Output(), ours, theirs, 0.0)
    assert (found.spikes, found.mismatches, found.values, found.step, found.sample, found.agrees) == (True, 3, 24, 2, 0, False)
    swapped = compare("y", Output("all", Layout(1, 0)), ours.swapaxes(0, 1), theirs.swapaxes(0, 1), 0.0)
    assert (swapped.step, swapped.sample) == (2, 0)
    summed = compare("y", Output("sum", Layout(0, 1)), ours.sum(0), theirs.sum(0), 0.0)
    assert (summed.step, summed.sample) == (None, 0)


def test_values_agree_within_the_tolerance_and_never_where_they_are_not_finite():
    ours, theirs = np.array([[[10.0, 0.5]]]), np.array([[[10.0005, 0.5]]])
    assert compare("y", Output(), ours, theirs, 1e-4).agrees
    assert not compare("y", Output(), ours, theirs, 1e-5).agrees
    bad = compare("y", Output(), ours, np.array([[[np.nan, 0.5]]]), 1e-4)
    assert (bad.mismatches, bad.largest) == (1, None)
    assert not compare("y", Output(), ours, ours[0], 1e-4).agrees


def test_the_reading_of_a_target_is_compared_too(capsys, tmp_path, monkeypatch):
    from snnc.commands import verify

    asked = []

    def ours(graph, arrays, target, seed):
        asked.append(target)
        return real(graph, arrays, "reference", seed)

    real = verify._ours
    monkeypatch.setattr(verify, "_ours", ours)
    code, said = run(capsys, MODEL, "--target", "gc200")
    assert (code, asked) == (0, ["gc200"])
    assert "snnc (gc200) agree" in said.out


def test_a_missing_runtime_is_named_with_its_package(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    code, said = run(capsys, MODEL)
    assert code == 3
    assert "SNNC-E400" in said.err
    assert "pip install onnxruntime" in said.err


def test_what_the_runtime_refuses_is_said(capsys, monkeypatch):
    import onnxruntime

    def refuse(*_, **__):
        raise RuntimeError("no kernel for this\nsecond line")

    monkeypatch.setattr(onnxruntime, "InferenceSession", refuse)
    code, said = run(capsys, MODEL)
    assert code == 2
    assert "SNNC-E237" in said.err
    assert "no kernel for this" in said.err
    assert "second line" not in said.err


def test_arrays_that_do_not_fit_are_refused(capsys, tmp_path):
    np.savez(tmp_path / "a.npz", y=np.zeros((5, 2, 20)))
    np.savez(tmp_path / "b.npz", x=np.zeros((5, 2, 21)))
    for name, said_of in (("a", "lack x"), ("b", "takes 'x' as [5, 'batch', 20]")):
        code, said = run(capsys, MODEL, "--inputs", tmp_path / f"{name}.npz")
        assert code == 2
        assert "SNNC-E238" in said.err
        assert said_of in said.err


def test_what_has_no_second_implementation_is_refused(capsys, tmp_path):
    (tmp_path / "p").mkdir()
    shutil.copy(CORPUS / "hand_nir_lif.nir", tmp_path)
    for path in (tmp_path / "p", tmp_path / "hand_nir_lif.nir"):
        code, said = run(capsys, path)
        assert code == 2
        assert "SNNC-E542" in said.err


def test_a_bad_model_and_a_bad_tolerance_exit_with_2(capsys):
    code, said = run(capsys, CORPUS / "bad_truncated_half.onnx")
    assert code == 2
    assert "SNNC-E201" in said.err
    code, said = run(capsys, MODEL, "--tolerance", -1)
    assert code == 2
    assert "SNNC-E528" in said.err
