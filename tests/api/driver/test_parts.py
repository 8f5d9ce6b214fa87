"""Networks whose populations are split into parts: the same numbers in the author's order, at every interface."""

import json

import numpy as np
import pytest
from indexed_nets import sparse_recurrent

import snnc
from snnc.benchmarks.everyday import clustered_sparse
from snnc.compiler.machines import load_target
from snnc.compiler.tiles.activity import Activity
from snnc.compiler.tiles.errors import PartsError
from snnc.compiler.tiles.planning.parting import activity_of, map_parts, worth_planning
from snnc.compiler.tiles.planning.placing import map_program, parter_of
from snnc.driver.lowering import lower_graph
from snnc.options.compile_options import options
from snnc.project.placed import PARTS, load_parts, save_parts

GIVEN = {"steps": 8, "batch": 4, "loss": "ce_mean_membrane", "optimizer": "adam", "surrogate": "fast_sigmoid:25"}


def small():
    return sparse_recurrent(np.random.default_rng(3))


def samples():
    random = np.random.default_rng(1)
    return (random.random((8, 8, 24)) < 0.4).astype(np.float32), random.integers(0, 4, 8)


def test_a_project_in_parts_trains_and_opens_again_in_the_authors_order(tmp_path):
    x, y = samples()
    with snnc.compile(small(), **GIVEN) as reference:
        reference.fit(x, y, epochs=1)
        wanted = reference.state_dict()
        with snnc.compile(small(), "gc200", parts=3, output=tmp_path / "project", **GIVEN) as session:
            assert {name: len(ids) for name, ids in session.plan.parts.items()} == {"hidden": 3}
            session.fit(x, y, epochs=1)
            found = session.state_dict()
            assert found.keys() == wanted.keys()
            for name, value in wanted.items():
                np.testing.assert_allclose(found[name], value, atol=1e-5, err_msg=name)
            start = {"hidden.v": np.random.default_rng(2).uniform(0, 0.9, 40).astype(np.float32)}
            inputs = np.moveaxis(x[:4], 0, 1)
            reference.load_state_dict(found)
            plain, own = reference.run(inputs, start), session.run(inputs, start)
            assert plain.keys() == own.keys()
            for name, values in plain.items():
                np.testing.assert_allclose(own[name], values, atol=1e-4, err_msg=name)
            recording = session.record_samples(x, 2)
            assert [(t.label, t.width) for t in recording.trains] == [("x", 24), ("hidden", 40), ("second", 15)]
            assert "hidden in 3 parts" in session.report_text("text")
            session.save(tmp_path / "project" / "model" / "trained.safetensors")
    with snnc.open(tmp_path / "project") as again:
        for name, value in again.state_dict().items():
            np.testing.assert_allclose(value, found[name], atol=1e-6, err_msg=name)
    (tmp_path / "project" / PARTS).write_bytes(b"PK nothing")
    with pytest.raises(snnc.SnncError):
        snnc.open(tmp_path / "project")


def test_networks_without_sparse_connections_cannot_be_asked_for_in_parts():
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    with pytest.raises(PartsError, match="cannot be cut into 2 parts: no population has sparse connections"):
        snnc.compile(net, "gc200", steps=3, batch=2, parts=2)


def test_more_parts_than_neurons_are_refused():
    with pytest.raises(PartsError, match="cannot be cut into 41 parts: 40 neurons have sparse connections"):
        snnc.compile(small(), "gc200", parts=41, **GIVEN)


def tried(net, target, activity=None, wanted=None):
    """Cycles of quick looks and of whole plans by the number of populations, and what was chosen."""
    chosen = options(target, steps=60, batch=8, loss="ce_mean_membrane", optimizer="adam", surrogate="fast_sigmoid:25")
    given, wishes = lower_graph(net.graph(), chosen), chosen.for_backend().for_plan()
    looks, plans = {}, {}

    def mapper(some, spikes, quick=False):
        plan = map_program(some, wishes, spikes, machine=load_target(target), quick=quick)
        (looks if quick else plans)[len(some.populations)] = plan.cycles
        return plan

    return looks, plans, map_parts(parter_of(given.ready, given.program, wishes, activity), mapper, 1, wanted)


def test_the_number_of_parts_is_the_fastest_of_those_looked_at_and_no_slower_than_the_whole():
    looks, plans, found = tried(clustered_sparse(2, 120, 12, 1.0), "gc200")
    assert len(looks) > 1
    number = len(found.plan.parts.get("pool", ("pool",)))
    assert found.plan.cycles == min(plans.values()) == plans[number + 1]
    assert min(looks, key=looks.get) in plans
    assert number == 1 or found.parts is not None


