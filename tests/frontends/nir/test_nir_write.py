"""Graphs written as NIR files are the same when read back; those that NIR cannot express are refused."""

import h5py
import nir
import numpy as np
import pytest
from graph_equality import differences
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wide import examples

import snnc
from snnc.compiler.ir.graph import (
    Add,
    Concat,
    Conv,
    FileLayout,
    Flatten,
    Graph,
    Input,
    Linear,
    OneToOne,
    Output,
    Pool,
    Population,
    Reduce,
    Scale,
    Slice,
    Sparse,
    StateRef,
)
from snnc.compiler.ir.verify import verify
from snnc.compiler.neurons.library import ALIF, IF, LI, LIF, CubaLIF, I, Identity, Threshold
from snnc.compiler.neurons.neuron import neuron
from snnc.compiler.neurons.surrogates.library import fast_sigmoid
from snnc.frontends.nir import errors, load_nir, write_nir
from snnc.frontends.nir.neurons import CUBA_LI, standard

AT_ONCE = {"reset": "zero", "reset_delay": False}
TO_VALUE = {"reset": "value", "reset_delay": False}


def alone(model, shape=(3,), **parameters):
    graph = Graph()
    graph.add("input", Input(shape))
    graph.add("n", Population(model, shape, {k: np.asarray(v, np.float32) for k, v in parameters.items()}))
    graph.add("output", Output())
    graph.connect("input", "n")
    graph.connect("n", "output")
    return graph


def through(operation, shape=(3,), name="x"):
    graph = Graph()
    graph.add("input", Input(shape))
    graph.add(name, operation)
    graph.add("output", Output())
    graph.connect("input", name)
    graph.connect(name, "output")
    return graph


def again(graph, tmp_path, dt=1e-3):
    """What the nodes of the written file make, without the description among its metadata."""
    write_nir(graph, tmp_path / "m.nir", dt=dt)
    with h5py.File(tmp_path / "m.nir", "a") as file:
        del file["node/metadata/snnc"]
    return load_nir(tmp_path / "m.nir")


def described_again(graph, tmp_path, dt=1e-3):
    write_nir(graph, tmp_path / "m.nir", dt=dt)
    return load_nir(tmp_path / "m.nir")


def value(graph, node, key):
    return np.asarray(graph.operation(node).parameters[key])


def same(one, other):
    """Equal but for the order of nodes and the names of sums."""

    def named(graph):
        sums = {n: f"+{sorted(e.source for e in graph.incoming(n))}" for n, _ in graph.of_type(Add)}
        edges = sorted(
            (sums.get(e.source, e.source), sums.get(e.target, e.target), e.source_port, e.target_port, e.delay) for e in graph.edges
        )
        return {sums.get(n, n): graph.operation(n) for n in graph.names}, edges

    (nodes, edges), (others, their_edges) = named(one), named(other)
    assert edges == their_edges
    assert set(nodes) == set(others)
    for name, operation in nodes.items():
        found = others[name]
        assert type(found) is type(operation)
        for field, value in vars(operation).items():
            if field == "parameters":
                assert set(value) == set(found.parameters)
                for key, array in value.items():
                    both = (np.broadcast_to(v, operation.shape) for v in (found.parameters[key], array))
                    np.testing.assert_array_equal(*both)
            elif isinstance(value, np.ndarray):
                np.testing.assert_array_equal(getattr(found, field), value)
            else:
                assert getattr(found, field) == value, (name, field)


# ---- the round trip --------------------------------------------------------------------------------------------------

positive = st.floats(0.015625, 0.984375, width=32)
signed = st.floats(-1, 1, width=32)


@st.composite
def populations(draw, size):
    def number(values):
        one = draw(st.booleans())
        return np.float32(draw(values)) if one else np.array(draw(st.lists(values, min_size=size, max_size=size)), np.float32)

    kinds = ("I", "IF", "LI", "LIF", "CubaLI", "CubaLIF")
    form = draw(st.sampled_from(["Threshold", *kinds, *(f"own {kind}" for kind in kinds)]))
    reset = draw(st.sampled_from([AT_ONCE, TO_VALUE]))
    model = {
        "I": I(),
        "IF": IF(**reset),
        "LI": LI(),
        "LIF": LIF(**reset),
        "CubaLI": CUBA_LI,
        "CubaLIF": CubaLIF(**reset),
        "Threshold": Threshold(),
    }.get(form)
    if model is None:
        kind = form.removeprefix("own ")
        model = standard(kind, snnc.compiler.neurons.library.resets.Firing(**reset) if kind.endswith("F") else None)
    parameters = {}
    for name in model.parameters:
        if name == "dt":
            parameters[name] = np.float32(1e-3)
        elif name in ("r", "w_in"):
            parameters[name] = number(st.floats(2, 8, width=32))
        elif name in ("v_leak", "v_reset"):
            parameters[name] = number(st.floats(0.125, 1, width=32))
        else:
            parameters[name] = number(positive)
    return Population(model, (size,), {k: np.asarray(v) for k, v in parameters.items()})


