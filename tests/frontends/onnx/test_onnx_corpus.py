"""Every ONNX case of the corpus: reproduced, with its neurons named, or refused with its code."""

import json
from pathlib import Path

import numpy as np
import pytest
from corpus_graphs import corpus_graph
from simulate import simulate

from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Conv, Population
from snnc.frontends.common.recognise import recognise
from snnc.frontends.load import load

CORPUS = Path(__file__).parents[2] / "corpus"
CASES = {c["name"]: c for c in json.loads((CORPUS / "manifest.json").read_text())["cases"]}
ONNX = {n: c for n, c in CASES.items() if any(f.endswith(".onnx") for f in c["files"])}

REFUSED = {
    "ann_cnn_bn_max_dyn": "E213",
    "ann_mlp_relu6_clip_ts": "E213",
    "ann_mlp_relu_dyn": "E213",
    "ann_mlp_relu_ts": "E213",
    "ann_mlp_softmax_ts": "E210",
    "ann_resblock_dyn": "E213",
    "bad_cycle_no_delay": "E207",
    "bad_duplicate_output_name": "E207",
    "bad_empty": "E201",
    "bad_enormous_constantofshape": "E208",
    "bad_enormous_dims": "E208",
    "bad_external_absolute": "E204",
    "bad_external_missing": "E204",
    "bad_external_traversal": "E204",
    "bad_future_opset": "E202",
    "bad_gru_dyn": "E210",
    "bad_inf_weight": "E206",
    "bad_initializer_size": "E205",
    "bad_layernorm_ts": "E210",
    "bad_lstm_ts": "E210",
    "bad_nan_threshold": "E206",
    "bad_nan_weight": "E206",
    "bad_no_nodes": "E207",
    "bad_no_opset": "E202",
    "bad_no_outputs": "E207",
    "bad_random_bytes": "E201",
    "bad_shape_weight_mismatch": "E209",
    "bad_sin_ts": "E210",
    "bad_snn_softmax_ts": "E210",
    "bad_softmax_middle_ts": "E210",
    "bad_truncated_half": "E201",
    "bad_undefined_input": "E207",
    "bad_unknown_op": "E203",
    "bad_zero_timesteps": "E213",
    "sj_psn_m_ts": "E210",
    "snntorch_inhibition_dyn": "E210",
    "trap_timevarying_beta_ts": "E214",
    "trap_timevarying_weights_ts": "E214",
}
GOOD = [n for n in ONNX if n not in REFUSED]
NAMES = {"AlphaLIF": "Alpha", "LI (synaptic current + membrane)": "LI", "CUBALIF c_decay=.5 v_decay=.75": "CubaLIF"}
CUSTOM = {"norse_lifadex_ts", "norse_lifrefrac_ts", "norse_lsnn_dyn", "sj_klif_m_ts", "snntorch_leakyparallel_dyn"}
"""Cases whose neurons the library does not hold; their equations are kept."""
SCALED = {"sj14_ann2snn_converted_ts"}
"""Cases that scale the current of a neuron in an operator of its own, which becomes the neuron's gain."""


