"""Partitioners: valid, balanced, repeatable; the cut equals a manual count; planted clusters are found."""

import re

import numpy as np
import pytest
from hypergraphs import planted, scattered
from hypothesis import given, settings
from hypothesis import strategies as st
from wide import examples

from snnc.compiler.tiles.errors import PartitionerCrashError, PartitionerError
from snnc.compiler.tiles.partition import partitioners as partitioners_module
from snnc.compiler.tiles.partition.child_process import run_partitioner
from snnc.compiler.tiles.partition.greedy import grow_and_move, in_order
from snnc.compiler.tiles.partition.hypergraph import Hypergraph
from snnc.compiler.tiles.partition.partitioners import first_that_works, partitioner, partitioners

ALL = [pytest.param(p, id=name) for name, p in partitioners().items()]
NATIVE = ALL[:-1]
OWN = grow_and_move
DAMAGES = {
    "import os; os.abort()": "ended with SIGABRT",
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": "ended with SIGKILL",
    "raise RuntimeError('no cores found')": "ended with status 1 .RuntimeError: no cores found",
    "import os; os._exit(0)": "returned no output",
}


def cut_by_hand(graph, part):
    nets = [set(part[graph.pins[a:b]].tolist()) for a, b in zip(graph.start[:-1], graph.start[1:], strict=True)]
    return sum(rate * (len(parts) - 1) for rate, parts in zip(graph.rate.tolist(), nets, strict=True))


@settings(max_examples=examples(6, 15), deadline=None)
@given(vertices=st.integers(4, 60), nets=st.integers(1, 50), parts=st.integers(2, 4), seed=st.integers(0, 10_000))
def test_own_partitions_are_valid_balanced_and_repeatable(vertices, nets, parts, seed):
    is_valid_balanced_and_repeatable(OWN, vertices, nets, parts, seed)


@pytest.mark.representative("*-60-50-3-1")
@pytest.mark.parametrize(("vertices", "nets", "parts", "seed"), [(4, 1, 2, 0), (60, 50, 3, 1), (23, 40, 4, 2)])
@pytest.mark.parametrize("cutter", NATIVE)
def test_partitions_of_other_packages_are_valid_balanced_and_repeatable(cutter, vertices, nets, parts, seed):
    is_valid_balanced_and_repeatable(cutter, vertices, nets, parts, seed)


def is_valid_balanced_and_repeatable(cutter, vertices, nets, parts, seed):
    graph = scattered(vertices, nets, 3 * nets, seed)
    part = cutter(graph, parts, 0.05, seed)
    assert part.shape == (vertices,)
    assert part.min() >= 0
    assert part.max() < parts
    assert graph.loads(part, parts).max() <= graph.max_work(parts, 0.05) * (1 + 1e-9)
    assert graph.cut(part, parts) == pytest.approx(cut_by_hand(graph, part))
    np.testing.assert_array_equal(part, cutter(graph, parts, 0.05, seed))


