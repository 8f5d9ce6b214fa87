"""Gradients only for neurons in the gradient window: the emulated program compared with the dense reference."""

import json
import os
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from indexed_nets import sparse
from nets import join, linear
from poplar_projects import machine
from wide import examples, sampled
from windowed_nets import CASES, Windowed, anywhere, deep, undivided, windowed

from snnc.backends.emulator.build import include_dir
from snnc.backends.toolchain.compilers import compiler
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.neurons.library import LI, LIF, CubaLIF
from snnc.compiler.neurons.surrogates.library import boxcar, piecewise_linear
from snnc.compiler.tiles.activity import capacities
from snnc.driver.activity import measure_activity
from snnc.report.profile import read_profile


@pytest.mark.wide
@pytest.mark.parametrize("name", sampled(CASES, 3))
def test_gradients_equal_those_of_the_reference(name):
    case = windowed(name)
    assert any(bus.gradient is not None for bus in case.plan.buses)
    assert case.worst_error() <= 1e-5


@pytest.mark.wide
def test_the_cases_cover_what_they_name():
    plan = windowed("two chips, further windows").plan
    assert plan.chips_used == 2
    assert all(b.gradient.capacity < b.width for b in plan.buses if b.gradient)
    assert any(b.gradient.parts > 1 for b in windowed("many tiles").plan.buses if b.gradient)
    placed = windowed("replicas over two chips").plan
    assert placed.chips_used == 2
    assert len({p.replicas for p in placed.populations}) > 1
    assert max(b.lag for b in windowed("one tile").plan.buses if b.gradient) > 1
    case = windowed("two chips, further windows")
    engine = case.open()
    engine.train_batch(*case.data(0), 1e-3)
    assert engine.counters()["backward_rounds"] > 0
    sources = (case.folder / "host.cpp").read_text()
    assert "reduce_gradients" in sources
    assert sources.count("layout.source_rows(") == 1, "only the one-to-one link copies its weights"


@pytest.mark.wide
@pytest.mark.parametrize("counting", [True, False])
def test_sources_compile_without_a_warning(counting, tmp_path):
    folder = windowed("two chips, further windows").folder
    include = "#include <poplar/Vertex.hpp>\n"
    text = (folder / "codelets.cpp").read_text()
    assert include in text
    (tmp_path / "codelets.cpp").write_text(text if counting else text.replace(include, include + "#undef SNNC_COUNT_CYCLES\n"))
    for source in [tmp_path / "codelets.cpp", *([folder / "host.cpp"] if counting else [])]:
        flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-isystem", str(include_dir()), "-c", str(source), "-o", os.devnull]
        result = subprocess.run([*compiler(), *flags], cwd=folder, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr


@pytest.mark.wide
@pytest.mark.parametrize("surrogate", [boxcar(1.0), piecewise_linear(0.7, 0.3)], ids=str)
def test_surrogates_with_bounded_support_need_no_option(surrogate):
    case = Windowed(deep(np.random.default_rng(3), (18, 25)), machine(9), window=None, surrogate=surrogate)
    assert sum(bus.gradient is not None for bus in case.plan.buses) == 2
    assert case.worst_error() <= 1e-5


@pytest.mark.wide
def test_sparse_connections_beside_dense_ones_keep_their_deltas():
    """Both read one bus: its windows of the backward pass, and further ones."""
    random = np.random.default_rng(3)
    graph = deep(random, (20, 33), inputs=12)
    join(graph, "few", sparse(random, 33, 20, 0.1), "h0", "h1")
    join(graph, "loop", sparse(random, 33, 33, 0.05), "h1", "h1", delay=1)
    case = Windowed(graph, machine(9), batch=4, capacity=3, gradient_capacity=5)
    assert sum(bus.gradient is not None for bus in case.plan.buses) == 2
    assert {c.kind for c in case.program.connections} == {"dense", "sparse"}
    assert case.worst_error() <= 1e-5


def test_unbounded_surrogates_keep_the_dense_gradient():
    case = Windowed(deep(np.random.default_rng(3), (18, 25)), machine(9), window=None)
    assert not any(bus.gradient is not None for bus in case.plan.buses)


def random_net(seed, widths, links, inputs):
    """Populations in a row, and links among them with delays where they go back."""
    random = np.random.default_rng(seed)
    graph = Graph("random")
    graph.add("x", Input((inputs,), "spikes" if seed % 2 else "values"))
    names = [f"h{i}" for i in range(len(widths))]
    for i, (name, width) in enumerate(zip(names, widths, strict=True)):
        graph.add(name, Population(CubaLIF() if (seed + i) % 3 == 0 else LIF(0.9), (width,)))
    graph.add("readout", Population(LI(0.9), (3,)))
    sizes = {"x": inputs, "readout": 3, **dict(zip(names, widths, strict=True))}
    chain = [("x", names[0], 0), *zip(names, names[1:], [0] * len(names), strict=False), (names[-1], "readout", 0)]
    order = {name: i for i, name in enumerate([*names, "readout"])}
    others = [(names[a % len(names)], [*names, "readout"][b % (len(names) + 1)], delay) for a, b, delay in links]
    others = [(a, b, max(delay, int(order[a] >= order[b]))) for a, b, delay in others]
    for i, (source, target, delay) in enumerate([*chain, *others]):
        join(graph, f"w{i}", linear(random, sizes[target], sizes[source], bias=True, gain=3), source, target, delay=delay)
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


@pytest.mark.wide
@settings(max_examples=examples(2, 4), deadline=None)
@given(
    st.integers(0, 99),
    st.lists(st.integers(1, 40), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 3)), max_size=3),
    st.integers(1, 9),
    st.sampled_from([(1, 1), (3, 1), (23, 1), (4, 2), (30, 2)]),
    st.one_of(st.none(), st.integers(1, 8)),
    st.floats(-1, -0.01),
)
def test_random_networks_equal_the_reference(seed, widths, links, batch, tiles, capacity, low):
    graph = random_net(seed, widths, links, inputs=12)
    options = {"gradient_capacity": capacity, "capacity": capacity} if capacity else {}
    options |= {"placer": anywhere(np.random.default_rng(seed))} if tiles == (30, 2) else {"chips": tiles[1]}
    case = Windowed(graph, machine(*tiles), steps=8, batch=batch, window=(low, np.inf), **options)
    assert case.worst_error() <= 1e-5