ALIKE = [
    "norse_li_readout_ts",
    "norse_lifbox_dyn",
    "norse_lifcell_dyn",
    "norse_lifcell_dynbatch_ts",
    "norse_lifcell_opset26_dyn",
    "norse_lifcell_params_dyn",
    "norse_lifcell_ts",
    "norse_step_lifbox_dynbatch_ts",
    "norse_step_lifcell_ts",
    "sj14_conv_avg_s_ts",
    "sj14_if_s_ts",
    "sj14_lif_m_ts",
    "sj14_lif_nodecay_hard_s_ts",
    "sj14_lif_s_ts",
    "sj14_step_lif_hard_ts",
    "sj_conv_bn_max_m_dyn",
    "sj_if_m_dyn",
    "sj_if_s_dyn",
    "sj_lif_dynbatch_m_dyn",
    "sj_lif_m_opset26_dyn",
    "sj_lif_nodecay_m_dyn",
    "sj_plif_m_dyn",
    "snntorch_conv_avg_ts",
    "snntorch_conv_bn_dyn",
    "snntorch_conv_bn_ts",
    "snntorch_conv_max_dyn",
    "snntorch_conv_poolfirst_ts",
    "snntorch_conv_stride_ts",
    "snntorch_leaky_dynbatch_dyn",
    "snntorch_leaky_none_ts",
    "snntorch_leaky_noopt_dyn",
    "snntorch_leaky_sub_dyn",
    "snntorch_leaky_sub_nodelay_ts",
    "snntorch_leaky_sub_ts",
    "snntorch_leaky_zero_dynbatch_ts",
    "snntorch_readout_meanmem_dyn",
    "snntorch_rleaky_all2all_dyn",
    "snntorch_scan_leaky",
    "snntorch_step_leaky2_dyn",
    "snntorch_step_leaky_ts",
    "snntorch_synaptic_sub_dyn",
    "snntorch_synaptic_zero_dyn",
]
"""Cases that differ from others of the same framework only in sizes, constants, or the options of the export."""


def cases(names):
    """Parameters of a test: those in `ALIKE` are wide."""
    return [pytest.param(name, marks=pytest.mark.wide) if name in ALIKE else name for name in names]


def path_of(name):
    return CORPUS / next(f for f in ONNX[name]["files"] if f.endswith(".onnx"))


def test_the_lists_name_cases_and_the_corpus_is_whole():
    assert set(REFUSED) <= set(ONNX)
    assert len(CASES) == 189
    assert len(GOOD) == 112
    assert set(ALIKE) <= set(GOOD)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_with_its_code(name):
    with pytest.raises(SnncError, match=f"SNNC-{REFUSED[name]}"):
        load(path_of(name))


def test_a_tanh_between_layers_is_kept_exactly():
    ort = pytest.importorskip("onnxruntime")
    path = path_of("bad_snn_tanh_dyn")
    x = np.random.default_rng(0).normal(0, 2, (4, 2, 12)).astype(np.float32)
    (wanted,) = ort.InferenceSession(str(path)).run(None, {"x": x})
    np.testing.assert_array_equal(simulate(load(path), {"x": x})["spk"], wanted)


@pytest.mark.parametrize("name", cases([n for n in GOOD if n != "bad_snn_tanh_dyn"]))
def test_the_stored_outputs_are_reproduced(name):
    graph, z = corpus_graph(path_of(name)), np.load(CORPUS / f"{name}.npz")
    for prefix in ("", "alt_"):
        feeds = {k[len(prefix) + 3 :]: z[k] for k in z.files if k.startswith(prefix + "in_")}
        if not feeds:
            continue
        states = {k[5:]: z[k] for k in z.files if k.startswith("init_")} if not prefix else {}
        found = simulate(graph, feeds, states)
        for key in z.files:
            if key.startswith(prefix + "out_"):
                check(found[key[len(prefix) + 4 :]], z[key])


def check(found, wanted):
    assert found.shape == wanted.shape
    if set(np.unique(wanted)) <= {0.0, 1.0}:
        np.testing.assert_array_equal(found, wanted)
    else:
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * max(1.0, np.abs(wanted).max()))


@pytest.mark.parametrize("name", cases([n for n in GOOD if ONNX[n].get("recover", {}).get("neurons")]))
def test_the_neurons_are_recognised(name):
    populations = [p for _, p in corpus_graph(path_of(name)).of_type(Population)]
    facts = [recognise(p.model, p.parameters) for p in populations]
    wanted = ONNX[name]["recover"]["neurons"]
    if name in CUSTOM:
        assert {p.model.name for p in populations} == {"custom"}
        return
    assert all(f is not None for f in facts)
    left = list(facts)
    for neuron in wanted:
        given = {k: v for k, v in neuron.items() if k != "input_gain"} if name in SCALED else neuron
        match = [f for f in left if agrees(f, given)]
        assert match, (neuron, facts)
        left.remove(match[0])
    assert not left