@st.composite
def networks(draw):
    graph = Graph("m")
    size = draw(st.integers(1, 4))
    graph.add("input", Input((size,)))
    ends = ["input"]
    rng = np.random.default_rng(draw(st.integers(0, 99)))

    def weight(outputs, inputs):
        return rng.normal(0, 1, (outputs, inputs)).astype(np.float32)

    for k in range(draw(st.integers(1, 4))):
        width = draw(st.integers(1, 4))
        population = graph.add(f"p{k}", draw(populations(width)))
        for j, source in enumerate(draw(st.lists(st.sampled_from(ends), min_size=1, max_size=2, unique=True))):
            inputs = graph.operation(source).shape[0]
            bias = rng.normal(0, 1, width).astype(np.float32) if draw(st.booleans()) else None
            layer = graph.add(f"w{k}.{j}", Linear(weight(width, inputs), bias))
            graph.connect(source, layer, delay=draw(st.sampled_from([0, 0, 2])) if source != "input" or j else 0)
            graph.connect(layer, population)
        if draw(st.booleans()) and graph.operation(population).model.states:
            layer = graph.add(f"r{k}", Linear(weight(width, width)))
            graph.connect(population, layer, delay=draw(st.sampled_from([1, 1, 3])))
            graph.connect(layer, population)
        ends.append(population)
        if draw(st.booleans()):
            back = draw(st.sampled_from(ends[1:]))
            layer = graph.add(f"b{k}", Linear(weight(graph.operation(back).shape[0], width)))
            late = draw(st.sampled_from([(1, 0), (0, 1), (1, 1)]))
            graph.connect(population, layer, delay=late[0])
            graph.connect(layer, back, delay=late[1])
    for population in ends[1:]:
        if population == ends[-1] or not graph.outgoing(population):
            graph.connect(population, graph.add(f"out_{population}", Output()))
    if not graph.outgoing("input"):
        graph.connect("input", graph.add("out", Output()))
    verify(graph)
    return graph


