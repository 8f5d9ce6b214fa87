"""Bytes, cycles and memory equal hand computations."""

import math
from dataclasses import replace

import pytest

from snnc.compiler.machines import load_target
from snnc.compiler.machines.chip_links import Flows, find_routes

SYNC, GLOBAL_SYNC, SETUP, CONTROL, FRAGMENT = 126, 600, 100, 30, 9


def test_every_receiver_of_a_multicast_pays_and_the_sender_pays_once(cases):
    profile = cases.json("costs", "broadcast", 1, 0, 1, 2)
    (step,) = profile["steps"]
    tiles = profile["per_tile"]
    assert tiles["bytes_received"] == [0, 64, 64, 0]
    assert tiles["bytes_sent"] == [64, 0, 0, 0]
    assert step["bytes_within_ipus"] == 128
    assert step["bytes_between_ipus"] == 0
    assert step["fragments"] == 2
    assert step["exchange_cycles"] == 64 / 4 + FRAGMENT
    assert step["sync_cycles"] == SYNC + SETUP
    assert profile["cycles"] == 60 + CONTROL + SYNC + SETUP + 25
    assert profile["cycles"] == step["cycles"]


def test_bytes_between_ipus_are_counted_apart_and_cross_the_link_once(cases):
    profile = cases.json("costs", "broadcast", 2, 1, 4, 5)
    (step,) = profile["steps"]
    tiles = profile["per_tile"]
    assert tiles["bytes_received"] == [0, 64, 0, 0, 0, 0, 0, 0]
    assert tiles["link_bytes_received"] == [0, 0, 0, 0, 64, 64, 0, 0]
    assert tiles["bytes_sent"] == [64, 0, 0, 0, 0, 0, 0, 0]
    assert tiles["link_bytes_sent"] == [64, 0, 0, 0, 0, 0, 0, 0]
    assert (step["bytes_within_ipus"], step["bytes_between_ipus"]) == (64, 128)
    # 64 bytes at 136 GB/s and 1.33 GHz take one cycle, which the tiles' 16 cycles hide.
    assert step["link_cycles"] == 0
    assert step["exchange_cycles"] == 64 / 4 + FRAGMENT
    assert step["sync_cycles"] == GLOBAL_SYNC + SETUP


def total(profile):
    return profile["steps"][0]["exchange_cycles"] + profile["steps"][0]["link_cycles"]


WIRE = 13.6e9 / 1000
"""Slow links, so that they decide."""


def test_a_switch_copies_what_several_ipus_receive(cases):
    switch = [f"{ipu}-3:{WIRE}" for ipu in range(3)]
    apart = cases.json("costs", "links", 3, *switch, "0>1:100", "0>2:100")
    assert total(apart) == math.ceil(800 / WIRE * 1.33e9)
    assert total(cases.json("costs", "links", 3, *switch, "0>1+2:100")) == math.ceil(400 / WIRE * 1.33e9)


def test_without_wires_the_links_are_as_fast_as_the_model_says_and_tiles_decide(cases):
    profile = cases.json("costs", "links", 3, "0>1:50000", "0>2:50000")
    assert total(profile) == 2 * 50_000  # one tile sends 400,000 bytes, four a cycle


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("m2000", [(0, (1,), 100)]),
        ("m2000", [(0, (1,), 100), (0, (2,), 100), (0, (3,), 100)]),
        ("m2000", [(0, (1, 2, 3), 100), (3, (0,), 50), (2, (0,), 70)]),
        ("pod16", [(0, tuple(range(1, 16)), 80)]),
        ("pod16", [(4, (8,), 60), (6, (10,), 60), (5, (9,), 60), (7, (11,), 60)]),
        ("pod16", [(n, ((n + 5) % 16, (n * 7 + 3) % 16), 10 + n) for n in range(16)]),
        ("pod64", [(n, ((n + 31) % 64,), 20 + n % 5) for n in range(64)]),
    ],
)
def test_the_busiest_wire_is_the_one_that_the_mapping_predicts(cases, name, sent):
    base = load_target(name)
    target = replace(base, links=replace(base.links, bytes_per_second=WIRE))
    flows = Flows()
    for source, receivers, ints in sent:
        flows.send(source, receivers, 4 * ints)
    wires = [f"{a}-{b}:{n * WIRE}" for a, b, n in target.links.wires(target.chips)]
    moved = [f"{source}>{'+'.join(str(r) for r in receivers if r != source)}:{ints}" for source, receivers, ints in sent]
    profile = cases.json("costs", "links", target.chips, *wires, *moved)
    assert total(profile) == math.ceil(find_routes(target).cycles(flows))


