"""Messages about networks that do not fit, and that they are true."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest
from mapping_nets import Wire, program, w1
from wide import examples, sampled

import snnc
from snnc.compiler.ir.step_program import StepProgram
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower
from snnc.compiler.machines import load_target, parse_target
from snnc.compiler.machines.target import Links, Target
from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles import remedies as knobs
from snnc.compiler.tiles.errors import Remedy, TooBigError
from snnc.compiler.tiles.remedies import IN_FILE, larger_targets
from snnc.compiler.tiles.search.search import EFFORT


def chain(*widths: int) -> StepProgram:
    names = ["x0", *(f"p{n}" for n in range(len(widths) - 1))]
    return program(dict(zip(names, widths, strict=True)), [Wire(a, b) for a, b in itertools.pairwise(names)])


def tiles(count: int, tile_bytes: int) -> Target:
    return replace(load_target("gc200"), name="small", tiles_per_chip=count, tile_bytes=tile_bytes, links=None)


LITTLE = examples(0, EFFORT // 8)
"""What a knob does is as true of a shorter search."""
CASES: dict[str, tuple[StepProgram, Target, dict[str, Any]]] = {
    "few tiles": (chain(80, 60, 50, 10), tiles(4, 60_000), {"steps": 30, "batch": 20}),
    "deep": (chain(700, 1500, 1500, 20), tiles(130, 638_976), {"steps": 20, "batch": 24}),
    "large batch": (w1(), tiles(100, 240_000), {"steps": 60, "batch": 96, "streaming": "off"}),
    "long": (chain(300, 100, 20), load_target("gc2"), {"steps": 20_000, "batch": 4}),
    "dropping": (chain(2000, 40, 10), tiles(16, 100_000), {"steps": 60, "batch": 16, "mode": "drop", "capacity": 400}),
    "too large for any": (chain(300, 900, 900, 10), tiles(60, 100_000), {"steps": 50, "batch": 16}),
    "several chips": (
        chain(300, 700, 700, 10),
        replace(load_target("m2000"), name="four", tiles_per_chip=16),
        {"steps": 30, "batch": 64, "streaming": "off"},
    ),
    "small": (chain(80, 60, 10), tiles(8, 36_000), {"steps": 40, "batch": 14}),
}


def refusal(net: StepProgram, target: Target, options: dict[str, Any]) -> TooBigError:
    with pytest.raises(TooBigError) as caught:
        make_plan(net, target, effort=LITTLE, **options)
    return caught.value


@cache
def of(case: str) -> TooBigError:
    """All knobs planned with full effort, so that they are the same on a slow computer."""
    with patch.object(knobs, "SECONDS", 1e6):
        return refusal(*CASES[case])


def turn(net: StepProgram, target: Target, options: dict[str, Any], knob: Remedy) -> tuple[StepProgram, Target, dict[str, Any]]:
    """Do what a knob says, as the command line would."""
    changed = dict(options)
    for name, value in knob.options:
        match name:
            case "--batch" | "--steps" | "--capacity":
                changed[name.removeprefix("--")] = int(value)
            case "--mode" | "--streaming":
                changed[name.removeprefix("--")] = value
            case "--target":
                target = load_target(value)
            case "--optimizer":
                assert value == "sgd"
                net = replace(net, optimizer=SGD())
            case _:
                assert name == IN_FILE
                target = replace(target, chips=int(value))
    return net, target, changed


@pytest.mark.wide
@pytest.mark.parametrize("case", sampled(CASES, 4))
def test_every_knob_has_the_effect_that_is_claimed(case: str) -> None:
    error = of(case)
    assert 1 <= len(error.knobs) <= 3
    for knob in error.knobs:
        changed = turn(*CASES[case], knob)
        if knob.fits:
            plan = make_plan(changed[0], changed[1], effort=LITTLE, **changed[2])
            assert max(plan.tile_memory) == knob.bytes <= plan.target.tile_bytes
            assert knob.exact
            assert plan.chips_used <= knob.chips
        else:
            assert refusal(*changed).needed == knob.bytes > error.available
        assert knob.fits or knob.bytes < error.needed
        assert f"{knob.bytes:,} bytes" in str(error)
        assert " ".join(itertools.chain(*knob.options)) in str(error)


@pytest.mark.representative("dropping")
@pytest.mark.parametrize("case", sampled(CASES, 4))
def test_what_fits_comes_first(case: str) -> None:
    found = of(case).knobs
    assert sorted(found, key=lambda knob: not knob.fits) == list(found)
    short = [knob.bytes for knob in found if not knob.fits]
    assert short == sorted(short)


@pytest.mark.representative("few tiles")
@pytest.mark.parametrize("case", sampled(CASES, 4))
def test_the_message_names_bytes_tile_layer_and_category(case: str) -> None:
    net, target, _ = CASES[case]
    error = of(case)
    text = str(error)
    assert text.startswith(f"SNNC-E313: the network does not fit on {target.name}: ")
    assert f"{error.needed:,} bytes and has {target.tile_bytes:,}" in text
    assert f"{error.category_bytes:,} bytes, is " in text
    assert error.available == target.tile_bytes < error.needed
    assert error.category_bytes <= error.needed
    assert "tile" in text
    assert error.layer in {p.label for p in net.populations} | {""}
    assert repr(error.layer) in text or "relays of" in text or "losses of" in text


@pytest.mark.wide
@pytest.mark.parametrize("kind", ["values", "spikes"])
def test_what_relays_keep_is_named_by_its_kind(kind: str) -> None:
    net = snnc.Network("wide")
    readout = net.population(3, snnc.LI(beta=0.9), name="readout")
    net.connect(net.input(2000, kind=kind), readout, snnc.Dense(seed=0))  # type: ignore[arg-type]
    made = lower(net.graph(), loss=None, optimizer=None, steps=100)
    with pytest.raises(TooBigError, match=rf"bytes, is {kind} of all steps"):
        make_plan(made, tiles(4, 20_000 if kind == "spikes" else 300_000), steps=100, batch=1, effort=0)


@pytest.mark.parametrize("size", [100_000, 110_000], ids=["no placement", "a placement"])
def test_code_for_what_a_tile_reads_is_told_apart_from_its_codelets(size: int) -> None:
    machine = tiles(1400, size)
    with pytest.raises(TooBigError) as caught:
        make_plan(chain(20, 1000, 1000, 5), machine, steps=10, batch=4, quick=True, packed=False)
    error = caught.value
    found = re.search(r"([\d,]+) bytes, is code \(([\d,]+) of them exchange code", str(error))
    assert found is not None
    code, read = (int(group.replace(",", "")) for group in found.groups())
    assert code == error.category_bytes
    assert read % machine.fragment_code_bytes == 0
    # Deltas of 1000 neurons and their weights, about a piece each.
    assert 2000 <= read / machine.fragment_code_bytes < 2200
    assert code - read < 20_000


@pytest.mark.wide
def test_about_the_largest_batch_that_fits_is_found() -> None:
    net, target, options = CASES["small"]

    def fits(batch: int) -> bool:
        try:
            with patch.object(knobs, "SECONDS", -1.0):
                make_plan(net, target, effort=0, **{**options, "batch": batch})
        except TooBigError:
            return False
        return True

    found = int(next(k for k in of("small").knobs if k.options[0][0] == "--batch").options[0][1])
    assert fits(found)
    assert not fits(int(found / 0.75) + 1)


@pytest.mark.wide
def test_a_batch_that_helps_has_pairs_of_samples_if_deltas_are_float16() -> None:
    net = snnc.Network("net")
    spikes = net.input(200, kind="spikes")
    layers = [net.population(neurons, snnc.LIF(beta=0.9), name=f"layer{neurons}") for neurons in (100, 20)]
    net.connect(spikes, layers[0], snnc.Dense(seed=0))
    net.connect(layers[0], layers[1], snnc.Dense(seed=1))
    halved = lower(net.graph(), loss=parse_loss("ce_count"), optimizer=SGD(0.1), steps=40, half=("deltas",))
    knob = next(k for k in refusal(halved, tiles(4, 130_000), {"steps": 40, "batch": 62}).knobs if dict(k.options).keys() == {"--batch"})
    assert knob.fits
    assert int(dict(knob.options)["--batch"]) % 2 == 0


@pytest.mark.wide
def test_without_time_what_helps_is_still_named_but_called_approximate() -> None:
    with patch.object(knobs, "SECONDS", -1.0):
        error = refusal(*CASES["small"])
    assert error.knobs[0].fits
    for knob in error.knobs:
        assert not knob.exact
        assert f"about {knob.bytes:,} bytes" in str(error)
        if knob.fits:
            changed = turn(*CASES["small"], knob)
            assert max(make_plan(changed[0], changed[1], effort=LITTLE, **changed[2]).tile_memory) <= changed[1].tile_bytes


def test_as_data() -> None:
    error = of("few tiles")
    data = json.loads(json.dumps(error.data))
    assert data["needed"] == error.needed
    first = error.knobs[0]
    assert data["knobs"][0] == {"options": dict(first.options), "bytes": first.bytes, "fits": True, "chips": first.chips, "exact": True}
    assert TooBigError("for short").data["knobs"] == []


def test_larger_machines_are_of_the_same_kind() -> None:
    assert [t.name for t in larger_targets(load_target("gc200"))] == ["m2000", "pod16", "pod64"]
    assert [t.name for t in larger_targets(load_target("pod4"))] == ["pod16", "pod64"]
    assert [t.name for t in larger_targets(load_target("bow"))] == ["bow2000"]
    assert larger_targets(load_target("pod64")) == ()


@pytest.mark.wide
def test_a_machine_of_ones_own_may_take_more_chips_where_its_links_join_them() -> None:
    mine = parse_target('name = "mine"\nextends = "gc200"\ntile_bytes = 60000\n', "mine.toml")
    assert [t.chips for t in larger_targets(mine)] == [2, 4]
    assert larger_targets(replace(mine, links=Links(1e9, 1))) == ()
    error = refusal(chain(300, 500, 10), replace(mine, tiles_per_chip=20), {"steps": 10, "batch": 4})
    assert "chips = 4" in str(error) or "chips = 2" in str(error)