def test_a_project_keeps_the_order_of_neurons_whose_work_is_even(tmp_path):
    whole = parter()[1]
    parts = whole.apply(whole.partition(1))
    assert all((number == 0).all() for number in parts.partition.parts.values())
    assert parts.correspondence.parts == {}
    assert (np.diff(parts.partition.members("hidden")[0]) < 0).any()
    (tmp_path / "model").mkdir()
    save_parts(parts.partition, tmp_path)
    again = load_parts(whole, tmp_path)
    for name, members in parts.partition.places.items():
        np.testing.assert_array_equal(again.partition.places[name], members)


@pytest.mark.parametrize(
    ("looks", "wanted"),
    [([3.0, 1.0, 1.1], [1, 2]), ([1.2, 1.0], [1]), ([np.inf, 2.0], [1]), ([1.1, 1.05, 1.0], [2, 1]), ([np.inf, np.inf], [])],
)
def test_the_fastest_two_looks_are_planned_when_they_are_close(looks, wanted):
    assert worth_planning((cycles, way) for way, cycles in enumerate(looks)) == wanted


def test_parts_asked_for_as_one_leave_the_plan_as_it_was():
    _, _, found = tried(clustered_sparse(2, 120, 12, 1.0), "gc200", wanted=1)
    assert found.parts is None
    assert found.plan.parts == {}


def test_estimates_tell_the_parts():
    data = snnc.estimate(small(), "gc200", **GIVEN).to_data()
    assert data["parts"] == {}
    json.dumps(data)


def parter(activity=None):
    chosen = options("gc200", steps=8, batch=4)
    given = lower_graph(small(), chosen)
    return given.program, parter_of(given.ready, given.program, chosen.for_backend().for_plan(), activity)


def test_measured_activity_is_dealt_out_over_the_parts():
    program, whole = parter()
    hidden = next(p for p in program.populations if p.label == "hidden")
    buffer = next(iter(hidden.output_buffers.values()))
    rates = np.linspace(0.0, 0.4, 40)
    given = Activity({buffer: float(rates.mean())}, {buffer: 12}, "measured", rates={buffer: rates})
    parts = whole.apply(whole.partition(4))
    found = activity_of(parts, given)
    own = [b for b, place in parts.correspondence.buffers.items() if place.whole == buffer]
    assert sum(found.mean[b] * len(found.rates[b]) for b in own) == pytest.approx(rates.sum())
    assert sorted(np.concatenate([found.rates[b] for b in own])) == pytest.approx(rates)
    assert all(12 * found.rates[b].sum() / rates.sum() <= found.peak[b] <= 12 for b in own)


def test_counts_of_every_step_and_sample_are_dealt_out_over_the_parts():
    program, whole = parter()
    hidden = next(p for p in program.populations if p.label == "hidden")
    buffer = next(iter(hidden.output_buffers.values()))
    counted = np.random.default_rng(0).integers(0, 9, (200, 4))
    rates = np.full(40, counted.mean() / 40)
    parts = whole.apply(whole.partition(4))
    given = Activity({buffer: rates[0]}, {buffer: 8}, "measured", rates={buffer: rates}, counts={buffer: counted})
    found, again = activity_of(parts, given), activity_of(parts, given)
    own = [b for b, place in parts.correspondence.buffers.items() if place.whole == buffer]
    assert set(own) <= set(found.counts)
    assert (sum(found.counts[b] for b in own) == counted).all()
    for b in own:
        assert found.counts[b].mean() == pytest.approx(found.rates[b].sum(), rel=0.15)
        assert (found.counts[b] == again.counts[b]).all()


def test_counts_stay_whole_where_neurons_only_lie_in_another_order():
    program, whole = parter()
    buffer = next(iter(next(p for p in program.populations if p.label == "hidden").output_buffers.values()))
    counted, parts = np.random.default_rng(0).integers(0, 9, (20, 4)), whole.apply(whole.partition(1))
    for seed in range(20):
        rates = np.random.default_rng(seed).random(40).astype(np.float32)
        given = Activity({buffer: float(rates.mean())}, {}, "measured", rates={buffer: rates}, counts={buffer: counted})
        own = next(b for b, place in parts.correspondence.buffers.items() if place.whole == buffer)
        assert (activity_of(parts, given).counts[own] == counted).all()


def test_busy_neurons_weigh_more():
    program, _ = parter()
    hidden = next(p for p in program.populations if p.label == "hidden")
    buffer = next(iter(hidden.output_buffers.values()))
    rates = np.where(np.arange(40) < 10, 0.5, 0.01)
    given = Activity({buffer: float(rates.mean())}, {}, "measured", rates={buffer: rates})
    graph = parter(given)[1].hypergraph()
    assert np.unique(graph.rate) == pytest.approx([0.01, 0.5])
