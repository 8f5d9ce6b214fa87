"""Passes: the result of each, and that all together preserve the meaning of the graph."""

import numpy as np
import pytest

from snnc.compiler.errors import CycleWithoutDelayError, UnknownPassError
from snnc.compiler.ir.graph import Add, Concat, Flatten, Graph, Input, Linear, OneToOne, Output, Population, StateRef
from snnc.compiler.neurons.library import LI, LIF
from snnc.compiler.passes import flow
from snnc.compiler.passes.flow import DEFAULT_FLOW, dissolve_add, drop_flatten, merge_linear, run_flow
from snnc.compiler.passes.materialise_relays import materialise_relays


def graph_of(text, **operations):
    """Edges as "a -> b, b -1> c" (a digit: the delay); nodes not among `operations` are made by their first letter."""
    graph = Graph()
    kinds = {
        "x": lambda: Input((4,), "spikes"),
        "p": lambda: Population(LIF(0.9), (4,)),
        "f": lambda: Linear(np.eye(4, dtype=np.float32)),
        "b": lambda: Linear(np.eye(4, dtype=np.float32), np.ones(4, np.float32)),
        "a": Add,
        "c": Concat,
        "v": Flatten,
        "o": OneToOne,
        "y": Output,
    }
    for part in text.split(","):
        source, arrow, target = part.split()
        for name in (source, target):
            if name not in graph.nx:
                graph.add(name, operations.get(name) or kinds[name[0]]())
        graph.connect(source, target, delay=int(arrow[1:-1] or 0))
    return graph


def edges(graph):
    return sorted(f"{e.source} -{e.delay or ''}> {e.target}" for e in graph.edges)


def relays(graph):
    return sorted(name for name, p in graph.of_type(Population) if p.model.name == "Relay")


IMAGE = Population(LIF(0.9), (2, 2))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x -> v, v -> p, p -> y", ["p -> y", "x -> p"]),
        ("x -1> v, v -2> p, p -> y", ["p -> y", "x -3> p"]),
        ("x -> v, v -> f, f -> p, v -> p, p -> y", ["f -> p", "p -> y", "x -> f", "x -> p"]),
        ("x -> v, v -> v2, v2 -> p, p -> y", ["p -> y", "x -> p"]),
    ],
)
def test_flatten_is_dropped_in_front_of_what_reads_vectors(before, after):
    assert edges(drop_flatten(graph_of(before))) == after


def test_flatten_stays_where_it_gives_a_shape():
    graph = graph_of("x -> pi, pi -> v, v -> y", pi=IMAGE)
    assert edges(drop_flatten(graph)) == edges(graph)
    other = graph_of("x -> pi, pi -> v, v -> q, q -> y", pi=IMAGE, q=Population(LIF(0.9), (1, 4, 1)))
    assert edges(drop_flatten(other)) == edges(other)


def test_identities_are_merged_with_what_is_around_them():
    assert edges(merge_linear(graph_of("x -> o, o -1> f, f -> p, p -> y"))) == ["f -> p", "p -> y", "x -1> f"]


def test_weights_are_not_multiplied():
    graph = graph_of("x -> o, o -> f, f -> p, p -> y", o=OneToOne(np.float32(2) * np.ones(4, np.float32)))
    assert edges(merge_linear(graph)) == edges(graph)


@pytest.mark.parametrize("change", [drop_flatten, merge_linear, dissolve_add])
def test_a_value_before_the_first_step_is_not_moved_over_a_delay(change):
    name = {drop_flatten: "v", merge_linear: "o", dissolve_add: "a"}[change]
    graph = graph_of(f"x -> p, p -1> {name}, {name} -1> p2, p2 -> y")
    assert "p -2> p2" in edges(change(graph))
    graph.state_inputs["s"] = StateRef("p", "s")
    assert edges(change(graph)) == edges(graph)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x -> f, f -> a, p -1> a, a -> p, p -> y", ["f -> p", "p -1> p", "p -> y", "x -> f"]),
        ("x -> f, f -> a, x -> a, a -> a2, x -2> a2, a2 -1> p, p -> y", ["f -1> p", "p -> y", "x -1> p", "x -3> p", "x -> f"]),
        ("x -> a, x -> a, a -> p, p -> y", ["p -> y", "x -> p", "x -> p"]),
    ],
)
def test_sums_in_front_of_populations_are_dissolved(before, after):
    assert edges(dissolve_add(graph_of(before))) == after


@pytest.mark.parametrize(
    "text",
    [
        "x -> a, a -1> a, a -> p, p -> y",
        "x -> f, f -> a, x -> a, a -> p, a -> p2, p -> y, p2 -> y2",
        "x -> a, x -> a, a -> y",
    ],
)
def test_other_sums_stay(text):
    graph = graph_of(text)
    assert edges(dissolve_add(graph)) == edges(graph)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("x -> f, f -> p, p -> y", []),
        ("x -> f, f -> y", ["f.relay"]),
        ("x -> f, f -> f2, f2 -> p, p -> y", ["f.relay"]),
        ("x -> f, f -> p, f -> p2, p -> y, p2 -> y2", ["f.relay"]),
        ("x -> f, f -1> p, p -> y", []),
        ("x -> b, b -1> p, p -> y", ["b.relay"]),
        ("x -> a, x -> a, a -> f, f -> p, p -> y", ["a"]),
        ("x -> f, f -> a, x -> a, a -> y", ["a"]),
        ("x -> a, a -1> a, a -> p, p -> y", ["a"]),
        ("x -> c, x -> c, c -> y", ["c.relay"]),
        ("x -> f, f -> c, x -> c, c -> y", ["c.relay", "f.relay"]),
        ("x -> y", []),
        ("x -> v, v -> y", []),
        ("x -> f, f -> v, v -> y", ["v"]),
    ],
)
def test_values_without_a_population_become_relays(text, names):
    graph = materialise_relays(graph_of(text))
    assert relays(graph) == names
    assert edges(materialise_relays(graph)) == edges(graph)


def test_a_relay_takes_a_free_name():
    graph = graph_of("x -> f, f -> y, x -> p, p -> y2")
    graph.add("f.relay", Population(LI(0.9), (4,)))
    graph.connect("x", "f.relay")
    assert "f.relay2" in materialise_relays(graph).names


def test_passes_leave_their_argument_as_it_is():
    text = "x -> v, v -> o, o -> f, f -> a, x -> a, a -> p, p -> c, x -> c, c -> y"
    graph = graph_of(text)
    for change in DEFAULT_FLOW.values():
        change(graph)
    assert edges(graph) == edges(graph_of(text))


def test_the_flow_stops_behind_the_pass_that_is_named():
    graph = graph_of("x -> v, v -> f, f -> y")
    assert edges(run_flow(graph, "drop-flatten")) == ["f -> y", "x -> f"]
    assert relays(run_flow(graph)) == ["f.relay"]
    assert edges(run_flow(run_flow(graph))) == edges(run_flow(graph))


def test_an_unknown_pass_is_refused():
    with pytest.raises(UnknownPassError, match="'nope' does not exist; the flow is drop-flatten, merge-linear"):
        run_flow(graph_of("x -> p, p -> y"), "nope")


def test_a_pass_that_breaks_the_graph_is_caught(monkeypatch):
    def with_cycle(graph):
        graph = graph.copy()
        graph.connect("p", "p")
        return graph

    monkeypatch.setattr(flow, "DEFAULT_FLOW", {"with-cycle": with_cycle})
    with pytest.raises(CycleWithoutDelayError):
        run_flow(graph_of("x -> p, p -> y"))
