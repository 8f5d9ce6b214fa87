"""The interpreter of NIR files compared with frameworks' stored outputs, and the graph with the interpreter on random files."""

import h5py
import nir
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nir_files import chain, full, good, lif, linear, write
from nir_random import DT, compare, inputs_of, random_file
from test_nir_corpus import CASES, GOOD, dialect_of, path_of, same
from wide import examples, sampled

from snnc.compiler.ir.graph import Input, Output, Population
from snnc.frontends.nir import load_nir
from snnc.frontends.nir.dialects import DIALECTS
from snnc.frontends.nir.errors import NirDialectError, NirSimulationError, NirTimeStepError, NirUnconnectedError
from snnc.frontends.nir.interpreter.interpreter import simulate


def stored(name):
    z = np.load(path_of(name).with_suffix(".npz"))
    wanted = [z[k] for k in z.files if k.startswith("out_")] or [z[k] for k in z.files if k.startswith("nirref_")]
    return z["in_x"], wanted[0]


@pytest.mark.parametrize("name", sampled(GOOD, 2))
def test_the_stored_outputs_of_the_frameworks_are_reproduced(name):
    x, wanted = stored(name)
    options = {"dt": CASES[name]["dt"], "dialect": dialect_of(name)}
    graph = load_nir(path_of(name), **options)
    found = simulate(path_of(name), {n: x for n, _ in graph.of_type(Input)}, **options)
    assert set(found.outputs) == {n for n, _ in graph.of_type(Output)}
    same(next(iter(found.outputs.values())), wanted)


REFERRED = [n for n in GOOD if np.load(path_of(n).with_suffix(".npz")).files[-1].startswith("nirref_")]


@pytest.mark.parametrize("name", REFERRED)
def test_the_stored_reference_is_reproduced(name):
    z = np.load(path_of(name).with_suffix(".npz"))
    meant = CASES[name].get("semantics", {"reset": "hard"})
    dialect = "snntorch" if meant["reset"] == "soft" else "spikingjelly" if meant.get("cmp") == ">=" else "nir"
    inputs = {n: z["in_x"] for n, _ in load_nir(path_of(name)).of_type(Input)}
    found = simulate(path_of(name), inputs, dt=CASES[name]["dt"], dialect=dialect)
    same(next(iter(found.outputs.values())), z[z.files[-1]])


@settings(max_examples=examples(10, 60), deadline=None, derandomize=True)
@given(st.integers(0, 2**31 - 1), st.sampled_from(sorted(DIALECTS)))
def test_the_graph_of_a_random_file_equals_the_interpreter(tmp_path_factory, seed, dialect):
    path = random_file(tmp_path_factory.mktemp("random") / "m.nir", seed)
    try:
        graph = load_nir(path, dt=DT, dialect=dialect)
    except NirUnconnectedError:  # a graph without an Output, or a nested one that leads nowhere
        return
    compare(path, graph, seed % 1000, dt=DT, dialect=dialect)


def test_spikes_and_states_are_named_after_the_populations_of_the_graph(tmp_path):
    for seed in range(examples(6, 12)):
        path = random_file(tmp_path / "m.nir", seed)
        try:
            graph = load_nir(path, dt=DT)
        except NirUnconnectedError:
            continue
        found = simulate(path, inputs_of(graph, seed), dt=DT)
        populations = dict(graph.of_type(Population))
        assert set(found.states) | set(found.spikes) == set(populations)
        assert {n: set(s) for n, s in found.states.items()} == {n: set(populations[n].model.states) for n in found.states}


def test_a_refractory_loop_by_hand(tmp_path):
    nodes = {"in": nir.Input(np.array([1])), "n": nir.IF(full(1, 1.0), full(1, 1.5), full(1, -1.0)), "w": nir.Linear(full((1, 1), -2.0))}
    nodes["out"] = nir.Output(np.array([1]))
    path = write(tmp_path / "m.nir", nodes, [("in", "n"), ("n", "w"), ("w", "n"), ("n", "out")])
    found = simulate(path, {"in": np.ones((7, 1, 1))}, dt=1.0)
    # 1, 2 -> fires, reset to -1, then -1 + 1 - 2 = -2, -1, 0, 1, 2 -> fires
    assert found.states["n"]["v"].ravel().tolist() == [1, -1, -2, -1, 0, 1, -1]
    assert found.spikes["n"].ravel().tolist() == found.outputs["out"].ravel().tolist() == [0, 1, 0, 0, 0, 0, 1]
    assert found.margins["n"].ravel()[:2].tolist() == [-0.5, 0.5]
    assert found.late == (("n", "w"),)


def test_a_tie_fires_where_the_dialect_says_so(tmp_path):
    path = write(tmp_path / "m.nir", *chain(nir.Threshold(full(2, 1.0))))
    x = np.array([[[1.0, 1.5]]])
    assert simulate(path, {"input": x}).outputs["output"].tolist() == [[[0, 1]]]
    assert simulate(path, {"input": x}, dialect="spikingjelly").outputs["output"].tolist() == [[[1, 1]]]


def test_a_file_that_the_interpreter_cannot_run_says_why(tmp_path):
    x = np.zeros((3, 1, 2))
    path = good(tmp_path / "m.nir")
    for arrays, text in (({}, "missing"), ({"input": np.zeros((3, 1, 5))}, r"must be \[T, B, 2\]"), ({"input": np.zeros(2)}, "must be")):
        with pytest.raises(NirSimulationError, match=text):
            simulate(path, arrays)
    nodes = {"in": nir.Input(np.array([2])), "a": linear(2, 2), "b": linear(2, 2), "out": nir.Output(np.array([2]))}
    loop = write(tmp_path / "loop.nir", nodes, [("in", "a"), ("a", "b"), ("b", "a"), ("b", "out")])
    with pytest.raises(NirSimulationError, match="neither a neuron nor a delay"):
        simulate(loop, {"in": x})
    unknown = write(tmp_path / "edge.nir", {"in": nir.Input(np.array([2])), "out": nir.Output(np.array([2]))}, [("in", "out")])
    with h5py.File(unknown, "r+") as file:
        file["node/edges"][0] = (b"in", b"away")
    with pytest.raises(NirSimulationError, match="'away'"):
        simulate(unknown, {"in": x})
    with pytest.raises(NirTimeStepError):
        simulate(path, {"input": x}, dt=0.0)
    with pytest.raises(NirDialectError):
        simulate(path, {"input": x}, dialect="brian")
    late = write(tmp_path / "late.nir", *chain(nir.Delay(full(2, 100.0)), lif(2)))
    with pytest.raises(NirSimulationError, match="65,535"):
        simulate(late, {"input": x})
