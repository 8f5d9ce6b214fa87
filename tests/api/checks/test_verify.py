"""``snnc verify``: compare another implementation with snnc on the same arrays, layer by layer and step by step."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_files import F, File, leaky

import snnc
from snnc.checks import other_implementations as other_runs
from snnc.checks import verifying
from snnc.cli import main as cli
from snnc.compiler.ir.graph import FileLayout, Linear, Output, Population
from snnc.compiler.tiles.errors import TooBigError
from snnc.frontends.onnx.writer.comparison import compare, compare_port
from snnc.frontends.onnx.writer.errors import HiddenTooLargeError
from snnc.frontends.onnx.writer.hidden import Observed

pytest.importorskip("onnxruntime")

CORPUS = Path(__file__).parents[2] / "corpus"
MODEL = CORPUS / "snntorch_leaky_dynbatch_dyn.onnx"


def run(capsys, *arguments):
    code = cli.run_command(["verify", *map(str, arguments)])
    return code, capsys.readouterr()


# ---- files that are read right -------------------------------------------------------------------------------------------

FORMS = {
    "snntorch_leaky_dynbatch_dyn": 2,
    "snntorch_scan_leaky": 1,
    "snntorch_readout_meanmem_dyn": 2,
    "snntorch_step_leaky2_dyn": 2,
    "sj_lif_soft_s_dyn": 2,
    "sj_conv_bn_max_m_dyn": 3,
    "sj14_lif_m_ts": 2,
    "torch_script_loop_ff_ts": 2,
    "torch_hopwhile_dyn": 2,
    "norse_lsnn_dyn": 1,
    "snntorch_topo_delay2_ts": 2,
}
"""Unrolled, Scan, a single step, whole-sequence layers, Loops with and without a trip count; and how many populations each has."""


@pytest.mark.representative("snntorch_*_dyn", "snntorch_scan_leaky", "sj_conv_bn_max_m_dyn", "torch_*", "norse_lsnn_dyn")
@pytest.mark.parametrize("name", FORMS)
def test_all_layers_of_every_form_are_compared_with_onnx_runtime(name, capsys):
    code, said = run(capsys, CORPUS / f"{name}.onnx", "--json")
    found = json.loads(said.out)
    assert code == 0, said.out
    assert found["agree"]
    assert found["first"] is None
    assert len(found["layers"]) == FORMS[name]
    for layer in found["layers"]:
        assert layer["source"] == "ONNX Runtime"
        assert layer["not_compared"] == []
        assert layer["spikes"] is None or len(layer["spikes"]["by_step"]) > 3
        assert all(s["largest"] < 1e-4 for s in layer["states"])
    assert any(layer["spikes"] and layer["spikes"]["values"] for layer in found["layers"])


def test_the_report_has_a_line_for_each_layer_and_says_who_agrees(capsys):
    code, said = run(capsys, MODEL)
    lines = said.out.splitlines()
    assert code == 0, said.out
    assert lines[1].split()[:4] == ["layer", "neuron", "spikes", "fired"]
    name, neuron, spikes, fired, differ, *_ = lines[2].split()
    assert (name, neuron, spikes, differ) == ("neurons_1", "LIF", "320", "0")
    assert 0 < int(fired) < 320
    assert lines[-1] == "ONNX Runtime and snnc (reference) agree."
    code, said = run(capsys, MODEL, "--per-step")
    assert "neurons_2, step by step:" in said.out


@pytest.mark.parametrize("name", ["snntorch_step_leaky2_dyn", "snntorch_step_synaptic_ts", "norse_step_lifcell_ts"])
def test_single_steps_are_run_one_by_one_with_their_states_fed_back(name, capsys):
    code, said = run(capsys, CORPUS / f"{name}.onnx", "--steps", 9, "--json")
    found = json.loads(said.out)
    assert code == 0, said.out
    assert found["stepwise"]
    assert next(iter(found["inputs"].values()))[0] == 9
    assert len(found["outputs"]) > 1
    assert all(len(s["compared"]) == 9 for layer in found["layers"] for s in layer["states"])


def test_sizes_that_the_file_leaves_open_are_those_of_the_arrays(capsys):
    code, said = run(capsys, CORPUS / "sj14_lif_dynT_m_ts.onnx", "--steps", 11, "--json")
    found = json.loads(said.out)
    assert code == 0, said.out
    assert found["inputs"]["x"][:2] == [11, 3]
    assert [len(layer["spikes"]["by_step"]) for layer in found["layers"]] == [11, 11]


def test_given_arrays_and_initial_states_are_used(capsys, tmp_path):
    z = np.load(CORPUS / "snntorch_step_leaky2_dyn.npz")
    np.savez(tmp_path / "x.npz", x=z["in_x"], mem1=z["init_mem1"] + 1, mem2=z["init_mem2"])
    code, said = run(capsys, CORPUS / "snntorch_step_leaky2_dyn.onnx", "--inputs", tmp_path / "x.npz")
    assert code == 0, said.out
    assert "inputs: x 8 x 3 x 20, mem1 3 x 16" in said.out


def test_samples_steps_and_the_seed_are_the_callers(capsys, tmp_path):
    code, said = run(capsys, MODEL, "--samples", 6, "--seed", 3, "--json")
    assert code == 0
    assert json.loads(said.out)["inputs"] == {"x": [5, 6, 20]}
    code, said = run(capsys, MODEL, "--steps", 6)
    assert code == 2
    assert "SNNC-E239" in said.err
    assert "the file fixes 5" in said.err


def two_layers(tmp_path, *, silent=False, steps=6, wrap=None):
    """Two layers of neurons; with `silent`, weights of zero keep the readout from showing what the first does."""
    rng, f = np.random.default_rng(3), File()
    w1, w2 = rng.normal(0, 1, (4, 4)).astype(F), rng.normal(0, 1, (2, 4)).astype(F)
    w1, w2 = f.const(w1), f.const(w2 * (0 if silent else 1))
    m1, m2, spikes = f.const(np.zeros((3, 4), F)), f.const(np.zeros((3, 2), F)), []
    for t in range(steps):
        x = f("Gather", "x", np.array(t), axis=0)
        current = f("Gemm", x, w1, transB=1)
        s1, m1 = leaky(f, wrap(f, current) if wrap else current, m1)
        s2, m2 = leaky(f, f("Gemm", s1, w2, transB=1), m2)
        spikes.append(s2)
    f.stack(spikes, "y")
    return f.save(tmp_path / "m.onnx", {"x": [steps, 3, 4]}, ["y"])


def test_weights_beside_the_model_are_found(tmp_path):
    path = two_layers(tmp_path)
    folder = tmp_path / "beside"
    folder.mkdir()
    onnx.save(onnx.load(path), folder / "m.onnx", save_as_external_data=True, location="m.bin", size_threshold=0)
    found = snnc.verify(folder / "m.onnx")
    assert found.agree
    assert {layer.source for layer in found.layers} == {"ONNX Runtime"}


def test_values_inside_functions_and_branches_are_found(tmp_path):
    def branch(f, value):
        taken, other = f.name(), f.name()
        then = helper.make_graph(
            [helper.make_node("Mul", [value, f.const(1.5)], [taken])],
            "then",
            [],
            [helper.make_tensor_value_info(taken, TensorProto.FLOAT, None)],
        )
        otherwise = helper.make_graph(
            [helper.make_node("Neg", [value], [other])], "else", [], [helper.make_tensor_value_info(other, TensorProto.FLOAT, None)]
        )
        return f("If", f.const(np.array(True)), then_branch=then, else_branch=otherwise)

    found = snnc.verify(two_layers(tmp_path, wrap=branch))
    assert found.agree
    path = functions(tmp_path)
    found = snnc.verify(path)
    assert found.agree
    assert [layer.source for layer in found.layers] == ["ONNX Runtime", "ONNX Runtime"]
    assert all(len(p.compared) >= 5 for layer in found.layers for p in layer.ports)


def functions(tmp_path):
    """The same network with its neurons in a local function."""
    rng, nodes = np.random.default_rng(3), []
    weights = {"w1": rng.normal(0, 1, (4, 4)).astype(F), "w2": rng.normal(0, 1, (2, 4)).astype(F)}
    body = [
        helper.make_node("Constant", [], ["one"], value_float=1.0),
        helper.make_node("Constant", [], ["beta"], value_float=0.9),
        helper.make_node("Greater", ["m", "one"], ["fired"]),
        helper.make_node("Cast", ["fired"], ["reset"], to=1),
        helper.make_node("Mul", ["m", "beta"], ["decayed"]),
        helper.make_node("Add", ["decayed", "i"], ["driven"]),
        helper.make_node("Sub", ["driven", "reset"], ["v"]),
        helper.make_node("Greater", ["v", "one"], ["over"]),
        helper.make_node("Cast", ["over"], ["s"], to=1),
    ]
    neuron = helper.make_function("local", "Neuron", ["i", "m"], ["s", "v"], body, [helper.make_opsetid("", 17)])
    arrays = {**weights, "m1_": np.zeros((3, 4), F), "m2_": np.zeros((3, 2), F), **{f"t{t}": np.array(t) for t in range(6)}}
    m = {1: "m1_", 2: "m2_"}
    for t in range(6):
        nodes.append(helper.make_node("Gather", ["x", f"t{t}"], [f"x{t}"], axis=0))
        for layer, source in ((1, f"x{t}"), (2, f"s1_{t}")):
            nodes.append(helper.make_node("Gemm", [source, f"w{layer}"], [f"i{layer}_{t}"], transB=1))
            nodes.append(helper.make_node("Neuron", [f"i{layer}_{t}", m[layer]], [f"s{layer}_{t}", f"m{layer}_{t}"], domain="local"))
            m[layer] = f"m{layer}_{t}"
        nodes.append(helper.make_node("Unsqueeze", [f"s2_{t}", "t0_axes"], [f"row{t}"]))
    nodes.append(helper.make_node("Concat", [f"row{t}" for t in range(6)], ["y"], axis=0))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 3, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [6, 3, 2])],
        [numpy_helper.from_array(a, name) for name, a in {**arrays, "t0_axes": np.array([0])}.items()],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    onnx.save(helper.make_model(graph, functions=[neuron], opset_imports=opsets, ir_version=10), tmp_path / "f.onnx")
    return tmp_path / "f.onnx"


def test_a_value_that_onnx_runtime_cannot_give_is_evaluated_by_snnc_and_labelled(tmp_path, capsys):
    rng, f = np.random.default_rng(3), File()
    w, mem, spikes = f.const(rng.normal(0, 1, (6, 4)).astype(F)), f.const(np.zeros((3, 6), F)), []
    for t in range(6):
        spike, mem = leaky(f, f("Gemm", f("Gather", "x", np.array(t), axis=0), w, transB=1), mem)
        spikes.append(f("Slice", spike, np.array([0]), np.array([2]), np.array([1])))
    f.stack(spikes, "y")
    code, said = run(capsys, f.save(tmp_path / "m.onnx", {"x": [6, 3, 4]}, ["y"]))
    assert code == 0, said.out
    assert "neurons_1: compared with ONNX Runtime and snnc's own evaluation of the file's operations." in said.out


@pytest.mark.parametrize("name", ["snntorch_scan_leaky", "snntorch_step_leaky2_dyn", "sj_conv_bn_max_m_dyn"])
def test_where_onnx_runtime_gives_nothing_inside_snnc_evaluates_the_file(name, monkeypatch):
    from snnc.frontends.onnx.writer import runtime

    def refuse(*_):
        raise RuntimeError("no type")

    monkeypatch.setattr(runtime, "read_outline", refuse)
    found = snnc.verify(CORPUS / f"{name}.onnx")
    assert found.agree
    assert {layer.source for layer in found.layers} == {"snnc's own evaluation of the file's operations"}
    assert str(found).count("compared with snnc's own evaluation") == len(found.layers)


# ---- what differs --------------------------------------------------------------------------------------------------------


def changed(graph, change):
    for name in graph.names:
        graph.nx.nodes[name]["operation"] = change(name, graph.operation(name))
    return graph


def read_wrong(monkeypatch, change):
    """Let a file be read as another network than it is."""
    right = other_runs.read_onnx

    def read(*arguments):
        found = right(*arguments)
        return replace(found, graph=changed(found.graph, change))

    monkeypatch.setattr(other_runs, "read_onnx", read)


def slower(name, op):
    return replace(op, parameters={**op.parameters, "beta": F(0.8)}) if name == "neurons_1" else op


def test_a_wrong_hidden_layer_is_named_with_its_first_step_although_all_outputs_agree(monkeypatch, capsys, tmp_path):
    path = two_layers(tmp_path, silent=True)
    read_wrong(monkeypatch, slower)
    code, said = run(capsys, path, "--json")
    found = json.loads(said.out)
    assert code == 1
    assert not found["agree"]
    assert all(c["agrees"] for c in found["outputs"])
    assert found["first"] == {"layer": "neurons_1", "step": 1, "port": "v"}
    first, second = found["layers"]
    assert (first["agrees"], second["agrees"]) == (False, True)
    assert first["states"][0]["largest_by_step"][0] < 1e-6
    assert first["states"][0]["largest_by_step"][1] > 1e-3
    assert first["spikes"]["mismatches"] == sum(first["spikes"]["by_step"]) > 0
    code, said = run(capsys, path)
    assert code == 1
    assert "DISAGREE; first in layer 'neurons_1' at step 1, in 'v'." in said.out
    assert "neurons_1, step by step:" in said.out
    assert "neurons_2, step by step:" not in said.out


def test_the_layer_where_a_difference_begins_is_named_not_those_that_follow(monkeypatch, tmp_path):
    def wrong(name, op):
        return Linear(op.weight * F(1.001)) if isinstance(op, Linear) and op.weight.shape == (2, 4) else op

    read_wrong(monkeypatch, wrong)
    found = snnc.verify(two_layers(tmp_path), seed=1)
    assert [layer.agrees for layer in found.layers] == [True, False]
    assert found.first[0] == "neurons_2"


def test_a_difference_of_an_output_is_found_and_placed_and_the_exit_code_is_1(capsys, monkeypatch):
    read_wrong(monkeypatch, lambda _, op: Linear(op.weight * F(1.5), op.bias) if isinstance(op, Linear) else op)
    code, said = run(capsys, MODEL, "--json")
    found = json.loads(said.out)
    assert code == 1
    mem = next(c for c in found["outputs"] if c["output"] == "mem")
    assert mem["mismatches"] > 0
    assert mem["step"] is not None
    assert found["first"]["layer"] == "neurons_1"


def test_a_file_that_holds_another_network_for_these_sizes_is_refused(monkeypatch, capsys):
    right, asked = other_runs.read_onnx, []

    def read(*arguments):
        found = right(*arguments)
        asked.append(arguments)
        return found if len(asked) == 1 else replace(found, graph=changed(found.graph, slower))

    monkeypatch.setattr(other_runs, "read_onnx", read)
    code, said = run(capsys, MODEL, "--samples", 3)
    assert code == 2
    assert "SNNC-E221" in said.err
    assert "x [5, 3, 20]" in said.err


def test_more_values_than_are_kept_are_refused_before_anything_runs(monkeypatch):
    monkeypatch.setattr(other_runs, "MAX_VALUES", 1000)
    with pytest.raises(HiddenTooLargeError, match=r"are 1,\d{3} values to compare; at most 1,000 are kept. Use fewer samples"):
        snnc.verify(MODEL, samples=6)


def test_a_layer_that_is_silent_is_told_since_its_threshold_is_not_tested():
    net = snnc.Network("silent")
    x = net.input(2)
    a = net.population(3, snnc.LIF(threshold=1e6), name="a")
    net.connect(x, a, snnc.Dense())
    assert "a: no neuron fired, so threshold and reset were not tested" in str(snnc.verify(net))


# ---- comparisons ---------------------------------------------------------------------------------------------------------


def test_the_first_difference_in_time_is_named_then_the_first_sample():
    ours = np.zeros((4, 3, 2))
    theirs = ours.copy()
    theirs[2, 1, 0] = theirs[2, 0, 1] = theirs[3, 0, 0] = 1
    found = compare("y", Output(), ours, theirs, 0.0)
    assert (found.spikes, found.mismatches, found.values, found.step, found.sample, found.agrees) == (True, 3, 24, 2, 0, False)
    swapped = compare("y", Output("all", FileLayout(1, 0)), ours.swapaxes(0, 1), theirs.swapaxes(0, 1), 0.0)
    assert (swapped.step, swapped.sample) == (2, 0)
    summed = compare("y", Output("sum", FileLayout(0, 1)), ours.sum(0), theirs.sum(0), 0.0)
    assert (summed.step, summed.sample) == (None, 0)


def test_values_agree_within_the_tolerance_and_never_where_they_are_not_finite():
    ours, theirs = np.array([[[10.0, 0.5]]]), np.array([[[10.0005, 0.5]]])
    assert compare("y", Output(), ours, theirs, 1e-4).agrees
    assert not compare("y", Output(), ours, theirs, 1e-5).agrees
    bad = compare("y", Output(), ours, np.array([[[np.nan, 0.5]]]), 1e-4)
    assert (bad.mismatches, bad.largest) == (1, None)
    assert not compare("y", Output(), ours, ours[0], 1e-4).agrees


def port(ours, theirs, fires, skip=()):
    steps = {t: v for t, v in enumerate(np.asarray(theirs, float)) if t not in skip}
    return compare_port(Observed("n", "p", fires, steps, frozenset({"x"})), np.asarray(ours, float), 1e-4)


def test_spikes_of_a_layer_are_counted_by_step():
    found = port([[[0, 1]], [[1, 0]], [[1, 1]]], [[[0, 1]], [[0, 1]], [[1, 0]]], fires=True)
    assert (found.values, found.mismatches, found.by_step, found.first, found.fired) == (6, 3, (0, 2, 1), 1, 3)


def test_states_of_a_layer_differ_by_more_than_the_tolerance_times_their_largest():
    theirs = [[[100.0, 0]], [[1, 2]], [[3, 4]]]
    found = port([[[100.0, 0]], [[1.005, 2]], [[3.2, 4]]], theirs, fires=False)
    assert (found.mismatches, found.first, found.worst) == (1, 2, 2)
    assert found.by_step == pytest.approx((0, 0.005, 0.2))
    assert found.largest == pytest.approx(0.2)


def test_values_that_are_not_finite_differ_and_steps_that_are_missing_do_not_count():
    theirs = [[[1.0]], [[np.nan]], [[5.0]]]
    found = port([[[1.0]], [[1.0]], [[1.0]]], theirs, fires=False, skip={2})
    assert (found.mismatches, found.by_step, found.compared, found.largest, found.first) == (1, (0, None, 0), (0, 1), None, 1)
    assert port(theirs, theirs, fires=False).agrees


# ---- other models --------------------------------------------------------------------------------------------------------


def network():
    net = snnc.Network("net")
    x = net.input(5)
    a = net.population(6, snnc.CubaLIF(), name="a")
    b = net.population(3, snnc.LI(beta=0.9), name="b")
    net.connect(x, a, snnc.Dense())
    net.connect(a, a, snnc.Dense(), delay=1)
    net.connect(a, b, snnc.Dense())
    return net


def test_networks_made_in_python_run_in_onnx_runtime():
    found = snnc.verify(network(), steps=12, samples=3)
    assert found.agree
    assert found.inputs == {"input": (12, 3, 5)}
    assert [(layer.name, layer.source) for layer in found.layers] == [("a", "ONNX Runtime"), ("b", "ONNX Runtime")]
    assert [p.port for p in found.layers[0].states] == list(snnc.CubaLIF().states)
    assert "agree." in str(found)


def test_a_fault_in_a_backend_is_named(monkeypatch):
    right = verifying.open_graph

    def wrong(graph, options):
        def faulty(name, op):
            return replace(op, parameters={**op.parameters, "beta": F(0.5)}) if name == "b" else op

        return right(changed(graph.copy(), faulty), options)

    monkeypatch.setattr(verifying, "open_graph", wrong)
    found = snnc.verify(network(), steps=12)
    assert not found.agree
    assert found.layers[0].agrees
    assert found.first[0] == "b"


def test_a_project_runs_on_its_own_target_unless_told_otherwise(capsys, tmp_path, monkeypatch):
    assert cli.run_command(["compile", str(MODEL), "-o", str(tmp_path / "p"), "--target", "reference"]) == 0
    capsys.readouterr()
    code, said = run(capsys, tmp_path / "p", "--samples", 3, "--json")
    found = json.loads(said.out)
    assert code == 0, said.out
    assert (found["target"], found["against"], found["inputs"]) == ("reference", "ONNX Runtime", {"x": [5, 3, 20]})
    assert [len(layer["spikes"]["by_step"]) for layer in found["layers"]] == [5, 5]
    asked = []
    right = verifying._run
    monkeypatch.setattr(verifying, "_run", lambda g, a, target, seed: asked.append(target) or right(g, a, "reference", seed))
    code, said = run(capsys, tmp_path / "p", "--target", "gc200")
    assert (code, asked) == (0, ["gc200"])
    assert "snnc (gc200) agree" in said.out


def test_the_outputs_of_a_project_are_those_of_its_own_program(tmp_path, monkeypatch):
    assert cli.run_command(["compile", str(MODEL), "-o", str(tmp_path / "p"), "--target", "gc200"]) == 0
    right, asked = verifying._run, []

    class Program:
        """A compiled program whose readout is wrong in step 2."""

        def __init__(self, folder, arrays, trust):
            asked.append(folder)
            self.session = verifying.open_graph(snnc.load(MODEL), verifying.CompileOptions())
            self.program, self.graph = self.session.program, self.session.graph

        def run(self, *arguments):
            found = self.session.run(*arguments)
            found["mem"] = found["mem"] + np.arange(5).reshape(5, 1, 1) // 2
            return found

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.session.close()

    monkeypatch.setattr(verifying, "session_for", Program)
    monkeypatch.setattr(verifying, "_run", lambda g, a, target, seed: right(g, a, "reference", seed))
    found = snnc.verify(tmp_path / "p")
    assert asked == [tmp_path / "p"]
    assert found.target == "gc200"
    assert all(layer.agrees for layer in found.layers)
    assert {c.output: c.step for c in found.outputs} == {"spk": None, "mem": 2}


def test_where_a_machine_has_no_room_for_all_layers_the_outputs_are_compared(monkeypatch):
    right = verifying._run

    def small(graph, arrays, target, seed):
        if len(list(graph.of_type(Output))) > 2:
            raise TooBigError("tile 3 holds 700 kB.")
        return right(graph, arrays, "reference", seed)

    monkeypatch.setattr(verifying, "_run", small)
    found = snnc.verify(MODEL)
    assert found.agree
    assert len(found.outputs) == 2
    assert "No layer is compared" in str(found)
    assert all(not layer.ports for layer in found.layers)


@pytest.mark.parametrize("name", ["hand_nir_lif", "sj_nir_cubalif", "hand_nir_recurrent", "hand_nir_conv_sumpool"])
def test_nir_files_run_in_the_interpreter_of_the_format(name, capsys):
    code, said = run(capsys, CORPUS / f"{name}.nir", "--json")
    found = json.loads(said.out)
    assert code == 0, said.out
    assert found["against"] == "the NIR simulator"
    assert all(layer["source"] == "the NIR simulator" for layer in found["layers"])
    assert sum(layer["spikes"]["values"] for layer in found["layers"]) > 0


def test_a_neuron_of_a_nir_file_that_is_read_wrong_is_named(monkeypatch):
    right = other_runs.load_model

    def wrong(path, **options):
        def faulty(_, op):
            return replace(op, parameters={k: v * F(0.9) for k, v in op.parameters.items()}) if isinstance(op, Population) else op

        return changed(right(path, **options), faulty)

    monkeypatch.setattr(other_runs, "load_model", wrong)
    found = snnc.verify(CORPUS / "hand_nir_lif.nir")
    assert not found.agree
    assert found.first[0] == found.layers[0].name


# ---- what is wrong -------------------------------------------------------------------------------------------------------


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
    for name, said_of in (("a", "lack x"), ("b", "'x' of the file has the shape [5, 'batch', 20]")):
        code, said = run(capsys, MODEL, "--inputs", tmp_path / f"{name}.npz")
        assert code == 2
        assert "SNNC-E238" in said.err
        assert said_of in said.err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["bad_truncated_half.onnx"], "E201"),
        (["no_such_file.onnx"], "E201"),
        ([MODEL.name, "--tolerance", -1], "E528"),
        ([MODEL.name, "--dialect", "norse"], "E527"),
        (["."], "E526"),
    ],
)
def test_bad_models_and_options_exit_with_2(arguments, code, capsys):
    name, *rest = arguments
    found, said = run(capsys, CORPUS / name, *rest)
    assert found == 2
    assert f"SNNC-{code}" in said.err