CONVOLUTIONAL = [n for n in GOOD if any("Conv" in s.get("kind", "") for s in ONNX[n].get("recover", {}).get("synapses", []))]


@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_convolutions_and_poolings_are_layers_of_the_graph(name):
    graph = corpus_graph(path_of(name))
    wanted = [s for s in ONNX[name]["recover"]["synapses"] if s["kind"].startswith("Conv") and "shape" in s]
    convolutions = [op for _, op in graph.of_type(Conv)]
    assert len(convolutions) >= max(1, len(wanted))
    assert {tuple(s["shape"]) for s in wanted} <= {op.weight.shape for op in convolutions}
    assert all(p.model.states for _, p in graph.of_type(Population))


def agrees(facts, wanted):
    name = NAMES.get(wanted["cls"], wanted["cls"])
    silent = facts.threshold is None and wanted.get("reset") == "none"
    if facts.name != name and {facts.name, name} != {"IF", "LIF"} and not (silent and facts.name == "LI"):
        return False
    if name == "Alpha":
        return (
            near(facts.syn_decay, wanted["syn_decay_exc"]) and near(facts.decay, wanted["syn_decay_inh"]) and facts.reset == wanted["reset"]
        )
    numbers = {"decay": facts.decay, "syn_decay": facts.syn_decay, "input_gain": facts.gain, "input_gain_v": facts.gain}
    if not silent and facts.threshold is not None:
        numbers["threshold"] = facts.threshold
    if not all(near(v, wanted[k]) for k, v in numbers.items() if k in wanted):
        return False
    return silent or "compare" not in wanted or (facts.compare == wanted["compare"] and reset_agrees(facts, wanted))


def reset_agrees(facts, wanted):
    reset = {"to_value": "value" if wanted.get("v_reset") else "zero"}.get(wanted.get("reset"), wanted.get("reset"))
    if facts.reset != reset:
        return False
    perfect = (np.asarray(facts.decay) == 1).all()
    if reset != "subtract" or perfect or "reset_timing" not in wanted:
        return True  # both ways are one neuron, seen before or after its reset
    return facts.reset_delay == wanted["reset_timing"].startswith("delayed")


def near(found, wanted):
    if found is None or (np.size(found) not in (1, np.size(wanted)) and np.size(wanted) != 1):
        return False
    return bool(np.allclose(found, wanted, rtol=2e-4, atol=1e-5))


@pytest.mark.parametrize("name", cases([n for n in GOOD if n.startswith("snntorch") and n not in CUSTOM]))
def test_snntorch_neurons_keep_snntorch_states_and_detach_their_resets(name):
    states = {"LIF": 1, "IF": 1, "LI": 1, "CubaLIF": 2, "Alpha": 3}
    for _, population in corpus_graph(path_of(name)).of_type(Population):
        model = population.model
        assert len(model.states) == states[model.name]
        facts = recognise(model, population.parameters)
        if facts.threshold is not None and facts.reset != "none":
            assert "detach(spike" in model.text


def test_what_was_taken_for_granted_is_said():
    notes = " ".join(corpus_graph(path_of("snntorch_step_leaky2_dyn")).assumptions)
    assert "mem1 -> mem1_out, mem2 -> mem2_out" in notes
    assert "'N' as dynamic" in " ".join(corpus_graph(path_of("sj14_lif_dynT_m_ts")).assumptions)


def test_a_spiking_population_without_state_is_warned_of(tmp_path):
    from onnx_files import F, File, leaky

    f = File()
    w, mem, spikes = f.const(np.eye(3, dtype=F)), f.const(np.zeros((2, 3), F)), []
    for t in range(4):
        lost = f("Cast", f("Greater", f("Gemm", f("Gather", "x", np.array(t), axis=0), w), 1.0), to=1)
        spike, mem = leaky(f, f("Gemm", lost, w), mem)
        spikes.append(spike)
    f.stack(spikes, "y")
    graph = load(f.save(tmp_path / "m.onnx", {"x": [4, 2, 3]}, ["y"]))
    assert "SNNC-W201" in " ".join(graph.assumptions)
