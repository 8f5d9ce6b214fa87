"""Every NIR case of the corpus: reproduced as interpreted by the framework that wrote it, or refused with its code."""

import json
from pathlib import Path

import numpy as np
import pytest

import snnc
from snnc.compiler.errors import SnncError
from snnc.compiler.ir.graph import Population
from snnc.frontends.load import load
from snnc.frontends.nir import load_nir, write_nir
from snnc.frontends.nir.dialects import DIALECTS

CORPUS = Path(__file__).parents[2] / "corpus"
CASES = {c["name"]: c for c in json.loads((CORPUS / "manifest.json").read_text())["cases"] if any(f.endswith(".nir") for f in c["files"])}
REFUSED = {
    "bad_nir_cycle_stateless": "E711",
    "bad_nir_dangling_edge": "E709",
    "bad_nir_huge_dataset": "E704",
    "bad_nir_is_onnx": "E701",
    "bad_nir_keras_like": "E702",
    "bad_nir_nan": "E707",
    "bad_nir_other_hdf5": "E702",
    "bad_nir_shape_mismatch": "E710",
    "bad_nir_tau_negative": "E708",
    "bad_nir_tau_zero": "E708",
    "bad_nir_truncated": "E701",
    "bad_nir_unknown_type": "E705",
}
GOOD = [name for name in CASES if name not in REFUSED]
STANDARD = {"snntorch_nir_leaky_zero_nodelay"}
"""Written by snnTorch, but meant as the standard says; the file does not tell it from the others."""


def path_of(name):
    return CORPUS / f"{name}.nir"


def dialect_of(name):
    framework = CASES[name]["framework"]
    return framework if framework in DIALECTS and name not in STANDARD else "nir"


def run(graph, x):
    with snnc.compile(graph, target="reference", steps=len(x), batch=x.shape[1]) as session:
        return next(iter(session.run(x).values()))


def stored(name):
    z = np.load(CORPUS / f"{name}.npz")
    keys = [k for k in z.files if k.startswith("out_")] or [k for k in z.files if k.startswith("nirref_")]
    return z["in_x"], z[keys[0]]


def same(found, wanted):
    found = found.reshape(wanted.shape)
    if set(np.unique(wanted)) <= {0.0, 1.0}:
        np.testing.assert_array_equal(found, wanted)
    else:
        assert np.abs(found - wanted).max() <= 1e-4 * max(1.0, np.abs(wanted).max())


def test_the_corpus_is_whole():
    assert set(REFUSED) < set(CASES)
    assert len(GOOD) == 27


@pytest.mark.parametrize("name", GOOD)
def test_the_stored_outputs_are_reproduced(name):
    x, wanted = stored(name)
    same(run(load(path_of(name), dt=CASES[name]["dt"], dialect=dialect_of(name)), x), wanted)


@pytest.mark.parametrize("name", [n for n in GOOD if dialect_of(n) != "nir" and n != "norse_nir_iaf"])
def test_each_dialect_assumes_the_time_step_of_its_framework(name):
    x, wanted = stored(name)
    graph = load(path_of(name), dialect=dialect_of(name))
    same(run(graph, x), wanted)
    assert any("is assumed" in text for text in graph.assumptions)


def test_norse_integrates_without_dt_in_its_own_reading():
    x, wanted = stored("norse_nir_iaf")
    for dt in (None, 1e-6, 1.0):
        same(run(load(path_of("norse_nir_iaf"), dt=dt, dialect="norse"), x), wanted)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused_with_its_code(name):
    with pytest.raises(SnncError, match=f"SNNC-{REFUSED[name]}") as caught:
        load(path_of(name))
    assert "\n" not in str(caught.value)


@pytest.mark.representative(
    *("hand_nir_delay", "hand_nir_nested", "hand_nir_recurrent", "nirtorch_torch_to_nir", "norse_nir_libox_readout"),
    *("sj_nir_cubalif", "snntorch_nir_conv", "snntorch_nir_rleaky", "spyx_nir_rlif"),
)
@pytest.mark.parametrize("name", GOOD)
def test_each_file_survives_being_written_again(name, tmp_path):
    dt = CASES[name]["dt"]
    first = load_nir(path_of(name), dt=dt)
    write_nir(first, tmp_path / "again.nir", dt=dt)
    again = load_nir(tmp_path / "again.nir")
    ends = [sorted((e.source, e.target, e.source_port, e.delay) for e in g.edges) for g in (first, again)]
    assert ends[0] == ends[1]
    for node, p in first.of_type(Population):
        other = again.operation(node)
        assert (other.model, other.shape) == (p.model, p.shape)
        for key, value in p.parameters.items():
            np.testing.assert_array_equal(other.parameters[key], value)


@pytest.mark.parametrize(
    ("name", "neuron"),
    [("sj_nir_if_m", "IF"), ("snntorch_nir_leaky_subtract", "LIF"), ("snntorch_nir_synaptic", "CubaLIF"), ("spyx_nir_psulif", "LI")],
)
def test_neurons_with_gain_1_are_those_of_the_library(name, neuron):
    graph = load(path_of(name), dt=CASES[name]["dt"], dialect=dialect_of(name))
    made = {"IF": snnc.IF, "LIF": snnc.LIF, "CubaLIF": snnc.CubaLIF, "LI": snnc.LI}[neuron]
    options = {"reset": "zero", "reset_delay": False, "strict": False} if name.startswith("sj") else {}
    assert made(**options) in [p.model for _, p in graph.of_type(Population)]
    assert all(v.shape == () for _, p in graph.of_type(Population) for v in p.parameters.values())
