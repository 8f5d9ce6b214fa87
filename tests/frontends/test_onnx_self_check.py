"""A file that is read wrong is refused: what was recovered runs next to the file, at every step."""

import numpy as np
import onnx
import pytest
from fuzz_onnx import fuzz, sources
from onnx_files import F, File, leaky
from simulate import simulate

from snnc.compiler.graph import Linear, Population
from snnc.frontends.onnx import load as importer
from snnc.frontends.onnx.errors import SelfCheckError, UnforeseenError


def network(tmp_path, steps=6):
    f = File()
    w = f.const(np.random.default_rng(1).normal(0, 1, (3, 4)).astype(F))
    mem, spikes = f.const(np.zeros((2, 3), F)), []
    for t in range(steps):
        spike, mem = leaky(f, f("Gemm", f("Gather", "x", np.array(t), axis=0), w, transB=1), mem)
        spikes.append(spike)
    f.stack(spikes, "y")
    return f.save(tmp_path / "m.onnx", {"x": [steps, 2, 4]}, ["y"])


def spoil(monkeypatch, change):
    """Let the importer write a wrong graph."""
    right = importer.settle

    def settle(*args):
        graph = right(*args)
        for name in graph.names:
            graph.nx.nodes[name]["operation"] = change(graph.operation(name))
        return graph

    monkeypatch.setattr(importer, "settle", settle)


def wrong_weight(op):
    return Linear(op.weight[::-1].copy()) if isinstance(op, Linear) else op


def wrong_threshold(op):
    return Population(op.model, op.shape, {**op.parameters, "threshold": np.float32(1.5)}) if isinstance(op, Population) else op


def wrong_start(op):
    return Population(op.model, op.shape, op.parameters, initial={"v": np.full(3, 9, F)}) if isinstance(op, Population) else op


@pytest.mark.parametrize("change", [wrong_weight, wrong_threshold, wrong_start])
def test_a_network_that_computes_something_else_is_refused(change, monkeypatch, tmp_path):
    spoil(monkeypatch, change)
    with pytest.raises(SelfCheckError, match=r"output 'y' .* differs .* at step"):
        importer.load_onnx(network(tmp_path))


def test_a_network_that_cannot_be_run_is_refused(monkeypatch, tmp_path):
    spoil(monkeypatch, lambda op: Linear(np.ones((3, 7), F)) if isinstance(op, Linear) else op)
    with pytest.raises(SelfCheckError, match="cannot be run"):
        importer.load_onnx(network(tmp_path))


def test_what_no_check_foresees_is_refused_with_a_code(monkeypatch, tmp_path):
    def broken(*args):
        raise KeyError("lost")

    monkeypatch.setattr(importer, "settle", broken)
    with pytest.raises(UnforeseenError, match="lost"):
        importer.load_onnx(network(tmp_path))


def test_a_check_that_would_take_too_long_covers_the_first_steps(monkeypatch, tmp_path):
    monkeypatch.setattr("snnc.frontends.onnx.verify.MAX_WORK", 24 * 10)
    graph = importer.load_onnx(network(tmp_path, steps=40))
    assert "first 10 steps only" in " ".join(graph.assumptions)


@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_outputs_with_an_axis_of_size_one_keep_it(axis, tmp_path):
    ort = pytest.importorskip("onnxruntime")
    path = network(tmp_path)
    f = File(np.random.default_rng(0))
    model = onnx.load(path)
    model.graph.node[-1].output[0] = "stack"
    f("Unsqueeze", "stack", np.array([axis]))
    f.nodes[-1].output[0] = "y"
    model.graph.node.extend(f.nodes)
    model.graph.initializer.extend(f.constants)
    onnx.save(model, path)
    x = np.random.default_rng(0).normal(0, 1, (6, 2, 4)).astype(F)
    (wanted,) = ort.InferenceSession(str(path)).run(None, {"x": x})
    np.testing.assert_array_equal(simulate(importer.load_onnx(path), {"x": x})["y"], wanted)


def test_mutated_files_are_refused_or_read_right(tmp_path):
    pytest.importorskip("onnxruntime")
    tally, failures = fuzz(tmp_path, seed=0, cases=150, names=sources()[::3])
    assert not failures
    assert tally["imported, equal"] > 15
