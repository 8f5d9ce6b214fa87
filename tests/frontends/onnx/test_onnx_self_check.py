"""An incorrectly read file is refused: the recovered network is compared with the file at every step."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from fuzz_onnx import fuzz, sources
from onnx_files import F, File, leaky
from simulate import simulate
from wide import examples

from snnc.compiler.ir.graph import Linear, Population
from snnc.compiler.neurons.expression import Call, Number, Symbol, transform
from snnc.frontends.onnx import load as importer
from snnc.frontends.onnx import recover
from snnc.frontends.onnx.errors import SelfCheckError, UnforeseenError

CORPUS = Path(__file__).parents[2] / "corpus"


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
    right = recover.graph_of_step

    def graph_of_step(*args):
        graph, traces = right(*args)
        for name in graph.names:
            graph.nx.nodes[name]["operation"] = change(graph.operation(name))
        return graph, traces

    monkeypatch.setattr(recover, "graph_of_step", graph_of_step)


def wrong_weight(op):
    return Linear(op.weight[::-1].copy()) if isinstance(op, Linear) else op


def wrong_threshold(op):
    return Population(op.model, op.shape, {**op.parameters, "threshold": np.float32(1.5)}) if isinstance(op, Population) else op


def wrong_start(op):
    return Population(op.model, op.shape, op.parameters, initial={"v": np.full(3, 9, F)}) if isinstance(op, Population) else op


@pytest.mark.parametrize(("change", "step", "port"), [(wrong_weight, 0, "v"), (wrong_threshold, 0, "s"), (wrong_start, 0, "v")])
def test_a_network_that_computes_something_else_is_refused(change, step, port, monkeypatch, tmp_path):
    spoil(monkeypatch, change)
    with pytest.raises(SelfCheckError, match=rf"population 'neurons_1' .* differs .* at step {step}, in '{port}'"):
        importer.load_onnx(network(tmp_path))


def wrong_late(op):
    """A reset that takes twice what it should: nothing differs before the first spike."""
    if not isinstance(op, Population):
        return op
    lines = tuple(replace(line, value=transform(line.value, doubled)) if line.target == "v" else line for line in op.model.equations)
    assert lines != op.model.equations
    return replace(op, model=replace(op.model, equations=lines))


def doubled(e):
    return Call("mul", (Number(2.0), e)) if e == Symbol("z") else e


def test_the_first_step_that_differs_is_named(monkeypatch, tmp_path):
    spoil(monkeypatch, wrong_late)
    with pytest.raises(SelfCheckError, match=r"population 'neurons_1' .* at step 1, in 'v', by up to"):
        importer.load_onnx(network(tmp_path))


def silent_layers(tmp_path, steps=6):
    """Two hidden populations; the weights behind them are zero, so that no output shows what they do."""
    f, rng = File(), np.random.default_rng(1)
    w1, w2, w3 = (f.const(w) for w in (rng.normal(0, 1, (3, 4)).astype(F), rng.normal(0, 1, (5, 3)).astype(F), np.zeros((2, 5), F)))
    m1, m2, m3 = (f.const(np.zeros((2, n), F)) for n in (3, 5, 2))
    spikes = []
    for t in range(steps):
        s1, m1 = leaky(f, f("Gemm", f("Gather", "x", np.array(t), axis=0), w1, transB=1), m1)
        s2, m2 = leaky(f, f("Gemm", s1, w2, transB=1), m2)
        s3, m3 = leaky(f, f("Gemm", s2, w3, transB=1), m3)
        spikes.append(s3)
    f.stack(spikes, "y")
    return f.save(tmp_path / "silent.onnx", {"x": [steps, 2, 4]}, ["y"])


def test_a_hidden_layer_that_no_output_shows_is_checked(monkeypatch, tmp_path):
    path = silent_layers(tmp_path)
    graph = importer.load_onnx(path)
    x = np.random.default_rng(0).normal(0, 1, (6, 2, 4)).astype(F)

    def slower(op):
        slow = isinstance(op, Population) and op.shape == (5,)
        return replace(op, parameters={**op.parameters, "beta": np.float32(0.8)}) if slow else op

    right = simulate(graph, {"x": x})["y"]
    for name in graph.names:
        graph.nx.nodes[name]["operation"] = slower(graph.operation(name))
    np.testing.assert_array_equal(simulate(graph, {"x": x})["y"], right)
    spoil(monkeypatch, slower)
    with pytest.raises(SelfCheckError, match=r"population 'neurons_2' .* at step [1-3], in 'v'"):
        importer.load_onnx(path)


@pytest.mark.parametrize(
    "name", ["snntorch_leaky_sub_ts", "snntorch_scan_leaky", "sj14_lif_m_ts", "norse_step_lifcell_ts", "norse_lsnn_dyn"]
)
def test_every_output_and_state_of_every_population_has_its_values_in_the_file(name):
    found = importer.read_onnx(CORPUS / f"{name}.onnx")
    traced = {(t.population, t.port) for t in found.traces}
    wanted = {(n, port) for n, p in found.graph.of_type(Population) for port in (*p.model.outputs, *p.model.states)}
    assert traced == wanted
    assert all(set(t.nodes) >= set(range(found.inputs.steps - 2)) for t in found.traces)


def test_a_network_that_cannot_be_run_is_refused(monkeypatch, tmp_path):
    spoil(monkeypatch, lambda op: Linear(np.ones((3, 7), F)) if isinstance(op, Linear) else op)
    with pytest.raises(SelfCheckError, match="cannot run"):
        importer.load_onnx(network(tmp_path))


def test_what_no_check_foresees_is_refused_with_a_code(monkeypatch, tmp_path):
    def broken(*args):
        raise KeyError("lost")

    monkeypatch.setattr(recover, "graph_of_step", broken)
    with pytest.raises(UnforeseenError, match="lost"):
        importer.load_onnx(network(tmp_path))


def test_a_check_that_would_take_too_long_covers_the_first_steps(monkeypatch, tmp_path):
    monkeypatch.setattr("snnc.frontends.onnx.proof.verify.MAX_WORK", 24 * 10)
    graph = importer.load_onnx(network(tmp_path, steps=40))
    assert "first 10 steps only" in " ".join(graph.assumptions)


@pytest.mark.parametrize("steps", [3, 7, 8])
def test_a_short_file_is_compared_whole_however_long_it_takes(monkeypatch, tmp_path, steps):
    monkeypatch.setattr("snnc.frontends.onnx.proof.verify.MAX_WORK", 24)
    graph = importer.load_onnx(network(tmp_path, steps=steps))
    assert "steps only" not in " ".join(graph.assumptions)


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
    tally, failures = fuzz(tmp_path, seed=0, cases=examples(20, 150), names=sources()[::3])
    assert not failures
    assert tally["imported, equal"] > 5