def test_wires_that_lead_nowhere_are_refused(cases):
    assert "invalid_machine_model" in cases.run("costs", "links", 2, "0-5:1e9", "0>1:5")
    assert "invalid_machine_model" in cases.run("costs", "links", 3, "0-1:1e9", "0>2:5")


def test_a_remote_inout_edge_is_a_gather_and_a_scatter(cases):
    profile = cases.json("costs", "remote")
    (step,) = profile["steps"]
    tiles = profile["per_tile"]
    # Two rows of 16 bytes each way, three times.
    assert tiles["bytes_received"] == [96, 96, 0, 0]
    assert tiles["bytes_sent"] == [96, 96, 0, 0]
    assert step["fragments"] == 3 * (2 + 2)
    assert step["exchange_cycles"] == 3 * 2 * (32 / 4 + 2 * FRAGMENT)
    assert step["sync_cycles"] == 3 * 2 * (SYNC + SETUP)
    assert step["compute_cycles_busiest"] == 3 * 6 * 7


@pytest.mark.parametrize("vertices", [1, 5, 6, 7, 12, 13])
def test_equal_vertices_take_whole_rounds_of_six_workers(cases, vertices):
    profile = cases.json("costs", "equal", vertices, 50)
    (step,) = profile["steps"]
    expected = math.ceil(vertices / 6) * 6 * 50
    assert step["compute_cycles_busiest"] == expected
    assert profile["per_tile"]["compute_cycles"] == [0, 0, expected, 0]
    assert step["estimated"] == []
    assert step["sync_cycles"] == 0


def test_counted_cycles_are_dealt_to_workers_longest_first(cases):
    counts = [100, 20, 30, 90, 80, 70, 60, 10]
    profile = cases.json("costs", "counted", *counts)
    (step,) = profile["steps"]
    # 100 90 80 70 60 30, then 20 joins 30, then 10 joins 50.
    assert step["compute_cycles_busiest"] == 2 * 6 * 100
    assert step["executions"] == 2
    assert profile["cycles_last_run"] == 600 + CONTROL
    assert step["estimated"] == []
    many = cases.json("costs", "counted", *([10] * 6), 25)["steps"][0]
    assert many["compute_cycles_busiest"] == 2 * 6 * 25


def test_a_codelet_that_counts_nothing_falls_back_and_is_named(cases):
    (step,) = cases.json("costs", "counted", 0)["steps"]
    assert step["estimated"] == ["Counted"]


def test_cycles_without_count_or_estimate_come_from_the_bytes_and_are_named(cases):
    (step,) = cases.json("costs", "guessed")["steps"]
    assert step["compute_cycles_busiest"] == 6 * (29 + 3 * 10)
    assert step["estimated"] == ["AddOne"]


@pytest.mark.parametrize(("elements", "slowest"), [(1, 1), (6, 1), (7, 2), (13, 3)])
def test_a_multivertex_costs_its_slowest_worker_and_the_supervisor(cases, elements, slowest):
    (step,) = cases.json("costs", "multi", elements)["steps"]
    assert step["compute_cycles_busiest"] == 6 * slowest * 10 + 11


def test_a_copy_is_an_exchange_and_a_copy_inside_the_tile(cases):
    profile = cases.json("costs", "copy")
    (step,) = profile["steps"]
    assert step["kind"] == "copy"
    assert profile["per_tile"]["bytes_received"] == [0, 256, 0, 0]
    assert step["exchange_cycles"] == 2 * (128 / 4 + FRAGMENT)
    assert step["compute_cycles_busiest"] == 2 * (288 + 128 / 8)
    assert profile["cycles"] == step["cycles"]


