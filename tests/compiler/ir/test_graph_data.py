"""A graph converted to plain data and back is the same graph; invalid data are refused."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from graph_equality import differences

from snnc.compiler.errors import GraphDataError
from snnc.compiler.ir.graph import Add, Conv, FileLayout, Graph, Input, Linear, Output, Pad, Pool, Population, Reduce, Sparse, StateRef
from snnc.compiler.ir.graph_data import MAX_NAMES, edges_in_order, graph_from_data, graph_to_data
from snnc.compiler.neurons.library import LIF
from snnc.compiler.neurons.surrogates.library import atan

F = np.float32


def network():
    """All kinds of fields, and edges that were not added from node to node."""
    graph = Graph("net", 4)
    graph.add("x", Input((np.int64(2), 4, 4), "spikes", FileLayout(1, None)))
    graph.add("conv", Conv(np.ones((2, 2, 3, 3), F), None, (2, 1), ((1, 0), (0, 1)), groups=1, learnable=False))
    graph.add("pool", Pool("max", (2, 2), ceil=True))
    graph.add("pad", Pad(((0, 0), (1, 0), (0, 1))))
    graph.add("least", Reduce("mean", (1, 2)))
    graph.add("sum", Add())
    graph.add("a", Linear(np.full((2, 2), 0.5)))
    graph.add("b", Sparse(np.ones(2, F), np.array([0, 1], np.int32), np.array([0, 1, 2], np.int32), (2, 2)))
    graph.add("h", Population(LIF(0.9), (2,), {"beta": F(0.5)}, frozenset({"beta"}), {"v": np.zeros(2)}, atan(2.0)))
    graph.add("y", Output("all", FileLayout(2, 0)))
    rows = ("x", "conv"), ("conv", "pool"), ("pool", "pad"), ("pad", "least"), ("b", "sum"), ("least", "b"), ("a", "sum"), ("least", "a")
    for source, target in (*rows, ("b", "sum"), ("sum", "h"), ("h", "y")):
        graph.connect(source, target)
    graph.connect("h", "sum", source_port="v", delay=3)
    graph.state_inputs = {"v0": StateRef("h", "v")}
    graph.assumptions = ["é"]
    return graph


def data_and_find(graph):
    arrays = {}

    def keep(node, field, array):
        arrays[f"{node}/{field}"] = array
        return f"{node}/{field}"

    return json.loads(json.dumps(graph_to_data(graph, keep))), lambda _node, _field, name: arrays[name]


def test_the_same_graph_comes_back():
    graph = network()
    assert differences(graph, graph_from_data(*data_and_find(graph))) == []


OPAQUE = """
import sys, types, numpy.typing
class Alias:  # as numpy >= 2.5 has it on Python >= 3.12: an alias of its own, whose origin is not ndarray
    def __getitem__(self, item):
        return types.GenericAlias(self, item)
numpy.typing.NDArray = Alias()
sys.path[:0] = sys.argv[1:]
import test_graph_data as case
data, find = case.data_and_find(case.network())
print(case.differences(case.network(), case.graph_from_data(data, find)))
"""


def test_the_same_graph_comes_back_where_numpys_array_type_is_an_alias_of_its_own():
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, "-c", OPAQUE, str(here), str(here.parents[1] / "common")], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr[-2000:]


def test_edges_arrive_in_the_order_in_which_they_were_added():
    found = graph_from_data(*data_and_find(network()))
    assert [e.source for e in found.incoming("sum")] == ["b", "b", "a", "h"]
    assert sorted(edges_in_order(network()), key=repr) == sorted(network().edges, key=repr)


def changed(change):
    graph = network()
    change(graph)
    return graph


def put(name, **values):
    def change(graph):
        graph.nx.nodes[name]["operation"] = replace(graph.operation(name), **values)

    return change


@pytest.mark.parametrize(
    "change",
    [
        lambda g: setattr(g, "name", "other"),
        lambda g: setattr(g, "steps", None),
        lambda g: g.state_inputs.clear(),
        lambda g: g.assumptions.append("more"),
        lambda g: g.connect("b", "sum"),
        lambda g: g.add("z", Add()),
        put("conv", weight=np.zeros((2, 2, 3, 3), F)),
        put("conv", bias=np.zeros(2, F)),
        put("x", layout=FileLayout(0, None)),
        put("h", surrogate=None),
        put("h", learnable=frozenset()),
        put("h", model=LIF(0.8)),
        put("h", parameters={"beta": np.full(2, 0.5, F)}),
        put("b", indices=np.array([1, 0], np.int32)),
        lambda g: g.nx.nodes["sum"].update(operation=Reduce("sum", (0,))),
    ],
)
def test_every_difference_is_told(change):
    assert differences(network(), changed(change)) != []


def test_numbers_are_compared_as_they_are_computed_with():
    assert differences(network(), changed(put("a", weight=np.full((2, 2), 0.5 + 1e-12, F)))) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda d: d.update(version=1), "a different version of snnc"),
        (lambda d: d.pop("models"), "lacks models"),
        (lambda d: d.update(more=1), "unknown 'more'"),
        (lambda d: d.update(name=3), "name must be text"),
        (lambda d: d["nodes"][0].update({"is": "Softmax"}), "'Softmax'"),
        (lambda d: d["nodes"][0].update(shape=[1.5, 4, 4]), "whole number"),
        (lambda d: d["nodes"][0].update(kind="beans"), "one of spikes, values"),
        (lambda d: d["nodes"][1].update(groups=True), "whole number"),
        (lambda d: d["nodes"][1].update(learnable=1), "true or false"),
        (lambda d: d["nodes"][1].update(padding=[[1, 0, 3]]), "2 values"),
        (lambda d: d["nodes"][8].update(model=1), "one of 1 models"),
        (lambda d: d["nodes"][8].update(surrogate={"name": "atan"}), "lacks derivative"),
        (lambda d: d["models"][0].update(equations="v = open(i)"), "is unknown"),
        (lambda d: d["models"][0].update(states={"v": float("inf")}), "finite"),
        (lambda d: d["models"][0].update(outputs=["s"] * (MAX_NAMES + 1)), "names"),
        (lambda d: d["models"][0].update(equations="#" * 1_000_001), "longer than"),
        (lambda d: d["edges"][0].pop(), "edge 0"),
        (lambda d: d["edges"][0].__setitem__(0, "nobody"), "'nobody'"),
        (lambda d: d["edges"][0].__setitem__(4, -1), "0 or more"),
        (lambda d: d["nodes"].append(d["nodes"][0]), "two nodes are called 'x'"),
        (lambda d: d["models"][0].update(parameters={"beta": 10**400}), "finite"),
        (lambda d: d.update(idle_inputs={"x": "never"}), "one of ignored, zeros"),
        (lambda d: d.update(models={}), "a list of at most"),
        (lambda d: d.update(state_inputs=[]), "an object of at most"),
        (lambda d: d.update(assumptions=["\ud800"]), "text"),
    ],
)
def test_data_that_are_no_graph_are_refused(damage, said):
    data, find = data_and_find(network())
    damage(data)
    with pytest.raises(GraphDataError, match="SNNC-E027") as raised:
        graph_from_data(data, find)
    assert said in str(raised.value)
