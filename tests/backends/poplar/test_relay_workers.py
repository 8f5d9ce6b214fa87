"""Workers of a relay share its tile without writing or needing each other's words; results equal the reference's."""

from dataclasses import replace

import numpy as np
import pytest
from poplar_projects import machine, project
from test_poplar_matches_reference import assert_same_records
from windowed_nets import Windowed, deep, tangled, windowed

from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.ir.plan import Relay
from snnc.compiler.tiles.blocks.grouping import neurons_per_tile, split
from snnc.compiler.tiles.blocks.tile_range import TileRange
from snnc.compiler.tiles.placement.placement import Placement


@pytest.fixture(autouse=True)
def _apart(monkeypatch):
    monkeypatch.setenv("SNNC_CHECK_WORKERS", "1")


@pytest.mark.representative("exact several inputs")
@pytest.mark.parametrize("name", ["drop", "exact several inputs", "delayed"])
def test_workers_that_do_not_see_each_other_give_the_records_of_the_reference(name):
    case = project(name)
    engine, reference = case.open(), case.reference()
    for seed, density in ((0, 0.4), (1, 0.05), (2, 1.0)):
        inputs, _ = case.data(seed, density)
        if name != "drop":
            assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
        else:
            engine.forward(inputs, {})


@pytest.mark.wide
@pytest.mark.parametrize("name", ["two chips, further windows"])
def test_gradients_in_windows_need_no_worker_of_another(name):
    assert windowed(name).worst_error() <= 1e-5


def wide(columns, width, replicas=1):
    """Each population in `replicas`, each on at most `width` tiles, with few column groups: many neurons in each."""

    def place(problem):
        ranges, first = [], 0
        for layer in problem.network.layers:
            some, copies = min(width, layer.neurons), min(replicas, problem.batch)
            starts = tuple(first + r * some for r in range(copies))
            ranges.append(TileRange(starts, neurons_per_tile(layer.neurons, some), tuple(split(problem.batch, copies)), columns))
            first += some * copies
        yield Placement(tuple(ranges), 1)

    return place


@pytest.mark.wide
@pytest.mark.parametrize(("columns", "width", "batch", "kind"), [(1, 2, 8, "PAIRS"), (6, 2, 9, "HALVES")])
def test_masks_of_wide_and_narrow_blocks_hold_spikes_and_gradient_windows(columns, width, batch, kind):
    case = Windowed(deep(np.random.default_rng(3), (70, 37)), machine(40), batch=batch, placer=wide(columns, width))
    assert f"Mask::{kind}" in (case.folder / "codelets.cpp").read_text()
    assert case.worst_error() <= 1e-5


@pytest.mark.wide
@pytest.mark.parametrize("cuts", [(7,), (1, 4, 2)])
def test_relays_may_cut_the_batch_in_any_way(cuts, tmp_path):
    """Also across the replicas of what they keep."""
    case = Windowed(tangled(np.random.default_rng(5)), machine(60), batch=7, placer=wide(2, 2, 3))
    assert any(p.replicas == 3 for p in case.plan.populations)
    firsts = np.cumsum((0, *cuts)).tolist()
    relays = tuple(Relay(40 + 3 * n, first, count) for n, (first, count) in enumerate(zip(firsts, cuts, strict=False)))
    case.plan = replace(case.plan, buses=tuple(replace(bus, relays=relays) for bus in case.plan.buses))
    case.folder = emit_poplar(case.program, case.plan, tmp_path / "project")
    assert case.worst_error() <= 1e-5
