"""Shorter segments are tried for networks that do not fit because of their sequence, not because of their update."""

from dataclasses import replace

import numpy as np
import pytest
from nets import recurrent

from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target
from snnc.compiler.tiles import make_plan, request_search
from snnc.compiler.tiles.errors import TooBigError


@pytest.fixture
def tried(monkeypatch):
    """The ways of segments that were searched."""
    found, search = [], request_search._in_segments

    def counted(request, way, *arguments, **options):
        found.append(way)
        return search(request, way, *arguments, **options)

    monkeypatch.setattr(request_search, "_in_segments", counted)
    return found


def planned(steps, share):
    """Plan for one tile that has `share` times the bytes that its update needs; return also the bytes that the whole step needs."""
    program = lower(recurrent(np.random.default_rng(3)), loss=parse_loss("ce_count"), optimizer=Adam(1e-3), steps=steps)
    target = replace(load_target("gc200"), name="one", tiles_per_chip=1, tile_bytes=1 << 30)
    whole = make_plan(program, target, steps=steps, batch=6, quick=True)
    of = {phase.name: sum(phase.tile.values()) for phase in whole.memory_over_time}
    room = share * of["update: optimiser"]
    return make_plan(program, replace(target, tile_bytes=int(room)), steps=steps, batch=6, quick=True), max(of.values())


def test_an_update_that_does_not_fit_is_not_searched_in_segments(tried):
    with pytest.raises(TooBigError):
        planned(steps=10, share=0.9)
    assert tried == []


def test_a_sequence_that_does_not_fit_is_searched_in_segments(tried):
    plan, whole = planned(steps=200, share=1.5)
    assert tried
    assert plan.segment
    assert max(plan.tile_memory) <= plan.target.tile_bytes < whole