@settings(max_examples=examples(8, 60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(graph=networks())
def test_the_nodes_alone_make_the_same_network(graph, tmp_path):
    same(graph, again(graph, tmp_path))


@settings(max_examples=examples(8, 20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(graph=networks())
def test_reading_undoes_writing(graph, tmp_path):
    assert differences(graph, described_again(graph, tmp_path)) == []


def full():
    """A network with all that NIR has no words for, but that changes no value."""
    graph = Graph("a name", 7)
    graph.add("x/1", Input((4,), "spikes", FileLayout(1, 0)))
    graph.add("both", Add())
    pattern = {"indices": np.array([1, 3, 0], np.int32), "indptr": np.array([0, 2, 3], np.int32), "shape": (2, 4)}
    graph.add("few", Sparse(np.array([0.5, -1.0, 2.0], np.float32), **pattern, learnable=False))
    graph.add("relay", Population(Identity(), (2,)))
    parameters = {"beta": np.full(2, 0.75, np.float32)}
    graph.add("h.1", Population(LIF(**AT_ONCE), (2,), parameters, frozenset({"beta"}), {"v": np.zeros(2, np.float32)}, fast_sigmoid(10.0)))
    graph.add("y", Output("all", FileLayout(2, 0)))
    for edge in (("x/1", "both"), ("x/1", "both"), ("both", "few"), ("few", "relay"), ("relay", "h.1"), ("h.1", "y")):
        graph.connect(*edge)
    graph.state_inputs = {"v0": StateRef("h.1", "v")}
    graph.assumptions = ["Somebody said so."]
    return graph


def test_what_nir_has_no_words_for_comes_back(tmp_path):
    assert differences(full(), described_again(full(), tmp_path)) == []
    assert differences(full(), again(full(), tmp_path)) != []


def change(path, place, value):
    with h5py.File(path, "a") as file:
        del file[place]
        file[place] = value


def test_weights_and_time_constants_are_those_of_the_file(tmp_path):
    write_nir(full(), tmp_path / "m.nir", dt=1e-3)
    change(tmp_path / "m.nir", "node/nodes/few/weight", np.array([[0, 4, 0, 5], [6, 0, 0, 0]], np.float32))
    change(tmp_path / "m.nir", "node/nodes/h.1/tau", np.array([0.002, 0.002]))
    change(tmp_path / "m.nir", "node/nodes/h.1/r", np.array([2.0, 2.0]))
    found = load_nir(tmp_path / "m.nir")
    assert found.names == full().names
    np.testing.assert_array_equal(found.operation("few").weight, [4, 5, 6])
    np.testing.assert_array_equal(found.operation("h.1").parameters["beta"], [0.5, 0.5])


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("node/nodes/few/weight", np.ones((2, 4), np.float32)),
        ("node/nodes/h.1/v_leak", np.array([0.5, 0.5])),
        ("node/metadata/snnc", "{"),
        ("node/metadata/snnc", '{"version": 2}'),
        ("node/metadata/snnc", "[" * 100_000),
        ("node/metadata/snnc", b"\xff\xfe"),
    ],
)
def test_a_description_that_does_not_fit_is_not_used(place, value, tmp_path):
    write_nir(full(), tmp_path / "m.nir", dt=1e-3)
    change(tmp_path / "m.nir", place, value)
    found = load_nir(tmp_path / "m.nir")
    assert "x.1" in found.names
    assert "is not used" in found.assumptions[-1]


def test_a_written_file_is_alone_and_readable_by_all_who_may(tmp_path):
    (tmp_path / "other").write_text("")
    write_nir(full(), tmp_path / "m.nir", dt=1e-3)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.nir", "other"]
    assert (tmp_path / "m.nir").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_another_dialect_reads_the_nodes(tmp_path):
    write_nir(full(), tmp_path / "m.nir", dt=1e-3)
    found = load_nir(tmp_path / "m.nir", dialect="snntorch")
    assert "SNNC" not in found.assumptions[-1]
    assert "read with the conventions of snntorch" in found.assumptions[-1]


def test_windows_come_back(tmp_path):
    weight, bias = np.ones((2, 1, 3, 2), np.float32), np.ones(4, np.float32)
    same_graph = through(Conv(weight[:, :1], bias[:2], (2, 1), ((1, 1), (0, 0)), (1, 1), 1), (1, 6, 6))
    same(same_graph, again(same_graph, tmp_path))
    uneven = through(Conv(weight, bias[:2], (1, 1), ((1, 1), (0, 1)), (1, 1), 1), (1, 6, 6))
    same(uneven, again(uneven, tmp_path))
    line = through(Conv(np.ones((2, 1, 3), np.float32), bias[:2], (1,), ((1, 1),), (2,), 1), (1, 6))
    same(line, again(line, tmp_path))
    for kind in ("sum", "average"):
        pool = through(Pool(kind, (2, 2), (1, 2), ((1, 1), (0, 0))), (1, 6, 6))
        same(pool, again(pool, tmp_path))
    flat = through(Flatten(), (1, 6, 6))
    same(flat, again(flat, tmp_path))


def test_a_missing_flatten_is_put_in(tmp_path):
    found = again(through(Linear(np.ones((2, 6), np.float32)), (2, 3)), tmp_path)
    assert [n for n, _ in found.of_type(Flatten)] == ["input.flat"]


def test_the_file_suits_the_nir_package(tmp_path):
    graph = alone(LIF(**AT_ONCE), beta=0.9)
    write_nir(graph, tmp_path / "m.nir", dt=1e-3)
    found = nir.read(tmp_path / "m.nir")
    assert found.edges == [("input", "n"), ("n", "output")]
    np.testing.assert_allclose(found.nodes["n"].tau, 0.01, rtol=1e-6)
    np.testing.assert_allclose(found.nodes["n"].r, 10, rtol=1e-6)
    assert found.metadata["dt"] == 1e-3


def test_recurrence_is_a_cycle_of_edges(tmp_path):
    graph = alone(LIF(**AT_ONCE), beta=0.9)
    graph.add("w", Linear(np.ones((3, 3), np.float32)))
    graph.connect("n", "w", delay=1)
    graph.connect("w", "n")
    write_nir(graph, tmp_path / "m.nir", dt=1e-3)
    assert set(nir.read(tmp_path / "m.nir").edges) == {("input", "n"), ("n", "w"), ("w", "n"), ("n", "output")}


def test_another_step_scales_the_time_constants(tmp_path):
    graph = alone(standard("LI", None), dt=1e-3, tau=0.01, v_leak=0.5, r=2.0)
    found = again(graph, tmp_path, dt=1e-4)
    assert float(value(found, "n", "tau")) == pytest.approx(1e-3)


def test_sums_identities_and_names_with_slashes(tmp_path):
    graph = Graph()
    for name in ("a/b", "c"):
        graph.add(name, Input((2,)))
    graph.add("+", Add())
    graph.add("relay", Population(Identity(), (2,)))
    graph.add("one", OneToOne())
    graph.add("out", Output())
    for ends in (("a/b", "+"), ("c", "+"), ("c", "+"), ("+", "relay"), ("relay", "one"), ("one", "out")):
        graph.connect(*ends)
    found = again(graph, tmp_path)
    assert {"a.b", "c", "out"} < set(found.names)
    x = np.ones((2, 1, 2), np.float32)
    with snnc.compile(found, target="reference", steps=2, batch=1) as session:
        np.testing.assert_array_equal(session.run({"a.b": x, "c": 10 * x})["out"], 21 * x)


def test_equations_written_otherwise_are_recognised(tmp_path):
    norse = neuron(
        "mine",
        states={"v": 0},
        params={"threshold": 0.7},
        equations="v = v + 0.1*((0.2 - v) + i)\nz = spike(v - threshold)\nv = (1 - z)*v",
        output="z",
    )
    found = again(alone(norse, threshold=[0.5, 0.6, 0.7]), tmp_path)
    assert found.operation("n").model == standard("LIF", snnc.compiler.neurons.library.resets.Firing("zero", False))
    assert float(value(found, "n", "tau")) == pytest.approx(0.01, rel=1e-4)
    assert float(value(found, "n", "v_leak")) == pytest.approx(0.2, rel=1e-4)


def test_a_late_reset_to_zero_that_keeps_the_current_spikes_alike(tmp_path):
    found = again(alone(LIF(reset="zero"), beta=0.9), tmp_path)
    assert found.operation("n").model == LIF(**AT_ONCE)


def test_what_the_file_does_not_say_is_told(tmp_path):
    graph = alone(LIF(**AT_ONCE), beta=0.9)
    p = graph.operation("n")
    graph.nx.nodes["n"]["operation"] = Population(p.model, p.shape, p.parameters, frozenset({"beta"}), {}, fast_sigmoid(25.0))
    notes = write_nir(graph, tmp_path / "m.nir", dt=1e-3)
    assert any("learnable" in n for n in notes)
    assert any("surrogate" in n for n in notes)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (LIF(), "subtracts its threshold"),
        (CubaLIF(reset="zero"), "reset differently"),
        (LIF(reset="none"), "is not reset"),
        (LIF(reset="zero", reset_delay=False, strict=False), "fires at or above its threshold"),
        (ALIF(), "equations of no NIR neuron"),
        (snnc.Alpha(), "equations of no NIR neuron"),
        (LIF(beta=1.0, **AT_ONCE), "keeps 1 of its state"),
    ],
)
def test_neurons_that_nir_lacks(tmp_path, model, reason):
    with pytest.raises(errors.NotInNirError, match=reason) as caught:
        write_nir(alone(model), tmp_path / "m.nir", dt=1e-3)
    assert "'n'" in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("operation", "shape"),
    [
        (Pool("max", (2, 2)), (1, 4, 4)),
        (Pool("average", (2, 2), (2, 2), ((1, 1), (0, 0)), count_padding=False), (1, 4, 4)),
        (Slice(0, 0, 2), (3,)),
        (Reduce("sum", (0,), True), (3,)),
        (Concat(), (3,)),
        (Scale(np.ones(3, np.float32), np.ones(3, np.float32)), (3,)),
        (Conv(np.ones((1, 1, 3, 3), np.float32), None, (1, 1), ((0, 2), (1, 1)), (1, 1), 1), (1, 4, 4)),
    ],
)
def test_operations_that_nir_lacks(tmp_path, operation, shape):
    with pytest.raises(errors.NotInNirError, match="'x'"):
        write_nir(through(operation, shape), tmp_path / "m.nir", dt=1e-3)


