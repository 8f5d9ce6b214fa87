"""Relays that keep bits instead of ids: records and gradients equal the reference's, with each worker run separately."""

from dataclasses import replace

import numpy as np
import pytest
from nets import delayed
from poplar_projects import BATCH, STEPS, Project, machine, several_inputs, spiking, spiking_recurrent
from test_poplar_matches_reference import assert_same_records

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.tiles import make_plan, request_search


@pytest.fixture(autouse=True)
def _bits(monkeypatch):
    monkeypatch.setenv("SNNC_CHECK_WORKERS", "1")
    monkeypatch.setattr(request_search, "with_bits", lambda problem: [replace(problem, bits=frozenset(spike_sources(problem)))])


def spike_sources(problem):
    return [source for source in problem.network.sources if source.kind == "spikes" and source not in problem.windowed]


def case(make, folder, tiles, **options):
    output = {} if make is delayed else {"loss_output": "y"}
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-2), steps=STEPS, **output)
    plan = make_plan(program, machine(tiles), steps=STEPS, batch=BATCH, **options)
    assert {bus.form for bus in plan.buses if bus.kind == "events"} == {"bits"}
    return Project(program, plan, emit_poplar(program, plan, folder / "project"))


@pytest.mark.representative("several_inputs-3-options2")
@pytest.mark.parametrize(
    ("make", "tiles", "options"),
    [
        (spiking_recurrent, 16, {}),
        (spiking_recurrent, 3, {"capacity": 3}),
        (several_inputs, 3, {"capacity": 1}),
        (delayed, 4, {}),
    ],
)
def test_records_and_gradients_are_those_of_the_reference(tmp_path, make, tiles, options):
    found = case(make, tmp_path, tiles, **options)
    engine, reference = found.open(), found.reference()
    for seed, density in ((0, 0.4), (1, 0.03), (2, 1.0)):
        inputs, target = found.data(seed, density)
        assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
        assert engine.train_batch(inputs, target, 1e-2) == pytest.approx(reference.train_batch(inputs, target, 1e-2), rel=1e-5)
        gradients = engine.gradients()
        whole = np.sqrt(sum(float(np.square(g).sum()) for g in reference.gradients().values()))
        for name, gradient in reference.gradients().items():
            assert np.linalg.norm(gradients[name] - gradient) <= 1e-5 * max(np.linalg.norm(gradient), 0.05 * whole), name


@pytest.mark.wide
def test_what_a_full_window_drops_is_counted_as_ids_count_it(tmp_path, monkeypatch):
    """The same network with ids drops the same events."""
    options = {"capacity": 4, "mode": "drop"}
    bits = case(spiking, tmp_path, 4, **options)
    monkeypatch.undo()
    plan = make_plan(bits.program, machine(4), steps=STEPS, batch=BATCH, **options)
    ids = Project(bits.program, plan, emit_poplar(bits.program, plan, tmp_path / "ids"))
    assert {bus.form for bus in plan.buses if bus.kind == "events"} == {"ids"}
    inputs, _ = bits.data(4, 0.3)
    engines = bits.open(), ids.open()
    records = [engine.forward(inputs, {}) for engine in engines]
    assert_same_records(*records)
    counts = [engine.counters() for engine in engines]
    assert counts[0].items() <= counts[1].items(), "relays with ids count each source too"
    assert counts[0]["dropped_spikes"] > 0