@pytest.mark.representative("4-0.9-4-0", "8-0.9-4-1", "8-0.75-8-0")
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("clusters", "inside", "parts"), [(4, 0.9, 4), (8, 0.9, 8), (8, 0.9, 4), (8, 0.75, 8)])
def test_own_pass_finds_planted_clusters(clusters, inside, parts, seed):
    graph, cluster = planted(800, clusters, 20, inside, seed)
    part = OWN(graph, parts, 0.05, 0)
    wanted = graph.cut(cluster * parts // clusters, parts)
    assert graph.cut(part, parts) <= 1.15 * wanted
    assert graph.cut(in_order(graph, parts), parts) > 1.15 * wanted


@pytest.mark.representative("4")
@pytest.mark.parametrize("parts", [2, 4, 8])
def test_own_pass_is_within_a_fifth_of_mt_kahypar(parts):
    pytest.importorskip("mtkahypar")
    graph, _ = planted(800, 8, 20, 0.9, 3)
    assert graph.cut(OWN(graph, parts, 0.05, 0), parts) <= 1.2 * graph.cut(partitioner("mtkahypar")(graph, parts, 0.05, 0), parts)


@pytest.mark.parametrize("cutter", ALL)
def test_busy_neurons_stay_with_their_targets(cutter):
    # A ring of pairs: rare nets join neighbours of two pairs, frequent ones the two of a pair.
    pairs = 16
    frequent = [(2 * k, 2 * k + 1) for k in range(pairs)]
    rare = [(2 * k + 1, (2 * k + 2) % (2 * pairs)) for k in range(pairs)]
    nets = np.repeat(np.arange(2 * pairs), 2)
    rate = np.repeat([1.0, 0.01], pairs)
    graph = Hypergraph.of(nets, np.array([*frequent, *rare]).reshape(-1), rate, np.ones(2 * pairs))
    part = cutter(graph, 4, 0.05, 0)
    assert all(part[a] == part[b] for a, b in frequent)
    assert graph.cut(part, 4) <= 6 * 0.01 + 1e-9


def test_a_partitioner_that_is_not_here_is_refused():
    with pytest.raises(PartitionerError, match=r"'zoltan' is not installed; installed are .*snnc"):
        partitioner("zoltan")


@pytest.fixture(params=DAMAGES)
def damaged(request, tmp_path, monkeypatch):
    """Both packages are there and end the process that imports them; returns what is said of that."""
    for name in ("mtkahypar", "pymetis"):
        (tmp_path / f"{name}.py").write_text(request.param)
    monkeypatch.syspath_prepend(tmp_path)
    return DAMAGES[request.param]


@pytest.mark.representative("import os; os.abort()", "raise RuntimeError('no cores found')")
def test_a_partitioner_that_crashes_leaves_the_process_alive_and_the_next_one_cuts(damaged):
    graph = scattered(12, 8, 24, 0)
    with pytest.warns(UserWarning, match="partitions instead") as said:
        part = first_that_works(graph, 2, 0.05, 0)
    np.testing.assert_array_equal(part, OWN(graph, 2, 0.05, 0))
    (first, second) = (str(warning.message) for warning in said)
    assert re.search(f"'mtkahypar' {damaged}.*'metis' partitions instead", first)
    assert re.search(f"'metis' {damaged}.*'snnc' partitions instead", second)


@pytest.mark.parametrize("damaged", ["import os; os.abort()"], indirect=True)
def test_large_hypergraphs_are_not_given_to_mt_kahypar(damaged, monkeypatch):
    monkeypatch.setattr(partitioners_module, "MAX_PINS", 0)
    with pytest.warns(UserWarning, match="partitions instead") as said:
        first_that_works(scattered(12, 8, 24, 0), 2, 0.05, 0)
    assert ["mtkahypar" in str(warning.message) for warning in said] == [False]


def test_the_own_partitioner_is_enough(monkeypatch):
    """Without the extra `partition`, there is nothing to try before it."""
    monkeypatch.setattr(partitioners_module, "find_spec", lambda name: None if name in ("mtkahypar", "pymetis") else True)
    graph = scattered(12, 8, 24, 0)
    np.testing.assert_array_equal(first_that_works(graph, 2, 0.05, 0), OWN(graph, 2, 0.05, 0))


@pytest.mark.representative("import os; os._exit(0)-*", "raise RuntimeError('no cores found')-metis")
@pytest.mark.parametrize("name", ["mtkahypar", "metis"])
def test_a_named_partitioner_that_crashes_is_an_error(damaged, name):
    with pytest.raises(PartitionerCrashError, match=f"SNNC-E433: the partitioner '{name}' {damaged}.*pip uninstall"):
        partitioner(name)(scattered(12, 8, 24, 0), 2, 0.05, 0)


@pytest.mark.parametrize("parts", [[0, 1], [0, 1, 2, 0], [0, -1, 0, 1]])
def test_an_answer_that_is_no_partition_is_refused(tmp_path, monkeypatch, parts):
    (tmp_path / "pymetis.py").write_text(
        f"CSRAdjacency = lambda *_: 0\nOptions = lambda seed: 0\npart_graph = lambda *_, **__: (0, {parts})"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(PartitionerCrashError, match=rf"{len(parts)} parts for 4 vertices"):
        run_partitioner(
            "metis",
            start=np.arange(5),
            neighbours=np.zeros(0, int),
            work=np.ones(4, int),
            edges=np.zeros(0, int),
            parts=2,
            recursive=False,
            seed=0,
        )
