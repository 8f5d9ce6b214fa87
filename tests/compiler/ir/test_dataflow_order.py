"""The order in which a graph's operations are displayed."""

import random

import networkx as nx
import numpy as np
import pytest

import snnc
from snnc.compiler.ir.dataflow_order import dataflow_order, in_dataflow_order
from snnc.compiler.ir.graph import Graph, Input, Linear, Output, Population


def graph(nodes, edges, order=None):
    """`nodes`: names, ``i…`` inputs, ``o…`` outputs, ``w…`` weights, else neurons; `edges`: (source, target, delay)."""
    found = Graph()
    for name in order or nodes:
        kinds = {"i": Input((2,)), "o": Output(), "w": Linear(np.ones((2, 2), np.float32))}
        found.add(name, kinds.get(name[0], Population(snnc.LIF(), (2,))))
    for source, target, delay in edges:
        found.connect(source, target, delay=delay)
    return found


CHAIN = (["i", "w1", "a", "w2", "b", "o"], [("i", "w1", 0), ("w1", "a", 0), ("a", "w2", 1), ("w2", "b", 0), ("b", "o", 0)])
FEEDBACK = (
    ["i", "w1", "wf", "a", "w2", "b", "o"],
    [("i", "w1", 0), ("w1", "a", 0), ("wf", "a", 0), ("a", "w2", 1), ("w2", "b", 0), ("b", "wf", 1), ("b", "o", 0)],
)
RECURRENT = (
    ["i", "w1", "wr", "a", "w2", "b", "o"],
    [("i", "w1", 0), ("w1", "a", 0), ("a", "wr", 1), ("wr", "a", 0), ("a", "w2", 3), ("w2", "b", 0), ("b", "o", 0)],
)


FORWARD_DELAY = (  # the only delay of the cycle is on its way forward
    ["i", "w1", "a", "w2", "b", "wf", "o"],
    [("i", "w1", 0), ("w1", "a", 0), ("a", "w2", 1), ("w2", "b", 0), ("b", "wf", 0), ("wf", "a", 0), ("b", "o", 0)],
)
LONG_CYCLE = (
    ["i", "w1", "a", "w2", "b", "w3", "c", "wf", "d", "o"],
    [
        *[("i", "w1", 0), ("w1", "a", 0), ("a", "w2", 0), ("w2", "b", 0), ("b", "w3", 1), ("w3", "c", 0)],
        *[("c", "wf", 1), ("wf", "d", 0), ("d", "a", 0), ("c", "o", 0)],
    ],
)
CASES = {"chain": CHAIN, "feedback": FEEDBACK, "recurrent": RECURRENT, "forward delay": FORWARD_DELAY, "long cycle": LONG_CYCLE}


@pytest.mark.parametrize(("nodes", "edges"), CASES.values(), ids=CASES)
def test_layers_run_from_the_input_to_the_output_whatever_is_delayed_and_however_they_were_added(nodes, edges):
    for order in (random.Random(seed).sample(nodes, len(nodes)) for seed in range(40)):
        assert dataflow_order(graph(nodes, edges, order)) == nodes[:-1]


def test_of_any_graph_each_node_stands_once_and_only_what_closes_a_cycle_points_upwards():
    for seed in range(60):
        rng = random.Random(seed)
        names = ["i", *(f"{rng.choice('wn')}{k}" for k in range(rng.randint(1, 12)))]
        edges = [(rng.choice(names[:k]), name, rng.choice([0, 0, 1, 2])) for k, name in enumerate(names) if k]
        edges += [(rng.choice(names), rng.choice(names[1:]), rng.randint(1, 3)) for _ in range(rng.randint(0, 4))]
        shuffled = rng.sample(names, len(names))
        one = graph(names, edges, shuffled)
        found = dataflow_order(one)
        assert sorted(found) == sorted(names)
        place = {name: k for k, name in enumerate(found)}
        whole = nx.DiGraph((s, t) for s, t, _ in edges)
        upwards = [(s, t) for s, t, _ in edges if place[s] >= place[t]]
        assert all(nx.has_path(whole, t, s) for s, t in upwards), "only what closes a cycle points upwards"
        again = in_dataflow_order(one)
        assert list(again.names) == found
        assert {(e.source, e.target, e.delay) for e in again.edges} == set(edges)
        assert all(again.incoming(name) == one.incoming(name) for name in names)