# ---- drop mode ---------------------------------------------------------------------------------------------------------------


def kept_near(spikes, near, capacity, gradient_capacity):
    """Which neurons a window of drop mode holds, the lowest ids that spiked, then the lowest near ones; and how many of these are lost."""
    fired = spikes * (np.cumsum(spikes, axis=-1) <= capacity)
    room = gradient_capacity - fired.sum(axis=-1, keepdims=True)
    only = near * (1 - spikes)
    held = only * (np.cumsum(only, axis=-1) <= room)
    return fired + held, int((only - held).sum())


def test_drop_mode_counts_what_finds_no_room_and_gives_it_no_gradient():
    graph = deep(np.random.default_rng(3), (60,), inputs=20)
    for label, port in (("spikes", "s"), ("membrane", "v")):
        graph.add(label, Output())
        graph.connect("h0", label, source_port=port)
    case = Windowed(graph, machine(5), window=(-2.0, np.inf), mode="drop", capacity=33, gradient_capacity=36)
    engine, reference = case.open(), case.reference()
    inputs, target = case.data(0)
    engine.train_batch(inputs, target, 0.0)
    labels = {o.label: o.id for o in case.program.outputs}
    records = reference.forward(inputs, {})
    spikes, v = records[labels["spikes"]], records[labels["membrane"]]
    near = ((v - 1.0 > -2.0) | (spikes != 0)).astype(np.float32)
    kept, lost = kept_near(spikes, near, 33, 36)
    counters = engine.counters()
    assert counters["dropped_spikes"] == 0
    assert counters["p0_o0_lost_near"] == lost > 0
    # One layer by hand: leaky integration behind atan(2) in the window, cross entropy of the mean membrane.
    membrane = records[labels["y"]].mean(axis=0, dtype=np.float64)
    chance = np.exp(membrane - membrane.max(axis=1, keepdims=True))
    chance /= chance.sum(axis=1, keepdims=True)
    chance[np.arange(case.batch), target] -= 1
    weight = {p.label: p.value for p in case.program.parameters.values()}["out.weight"].astype(np.float64)
    surrogate = np.where(v - 1.0 > -2.0, 1 / (1 + np.square(np.pi * (v - 1.0))), 0)
    wanted, behind, delta = np.zeros((60, 20)), 0.0, 0.0
    for t in reversed(range(case.steps)):
        behind = chance / (case.batch * case.steps) + 0.9 * behind
        delta = (behind @ weight) * kept[t] * surrogate[t] + 0.9 * delta
        wanted += delta.T @ inputs["x0"][t]
    name = next(p.name for p in case.program.parameters.values() if p.label == "f0.weight")
    assert np.linalg.norm(engine.gradients()[name] - wanted) <= 1e-5 * np.linalg.norm(wanted)
    assert np.linalg.norm(reference_gradient(case, name) - wanted) > 1e-3 * np.linalg.norm(wanted), "what was dropped matters"