def test_ends_and_ports_that_nir_lacks(tmp_path):
    last = through(Linear(np.ones((2, 3), np.float32)))
    last.nx.nodes["output"]["operation"] = Output("last")
    still = through(Linear(np.ones((2, 3), np.float32)))
    still.nx.nodes["input"]["operation"] = Input((3,), layout=FileLayout(None, 0))
    membrane = alone(LIF(**AT_ONCE))
    membrane.add("v", Output())
    membrane.connect("n", "v", source_port="v")
    started = alone(LIF(**AT_ONCE))
    p = started.operation("n")
    started.nx.nodes["n"]["operation"] = Population(p.model, p.shape, {}, initial={"v": np.asarray(0.5)})
    for graph, reason in ((last, "every step"), (still, "sequences"), (membrane, "reads 'v'"), (started, "no initial states")):
        with pytest.raises(errors.NotInNirError, match=reason):
            write_nir(graph, tmp_path / "m.nir", dt=1e-3)


def test_a_path_that_cannot_be_written(tmp_path):
    with pytest.raises(errors.NirWriteError, match="No such file"):
        write_nir(alone(I()), tmp_path / "none" / "m.nir", dt=1e-3)
    for dt in (0.0, float("nan")):
        with pytest.raises(errors.NirTimeStepError):
            write_nir(alone(I()), tmp_path / "m.nir", dt=dt)
