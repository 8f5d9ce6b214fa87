"""Which populations can be split, the resulting connections, and the conversion of numbers in both directions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_nets import sparse, sparse_recurrent
from nets import join, linear
from wide import examples

from snnc.compiler.ir.arrays.sparse import dense_weight
from snnc.compiler.ir.graph import Graph, Input, OneToOne, Output, Population, Sparse
from snnc.compiler.losses import parse_loss
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.tiles.errors import UnreachedPartError
from snnc.compiler.tiles.partition import Partition, prepare, split


def layers(random, between, learnable=frozenset(), beta=0.9):
    """Input, two populations with `between` them, a readout."""
    graph = Graph("layers")
    graph.add("x", Input((8,), "spikes"))
    graph.add("first", Population(LIF(beta), (12,), learnable=learnable))
    graph.add("second", Population(LIF(0.8), (12,)))
    graph.add("readout", Population(LI(0.9), (3,)))
    join(graph, "in", linear(random, 12, 8), "x", "first")
    join(graph, "between", between, "first", "second")
    join(graph, "out", linear(random, 3, 12), "second", "readout")
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def names(graph, loss=None):
    found = prepare(graph, loss).candidates
    return [] if found is None else list(found.sizes)


def test_populations_with_sparse_connections_among_themselves_can_be_cut():
    random = np.random.default_rng(0)
    assert names(layers(random, sparse(random, 12, 12, 0.3))) == ["first", "second"]


def test_dense_networks_stay_whole():
    random = np.random.default_rng(0)
    assert names(layers(random, linear(random, 12, 12))) == []


def test_what_the_loss_reads_stays_whole():
    graph = sparse_recurrent(np.random.default_rng(0))
    assert names(graph) == ["hidden", "second"]
    assert names(graph, parse_loss("ce_mean_membrane")) == ["hidden"]


def test_neurons_that_learn_one_value_together_stay_whole():
    random = np.random.default_rng(0)
    assert names(layers(random, sparse(random, 12, 12, 0.3), frozenset({"beta"}))) == []


def test_populations_joined_one_to_one_stay_whole():
    random = np.random.default_rng(0)
    graph = layers(random, sparse(random, 12, 12, 0.3))
    join(graph, "each", OneToOne(np.ones(12, np.float32)), "first", "second")
    assert names(graph) == []


def test_pairs_of_parts_without_an_entry_have_no_connection():
    weight = np.ones(4, np.float32)
    pairs = Sparse(weight, np.array([0, 1, 2, 3], np.int32), np.arange(5, dtype=np.int32), (4, 4))
    random = np.random.default_rng(0)
    graph = Graph("pairs")
    graph.add("x", Input((2,), "spikes"))
    for name in ("first", "second"):
        graph.add(name, Population(LIF(0.9), (4,)))
    join(graph, "in", linear(random, 4, 2), "x", "first")
    join(graph, "pairs", pairs, "first", "second")
    graph.add("y", Output())
    graph.connect("second", "y")
    half = np.array([0, 1, 0, 1])
    found = split(prepare(graph).graph, Partition({"first": half, "second": half}))
    assert [name for name, _ in found.graph.of_type(Sparse)] == ["pairs from part 0 to part 0", "pairs from part 1 to part 1"]
    assert [found.populations[p].index.tolist() for p in ("first part 0", "first part 1")] == [[0, 2], [1, 3]]
    assert [o for o, _ in found.graph.of_type(Output)] == ["y of second part 0", "y of second part 1"]


def test_a_part_that_nothing_leads_to_is_refused():
    random = np.random.default_rng(0)
    one = Sparse(np.ones(1, np.float32), np.zeros(1, np.int32), np.array([0] + 12 * [1], np.int32), (12, 12))
    graph = prepare(layers(random, one)).graph
    with pytest.raises(UnreachedPartError, match="no connection leads to 'second part 1'"):
        split(graph, Partition({"second": np.arange(12) % 2}))
    biased = Sparse(one.weight, one.indices, one.indptr, one.shape, np.ones(12, np.float32))
    graph = prepare(layers(random, biased)).graph
    with pytest.raises(UnreachedPartError, match="part 1 of 'second' has the bias of 'between' but none of its weights"):
        split(graph, Partition({"second": np.arange(12) % 2}))


@settings(max_examples=examples(6, 20), deadline=None)
@given(seed=st.integers(0, 1000), parts=st.integers(1, 5))
def test_weights_of_the_parts_are_those_of_the_whole_and_find_their_way_back(seed, parts):
    random = np.random.default_rng(seed)
    graph = sparse_recurrent(np.random.default_rng(3))
    whole = lower(graph)
    partition = Partition({"hidden": random.integers(0, parts, 40)}, {"hidden": random.permutation(40)})
    try:
        found = prepare(graph).lower(whole, partition)
    except UnreachedPartError:
        return
    members = partition.members("hidden")
    assert all((np.diff(partition.places["hidden"][some]) > 0).all() for some in members)
    loop = dense_weight(graph.operation("loop"))
    cut = split(prepare(graph).graph, partition)
    for s, columns in enumerate(members):
        for t, rows in enumerate(members):
            name = f"loop from part {s} to part {t}" if len(members) > 1 else "loop"
            piece = dense_weight(cut.graph.operation(name)) if name in cut.graph.nx else np.zeros((len(rows), len(columns)))
            np.testing.assert_array_equal(piece, loop[np.ix_(rows, columns)])
    values = {name: random.normal(size=p.value.shape).astype(np.float32) for name, p in whole.parameters.items()}
    shared = {name for name, value in values.items() if value.ndim == 0}
    back = found.parameters_of_whole(found.parameters_of_parts(values))
    assert back.keys() == values.keys()
    for name in values.keys() - shared:
        np.testing.assert_array_equal(back[name], values[name])
    for name in shared:
        assert back[name] == values[name]
