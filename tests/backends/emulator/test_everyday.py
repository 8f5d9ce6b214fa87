"""Programs in common styles give the results of NumPy or of arithmetic."""

import json

import numpy as np
import pytest


def numbers(text):
    return [np.array([float(x) for x in line.split()]) for line in text.splitlines()]


def wave(n, scale, seed):
    return np.float32(scale) * (((np.arange(n) * 37 + seed * 17 + 11) % 101 - 30) / np.float32(64)).astype(np.float32)


def lif_by_hand(x, w, target, slope=5):
    """Return spikes, the gradient of w, and the loss, by backpropagation through time written out."""
    decay = np.float32(0.9)
    v = s = np.zeros_like(target)
    voltages, spikes = [], []
    for now in x:
        v = decay * v * (1 - s) + now @ w
        s = (v > 1).astype(np.float32)
        voltages.append(v)
        spikes.append(s)
    difference = sum(spikes) - target
    dv, dw = np.zeros_like(target), np.zeros_like(w)
    for now, v, s in zip(x[::-1], voltages[::-1], spikes[::-1], strict=True):
        dv = decay * (1 - s) * dv + difference / (1 + slope * abs(v - 1)) ** 2
        dw += now.T @ dv
    return np.array(spikes), dw, 0.5 * (difference**2).sum()


def test_a_spiking_network_of_poplibs_operations_learns_as_one_written_by_hand(cases):
    x, w, target = wave(12 * 3 * 7, 1, 0).reshape(12, 3, 7), wave(35, 0.5, 1).reshape(7, 5), wave(15, 8, 2).reshape(3, 5)
    spikes, dw, loss = lif_by_hand(x, w, target)
    found = numbers(cases.run("everyday", "lif"))
    assert 10 < spikes.sum() < 170, "some spike and some do not"
    assert found[0].tolist() == spikes.ravel().tolist()
    np.testing.assert_allclose(found[1], dw.ravel(), rtol=2e-5, atol=1e-5)
    np.testing.assert_allclose(found[2], loss, rtol=1e-5)
    np.testing.assert_allclose(found[3], (w - np.float32(0.1) * dw).ravel(), rtol=2e-5, atol=1e-5)


def test_a_pipeline_of_two_ipus_sends_what_lies_between(cases):
    result, apart = numbers(cases.run("everyday", "pipeline"))
    assert result.tolist() == (6 * np.arange(192)).tolist()
    assert apart == [1], "the result lies on the second IPU"


def test_replicas_work_on_their_own_rows_of_a_remote_buffer(cases):
    rows = [row.tolist() for row in numbers(cases.run("everyday", "replicas"))]
    assert rows == [[10 * (3 * replica + r) + replica] * 4 for replica in range(2) for r in range(3)]


@pytest.mark.parametrize(("start", "steps"), [(1, 0), (6, 8), (27, 111)])
def test_a_loop_ends_by_the_data(cases, start, steps):
    assert cases.run("everyday", "collatz", start).split() == [str(steps)]


def test_estimators_see_fields_and_estimates_of_single_vertices_win(cases):
    lines = cases.run("everyday", "estimates").splitlines()
    assert lines == [f"{10 + 2 * 10 + 7} 3 {100 * 2 + 5}", "9 {4,6,4}", f"{6 * 37} 0", f"{6 * 9} 0", "1", "-2.5"]


def test_options_come_from_the_environment_and_the_program_wins(cases, tmp_path):
    chosen = {"autoReport.all": "true", "autoReport.directory": "/nowhere"}
    text = cases.run("everyday", "options", tmp_path, POPLAR_ENGINE_OPTIONS=json.dumps(chosen))
    assert text == '{"a":"x"y","b":"12.5","c":"true"} 1\n'
    assert json.loads((tmp_path / "profile.json").read_text())["tiles"] == 4


def test_codelets_have_builtins_and_vectors_with_names_and_draw_the_same_numbers_on_any_thread(cases):
    text = cases.run("everyday", "vectors", SNNC_THREADS="1")
    assert text == cases.run("everyday", "vectors", SNNC_THREADS="3", SNNC_PARALLEL_MICROSECONDS="0")
    assert text == cases.run("everyday", "vectors", SNNC_CHECK_WORKERS="1")
    values, drawn, quarters = numbers(text)
    both = np.array([(1 + 3) ** 2 + 1, (2 * 2) ** 2 + 1])
    np.testing.assert_allclose(values, [*both, both.max() + np.float16(0.1), np.e + 0], rtol=1e-6)
    assert len(set(drawn)) == 240
    assert quarters.tolist() == [255, 128, 7]
    assert abs(drawn.mean() / 2**32 - 0.5) < 0.08  # four deviations


def test_profiles_are_read_by_the_calls_of_older_programs_and_by_the_analysis_library(cases, tmp_path):
    profile, counts, *refused = cases.run("everyday", "reports", tmp_path).splitlines()
    assert json.loads(profile)["graph"] == {"compute_sets": 2, "variables": 1, "vertices": 1, "edges": 1}
    assert counts == "2 1 1 1 4 snnc emulator"
    assert refused == ["refused", "refused"]