def reference_gradient(case, name):
    inputs, target = case.data(0)
    return case.reference().loss_and_gradients(inputs, target)[1][name]


# ---- prediction --------------------------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_predicted_cycles_of_windowed_gradients_are_those_of_the_emulator():
    graph = deep(np.random.default_rng(3), (220, 150), inputs=90)
    options = {"steps": 60, "batch": 6, "window": (-0.3, np.inf), "placer": undivided(12)}
    first = Windowed(graph, machine(40), **options)
    inputs, target = first.data(0, density=0.1)
    seen = measure_activity(first.program, inputs, "the data")
    room = capacities(first.program, seen.peak), capacities(first.program, seen.support_peak)
    given = {"activity": seen.mean, "support": seen.support, "capacity": room[0], "gradient_capacity": room[1], "mode": "drop"}
    case = Windowed(graph, machine(40), **options, **given)
    engine = case.open()
    engine.train_batch(inputs, target, 1e-3)
    profile = engine.profile()["emulator"]
    emulation = read_profile(case.plan, profile if isinstance(profile, dict) else json.loads(profile))
    assert emulation is not None
    measured = emulation.phases
    phases = {p.name: p for p in case.plan.phases}
    for name in (
        "forward: relays",
        "forward: neurons",
        "backward: relays and source gradients",
        "backward: neurons",
        "backward: reduction",
    ):
        found = sum(measured[name][part] for part in ("compute", "sync", "exchange"))
        predicted = phases[name].runs * (phases[name].compute + phases[name].sync + phases[name].exchange)
        assert predicted == pytest.approx(found, rel=0.1), name
    whole = sum(sum(m[part] for part in ("compute", "sync", "exchange")) for m in measured.values())
    assert case.plan.cycles == pytest.approx(whole, rel=0.05)


@pytest.mark.wide
def test_further_windows_on_several_chips_are_predicted_and_train_as_the_reference_does():
    """Relays of each chip bring together what they need, and the forward pass finds what the backward pass needs."""
    graph, options = deep(np.random.default_rng(3), (44, 40), inputs=40), {"steps": 8, "batch": 24, "placer": undivided(4, chips=3)}
    first = Windowed(graph, machine(8, 3), **options)
    inputs, target = first.data(0, density=0.2)
    seen = measure_activity(first.program, inputs, "the data")
    given = {"activity": seen.mean, "support": seen.support, "counts": seen.counts, "support_counts": seen.support_counts}
    case = Windowed(graph, machine(8, 3), **options, **given, capacity=6, gradient_capacity=9)
    assert case.worst_error() <= 1e-5
    engine = case.open()
    engine.train_batch(inputs, target, 0.0)
    profile = engine.profile()["emulator"]
    found = read_profile(case.plan, profile)
    names = [phase.name for phase in case.plan.phases]
    assert "forward: test, level 1" in names
    assert "backward: test for further windows" not in names
    counters = engine.counters()
    runs = {phase.name: phase.runs for phase in case.plan.phases}
    for part in ("forward", "backward"):
        assert counters[f"{part}_rounds"] == runs[f"{part}: further windows"] > 0
    assert counters["forward_rounds"] != counters["backward_rounds"], "the two passes need other numbers"
    for phase in case.plan.phases:
        if any(word in phase.name for word in ("test", "decisions", "window", "reduction")):
            assert phase.runs * phase.cycles == pytest.approx(sum(found.phases[phase.name].values()), rel=0.05), phase.name
    assert case.plan.cycles == pytest.approx(profile["cycles_last_run"], rel=0.05)
