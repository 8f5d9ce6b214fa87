"""Numbers in a report, compared with hand computations."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from plans import made_plan, population

from snnc.compiler.ir.plan import BusPlan, ConnectionPlan, MemoryPhase, Phase, PhaseLoop, Plan, Relay
from snnc.compiler.machines import load_target
from snnc.compiler.machines.target import Host, Links
from snnc.compiler.tiles.errors import ReportOptionError
from snnc.compiler.tiles.exchange.places import FREE, RELAYED, locate
from snnc.report import Subject
from snnc.report.limits import amount
from snnc.report.pictures.timeline import part_rows, whole_step
from snnc.report.profile import read_profile
from snnc.report.render import write
from snnc.report.view import build_view, memory_over_time, ranges

STEPS, BATCH = 10, 4
LINKS = Links(bytes_per_second=1e10, chips_per_machine=2, inside=((0, 1, 2),))
CONNECTIONS = {
    "c0": {"source": "x0", "target": "p0", "weight_gradient": True, "input_gradient": False, "copied": 40, "port": 0},
    "c1": {"source": "p0", "target": "p1", "weight_gradient": True, "input_gradient": True, "copied": 3, "port": 0},
}


def hand(replicas: int = 1) -> Plan:
    """Two chips of 8 tiles: an input of 100 values, 40 neurons on tiles 0 and 1 (again on 8 and 9 as a replica), 3 neurons on tile 4."""
    machine = replace(load_target("gc200"), name="small", chips=2, tiles_per_chip=8, links=LINKS)
    relays = (Relay(5, 0, 2), Relay(13, 2, 2))
    tiles = machine.tiles
    return Plan(
        name="by hand",
        target=machine,
        steps=STEPS,
        batch=BATCH,
        training=True,
        interval=1,
        iterations=11,
        populations=(
            population(0, "hidden", 40, [0, 8][:replicas], 2, BATCH // replicas),
            replace(population(1, "readout", 3, [4], 1, BATCH), stage=1),
        ),
        buses=(
            BusPlan("b0", "x0", "x0_in", 100, "events", 1, 20, "exact", relays),
            BusPlan("b1", "p0", "p0_o0", 40, "events", 1, 40, "exact", relays),
        ),
        connections=(ConnectionPlan("c0", "b0", 0, "p0"), ConnectionPlan("c1", "b1", 0, "p1")),
        activity={"x0_in": 0.1, "p0_o0": 0.1},
        activity_source="assumed",
        memory={
            "weights": (1000,) * tiles,
            "gradients": (500, 9000, *(0,) * (tiles - 2)),
            "exchange": (3000, 100, *(0,) * (tiles - 2)),
        },
        phases=(
            Phase("forward: neurons", "forward", 11, 100.0, 10.0, 40.0, 2000, 1),
            Phase("loss: adjoints", "loss", 1, 50.0, 10.0, 0.0, 0, 2),
            Phase("backward: neurons", "backward", 11, 200.0, 10.0, 30.0, 80, 0),
        ),
        loss_tiles=(4, 5, 6, 7),
        tile_cycles={"compute": (1600, 800, *(0,) * (tiles - 2))},
    )


def told(**more: object) -> dict[str, object]:
    return {
        "connections": [{"id": name, "label": name, "parameters": 0, **c} for name, c in CONNECTIONS.items()],
        "loss_layer": "p1",
        **more,
    }


def flows(subject: Subject) -> dict[tuple[str, str, str], float]:
    nodes = subject.traffic.nodes
    return {(nodes[f.source], nodes[f.target], f.kind): f.bytes for f in subject.traffic.flows}


def test_bytes_between_layers_by_hand() -> None:
    assert flows(Subject(hand(), told())) == {
        # Each of 4 samples: 20 neurons a tile in one word each, two tiles.
        ("p0", "p0", "spikes to relays"): 11 * 4 * 2 * 4,
        # A window of 20 ids and a count: 44 bytes a sample, to two tiles; forward and backward.
        ("x0", "p0", "windows"): 11 * 4 * 44 * 2,
        ("x0", "p0", "windows, backward"): 11 * 4 * 44 * 2,
        # 40 ids and a count to one tile.
        ("p0", "p1", "windows"): 11 * 4 * 84,
        ("p0", "p1", "windows, backward"): 11 * 4 * 84,
        # Both tiles of the hidden layer read 3 deltas of 4 samples.
        ("p1", "p0", "deltas"): 11 * 4 * 4 * 3 * 2,
        # Three of four losses are computed on other tiles than the readout's.
        ("p1", "p1", "records"): 3 * STEPS * 4 * 3,
        ("p1", "p1", "adjoints"): 3 * STEPS * 4 * 3,
        # Copies of 3 weights for each of 40 neurons.
        ("p1", "p0", "weights to copies"): 4 * 3 * 40,
    }


def test_bytes_between_chips_by_hand() -> None:
    chips = Subject(hand(), told()).traffic.by_kind
    # Two samples' relays lie on the other chip: spikes go there, and windows come back, once for both tiles that read them.
    np.testing.assert_array_equal(chips["spikes to relays"], [[11 * 2 * 8, 11 * 2 * 8], [0, 0]])
    np.testing.assert_array_equal(chips["windows"], [[11 * 2 * (2 * 44 + 84), 0], [11 * 2 * (44 + 84), 0]])


def test_wires_by_hand() -> None:
    subject = Subject(hand(), told())
    wires = {(w["from"], w["to"]): w for w in build_view(subject)["traffic"]["links"]}
    # The second chip has the relays of two samples: spikes go there, windows come back, forward and backward.
    assert wires[0, 1]["bytes"] == 11 * 2 * 8
    assert wires[1, 0]["bytes"] == 2 * 11 * 2 * (44 + 84)
    assert wires[1, 0]["cycles"] == pytest.approx(wires[1, 0]["bytes"] / 2 / 1e10 * subject.plan.target.clock_hz)


def test_replicas_read_only_their_own_samples_and_exchange_gradients() -> None:
    plan = hand(replicas=2)
    subject = Subject(plan, told(populations=[{"id": "p0", "model": "LIF", "learned": 4000, "parameters": 0}]))
    found = flows(subject)
    assert found["x0", "p0", "windows"] == 11 * 4 * 44 * 2, "twice the tiles, half the samples each"
    assert found["p0", "p0", "gradients"] == found["p0", "p0", "new weights"] == 4 * 4000
    assert subject.traffic.by_kind["gradients"].tolist() == [[0, 8000], [8000, 0]]
    np.testing.assert_array_equal(subject.traffic.by_kind["spikes to relays"], [[11 * 2 * 8, 0], [0, 11 * 2 * 8]])


def test_a_tile_of_several_layers_reads_a_window_once() -> None:
    plan = hand()
    both = replace(population(2, "other", 3, [4], 1, BATCH), stage=1)
    more = replace(plan, populations=(*plan.populations, both), connections=(*plan.connections, ConnectionPlan("c2", "b1", 0, "p2")))
    found = flows(Subject(more, {}))
    assert ("p0", "p2", "windows") not in found
    assert found["p0", "p1", "windows"] == 11 * 4 * 84
    halves = replace(population(1, "readout", 3, [4, 6], 1, BATCH // 2), stage=1)
    split = replace(more, populations=(plan.populations[0], halves, both))
    found = flows(Subject(split, {}))
    assert found["p0", "p1", "windows"] == 11 * 4 * 84
    assert found["p0", "p2", "windows"] == 11 * 2 * 84, "the samples that tile 4 does not read already"


def test_windows_hold_whole_words() -> None:
    plan = hand()
    odd = replace(plan, buses=(replace(plan.buses[0], capacity=19), plan.buses[1]))
    assert flows(Subject(odd, told())) == flows(Subject(plan, told()))


def test_places_are_read_off_the_blocks() -> None:
    places = locate(hand(replicas=2))
    hidden = places.layers[0]
    assert hidden.tiles.tolist() == [0, 1, 8, 9]
    assert [(g.first, g.count, g.tiles.tolist()) for g in hidden.groups] == [(0, 2, [0, 1]), (2, 2, [8, 9])]
    assert hidden.neurons.tolist() == [20, 20, 20, 20]
    assert places.owner.tolist() == [0, 0, FREE, FREE, 1, RELAYED, RELAYED, RELAYED, 0, 0, FREE, FREE, FREE, RELAYED, FREE, FREE]
    assert places.replica[[0, 8, 4]].tolist() == [0, 1, 0]


def test_memory_over_time_is_that_of_the_plan_beside_what_was_emulated() -> None:
    phases = (
        MemoryPhase("forward: neurons", "forward", {"weights": 1000, "gradients": 0}, {"weights": 5000, "gradients": 0}),
        MemoryPhase("backward: neurons", "backward", {"weights": 1000, "gradients": 9000}, {"weights": 5000, "gradients": 9000}),
    )
    forward, backward = memory_over_time(replace(hand(), memory_over_time=phases), {"backward: neurons": 10_100})
    own = {"weights": 1000, "gradients": 0}
    assert forward == {"phase": "forward: neurons", "tile": 1, "bytes": own, "total": 1000, "all_tiles": 5000, "emulated": None}
    assert (backward["total"], backward["all_tiles"], backward["emulated"]) == (10_000, 14_000, 10_100)


def test_a_plan_without_memory_over_time_shows_its_peak() -> None:
    (moment,) = memory_over_time(hand(), {})
    assert (moment["phase"], moment["tile"], moment["total"]) == ("peak", 1, max(hand().tile_memory))


def test_emulated_memory_is_read_by_superstep_of_the_last_program() -> None:
    points = [
        {"program": 0, "name": "U2 weights", "bytes": 7},
        {"program": 1, "name": "F2 neurons", "bytes": 100},
        {"program": 1, "name": "B2 neurons", "bytes": 130},
        {"program": 1, "name": "U2 weights", "bytes": 90},
        {"program": 2, "name": "between runs", "bytes": 60},
    ]
    emulation = read_profile(hand(), {"steps": [], "memory_over_time": points})
    assert emulation is not None
    assert emulation.fullest == {"forward: neurons": 100, "backward: neurons": 130}
    with pytest.raises(ReportOptionError, match="memory_over_time"):
        read_profile(hand(), {"steps": [], "memory_over_time": [{"program": 0, "name": "F2"}]})


def test_decisions_about_further_windows_are_no_iterations() -> None:
    plan = hand()
    neurons = replace(plan.phases[0], name="forward: neurons")
    often = replace(neurons, name="forward: decisions", runs=2 * neurons.runs)
    assert part_rows(replace(plan, phases=(often, neurons)))[0].title == f"forward: one iteration of {neurons.runs}"


def test_the_timeline_adds_up_to_the_plan() -> None:
    plan = hand()
    whole = whole_step(plan)
    assert whole.cycles == plan.cycles == 11 * 150 + 60 + 11 * 240
    assert [(h.phase, h.start, h.cycles) for h in whole.heads] == [("forward", 0, 1650), ("loss", 1650, 60), ("backward", 1710, 2640)]
    forward = part_rows(plan)[0]
    assert [(s.kind, s.start, s.cycles) for s in forward.spans] == [("sync", 0, 10), ("exchange", 10, 40), ("compute", 50, 100)]
    for row in (whole, *part_rows(plan)):
        ends = [s.start + s.cycles for s in row.spans]
        assert [s.start for s in row.spans] == [0, *ends[:-1]]


def test_limits_name_the_superstep_the_tile_and_the_layer() -> None:
    time, memory, balance = Subject(hand(), told()).limits
    assert time.sentence.startswith("The compute of “backward: neurons” on tile 0 (hidden) takes 51 % of the step")
    assert time.share == pytest.approx(2200 / 4350)
    assert memory.sentence.startswith("The fullest tile, 1 (hidden), uses 10 of 624 KiB (2 %), most of it gradients")
    assert balance.share == pytest.approx(2400 / 16 / 1600)
    bounded = Subject(replace(hand(), bound_cycles=1450.0), told()).limits[2]
    assert bounded.share == pytest.approx(1450 / 4350)
    assert bounded.sentence.startswith("The step takes 3 times as long as with all work spread evenly")


def test_the_busiest_vertex_shows_its_loops() -> None:
    plan = hand()
    spikes = PhaseLoop("backward of hidden", "weights of a spike, from x0", 12.5, 20.0)
    loops = (spikes, PhaseLoop("backward of hidden", "samples", 5.0, 10.0))
    found = Subject(replace(plan, phases=(*plan.phases[:2], replace(plan.phases[2], loops=loops))), told())
    assert "Its slowest vertex spends most cycles on weights of a spike, from x0 (83 %)." in found.limits[0].sentence
    vertex = build_view(found)["busiest_vertex"]
    assert (vertex["phase"], vertex["tile"], vertex["vertex"]) == ("backward: neurons", 0, "backward of hidden")
    assert [(x["name"], x["trips"], x["cycles_a_trip"], x["cycles"]) for x in vertex["loops"]] == [
        ("weights of a spike, from x0", 12.5, 20.0, 250.0),
        ("samples", 5.0, 10.0, 50.0),
    ]
    text, page = write(found, "text").decode(), write(found, "html").decode()
    assert re.search(r"weights of a spike, from x0 +12\.5 +20 +250 +83\.3 %", text)
    assert "Its slowest vertex is backward of hidden, on tile 0." in page
    assert build_view(Subject(plan, told()))["busiest_vertex"] is None


def test_a_host_that_is_slower_than_the_step_is_named() -> None:
    plan = hand()
    streamed = replace(plan, host_bytes=10**6, target=replace(plan.target, host=Host(bytes_per_second=1e9)))
    assert "host" not in Subject(replace(streamed, host_bytes=10), told()).limits[0].sentence
    assert "from the host: 1 ms before each step" in Subject(streamed, told()).limits[0].sentence
    assert build_view(Subject(streamed, told()))["facts"]["host_milliseconds"] == pytest.approx(1.0)


def test_an_exchange_that_limits_names_what_moves() -> None:
    plan = hand()
    slow = replace(plan, phases=(replace(plan.phases[0], exchange=5000.0), *plan.phases[1:]))
    sentence = Subject(slow, told()).limits[0].sentence
    assert "most of it windows from x0 to hidden, 2,000 bytes into the busiest tile a run" in sentence
    linked = replace(slow, target=replace(slow.target, links=replace(LINKS, bytes_per_second=1e6)))
    assert "over the links between IPUs" in Subject(linked, told()).limits[0].sentence


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_made_plan_keeps_every_byte(replicas: int) -> None:
    traffic = Subject(made_plan("pod4", layers=3, replicas=replicas), {}).traffic
    assert traffic.matrix().sum() == pytest.approx(sum(f.bytes for f in traffic.flows))
    assert all((chips >= 0).all() for chips in traffic.by_kind.values())
    assert traffic.chips.sum() <= traffic.matrix().sum(), "a piece crosses a link once for all tiles that read it"


def test_runs_of_numbers() -> None:
    assert ranges(np.array([3, 4, 5, 9, 11, 12])) == [[3, 3], [9, 1], [11, 2]]
    assert ranges(np.array([], dtype=int)) == []


def test_bytes_are_written_short() -> None:
    written = {1023: "1023 bytes", 1024: "1 KiB", 1023 * 1024: "1023 KiB", 2.5 * 2**20: "2.5 MiB", 7 * 2**30: "7 GiB", 2**41: "2 TiB"}
    assert {n: amount(n) for n in written} == written