def test_memory_is_accounted_by_category(cases):
    memory = cases.json("costs", "memory")["per_tile"]["memory"]
    assert memory["variables"] == [400, 4, 0, 0]
    assert memory["constants"] == [40, 0, 0, 0]
    # ONE_PTR 4, SPAN 8, scalar 4.
    assert memory["vertex_state"] == [0, 16, 0, 0]
    assert memory["edge_lists"] == [0, 4, 0, 0]
    assert memory["exchange_buffers"] == [0, 80, 0, 0]
    assert memory["exchange_code"] == [0, 72, 0, 0]
    assert memory["control_code"] == [700] * 4
    assert memory["stack"] == [3174] * 4
    assert memory["code"][0] == 0
    assert memory["code"][1] > 0
    parts = [k for k in memory if k != "total"]
    assert memory["total"] == [sum(memory[k][i] for k in parts) for i in range(4)]


@pytest.mark.parametrize(("ints", "tiles", "decides"), [(20_000, 4, "rate"), (20_000, 1, "tile")])
def test_a_remote_copy_waits_for_all_ipus_and_takes_the_rate_of_streaming_memory_or_the_busiest_tile(cases, ints, tiles, decides):
    profile = cases.json("costs", "streaming", ints, 2, tiles)
    steps = [step for step in profile["steps"] if step["kind"] == "remote"]
    assert len(steps) == 4, "there and back for each IPU"
    pieces = 2 if tiles > 1 else 1
    by_rate, by_tile = math.ceil(4 * ints * tiles * 1.33e9 / 20e9), ints + pieces * FRAGMENT
    assert (by_rate > by_tile) == (decides == "rate")
    for step in steps:
        assert step["executions"] == 2
        assert step["bytes_remote"] == 2 * 4 * ints * tiles
        assert step["fragments"] == 2 * pieces * tiles
        assert step["remote_cycles"] == 2 * max(by_rate, by_tile)
        assert step["sync_cycles"] == 2 * (GLOBAL_SYNC + SETUP)
        assert step["control_cycles"] == 2 * CONTROL
    assert profile["cycles"] == sum(step["cycles"] for step in profile["steps"])
    assert profile["host_cycles"] == 0
    assert profile["remote_memory"] == [3 * 4 * ints * tiles] * 2, "counted on the device, not on its tiles"
    memory = profile["per_tile"]["memory"]
    assert memory["variables"][:tiles] == [4 * ints] * tiles
    assert memory["exchange_code"][0] == 2 * pieces * 36


@pytest.mark.parametrize("cycles", [10, 100, 10_000])
@pytest.mark.parametrize(
    ("what", "together"),
    [
        ("nothing", 2),
        ("copy near", 2),
        ("copy of it", 1),
        ("copy far", 1),
        ("decision", 1),
        ("barrier", 1),
        ("stream", 1),
        ("vertex", 0),
        ("second", 2),
    ],
)
def test_a_stream_to_tiles_without_vertices_runs_beside_what_neither_touches_them_nor_waits_for_all_tiles(cases, cycles, what, together):
    ints = 1000
    profile = cases.json("costs", "beside", ints, cycles, what)
    sent = math.ceil(4 * ints * 1.33e9 / 8e9)
    one = 6 * cycles + CONTROL
    copy = CONTROL + SYNC + SETUP + 1 + FRAGMENT if what == "copy near" else 0
    hidden = min(sent, together * one + copy)
    if what == "second":
        hidden = min(2 * sent, 2 * one)
    single = math.ceil(4 * 1.33e9 / 8e9)
    assert profile["host_cycles_last_run"] == sent * (2 if what == "second" else 1) + (single if what == "stream" else 0)
    assert profile["host_cycles_beside_last_run"] == hidden
    assert profile["host_cycles_beside"] == 2 * hidden
    assert profile["cycles"] == sum(step["cycles"] for step in profile["steps"]), "what the host takes is told apart"
    streams = [step for step in profile["steps"] if step["kind"] == "stream"]
    assert sum(step["host_cycles"] for step in streams) == profile["host_cycles"]
    assert sum(step["host_cycles_beside"] for step in streams) == profile["host_cycles_beside"]
