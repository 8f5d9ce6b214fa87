"""Every format of a report, for a small plan and for one of 200 layers with replicas on 5,888 tiles (on 23,552 with ``--wide``)."""

from __future__ import annotations

import io
import json
import re
import struct
import sys
import xml.etree.ElementTree as ET
import zlib
from functools import cache
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from plans import made_plan
from wide import examples

from snnc.compiler.tiles.errors import PictureToolError
from snnc.report import FORMATS, Subject, write
from snnc.report.pictures.png import ramped

LARGE = examples("m2000", "pod16")
"""A machine of 4 or 16 IPUs."""
EVIL = '"]; evil [label="<script>alert(1)</script>\\N \x1b\x00\n{{ 7 * 7 }} ünï→'
MAX_BYTES = {
    "html": 3_000_000,
    "text": 60_000,
    "json": 6_000_000,
    "svg": 3_000_000,
    "png": 1_000_000,
    "graphml": 400_000,
    "dot": 200_000,
    "trace": 100_000,
}
"""Largest reports of 16 IPUs."""
OF_TILES = {"html", "json", "svg", "png"}
"""Formats whose size grows with the number of tiles."""


@cache
def subject(size: str, label: str = "layer") -> Subject:
    return Subject(made_plan(LARGE, layers=200, replicas=2, label=label) if size == "large" else made_plan(label=label), {})


@cache
def content(size: str, fmt: str, label: str = "layer") -> bytes:
    return write(subject(size, label), fmt)


SIZES = pytest.mark.parametrize("size", ["small", "large"])


@pytest.mark.parametrize("fmt", FORMATS)
def test_reports_of_large_machines_stay_small(fmt: str) -> None:
    assert 500 < len(content("large", fmt)) < MAX_BYTES[fmt] / (examples(3, 1) if fmt in OF_TILES else 1)
    assert len(content("small", fmt)) < MAX_BYTES[fmt] / 2


@SIZES
def test_png_is_a_whole_picture(size: str) -> None:
    data = content(size, "png")
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    at, kinds, packed = 8, [], b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at : at + 8])
        assert struct.unpack(">I", data[at + 8 + length : at + 12 + length])[0] == zlib.crc32(data[at + 4 : at + 8 + length])
        kinds.append(kind)
        packed += data[at + 8 : at + 8 + length] if kind == b"IDAT" else b""
        at += 12 + length
    assert (kinds[0], kinds[-1]) == (b"IHDR", b"IEND")
    wide, high = struct.unpack(">II", data[16:24])
    assert 1000 < wide < 2000
    assert len(zlib.decompress(packed)) >= high * wide


@pytest.mark.wide
def test_png_shows_every_tile_by_its_memory() -> None:
    from PIL import Image

    plan = subject("small").plan
    picture = np.asarray(Image.open(io.BytesIO(content("small", "png"))).convert("RGB"))
    wanted = {tuple(c) for c in ramped(np.asarray(plan.tile_memory), plan.target.tile_bytes).tolist()}
    found = {tuple(c) for c in np.unique(picture.reshape(-1, 3), axis=0).tolist()}
    assert wanted <= found


def test_png_without_pillow_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(PictureToolError, match=r'SNNC-E319.*pip install "snnc\[pictures\]"') as caught:
        write(subject("small"), "png")
    assert caught.value.exit_code == 3


@SIZES
def test_graphml_holds_layers_connections_and_tiles(size: str) -> None:
    plan = subject(size).plan
    graph = nx.parse_graphml(content(size, "graphml").decode(), force_multigraph=True)
    assert graph.number_of_nodes() == 1 + len(plan.populations)
    assert graph.number_of_edges() == len(plan.connections)
    assert graph.nodes["p1"]["tiles"] == len({b.tile for b in plan.populations[1].blocks})
    assert graph.nodes["x0"]["size"] == 700
    assert graph.edges["p0", "p1", "c1"]["bytes_per_step"] > 0
    assert graph.edges["p1", "p1", "r1"]["delay"] == 1


STRING = r'"(?:[^"\\\n]|\\[\\"n])*"'
ATTRIBUTES = rf"\[\w+={STRING}(?:, \w+={STRING})*\]"


@pytest.mark.parametrize(("size", "label"), [("small", "layer"), ("small", EVIL), ("large", "layer")])
def test_dot_has_a_statement_for_each_node_and_edge(size: str, label: str) -> None:
    plan = subject(size, label).plan
    head, *lines, tail, _ = content(size, "dot", label).decode().split("\n")
    assert re.fullmatch(rf"digraph {STRING} \{{", head)
    assert tail == "}"
    nodes = [line for line in lines if re.fullmatch(rf"  {STRING} {ATTRIBUTES};", line)]
    edges = [line for line in lines if re.fullmatch(rf"  {STRING} -> {STRING} {ATTRIBUTES};", line)]
    assert len(nodes) == 1 + len(plan.populations)
    assert len(edges) == len(plan.connections)
    assert len(lines) == len(nodes) + len(edges) + 2


@SIZES
def test_trace_follows_the_trace_event_format(size: str) -> None:
    plan, data = subject(size).plan, json.loads(content(size, "trace"))
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in data["traceEvents"] if e["name"] == "thread_name"}
    tracks: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in data["traceEvents"]:
        assert event["ph"] in ("M", "X")
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["args"]["source"] == "predicted"
            tracks.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["dur"]))
    assert set(tracks) <= set(names)
    assert {names[1, tid] for pid, tid in tracks if pid == 1} == {"superstep", "compute", "sync", "exchange"}
    for spans in tracks.values():
        for (start, length), (following, _) in pairwise(spans):
            assert start + length <= following + 1e-6
    whole = sum(length for key, spans in tracks.items() if key[0] == 1 and names[key] != "superstep" for _, length in spans)
    assert whole == pytest.approx(1e6 * plan.seconds)


def test_trace_shows_emulated_supersteps_beside_the_predicted() -> None:
    plan = made_plan()
    steps = [{"name": "F2 neurons", "executions": plan.iterations, "compute_cycles_busiest": 5000.0, "sync_cycles": 10.0}]
    data = json.loads(write(Subject(plan, {}, {"steps": steps}), "trace"))
    processes = [e["args"]["name"] for e in data["traceEvents"] if e["name"] == "process_name"]
    assert [p.split(":")[0] for p in processes] == ["predicted", "predicted", "emulated", "emulated"]
    counted = [e for e in data["traceEvents"] if e["ph"] == "X" and e["args"]["source"] == "emulated" and e["cat"] == "compute"]
    assert {e["args"]["cycles"] for e in counted} == {5000.0, 5000.0 / plan.iterations}


@SIZES
def test_svg_is_xml_and_covers_all_tiles(size: str) -> None:
    root = ET.fromstring(content(size, "svg"))
    side = 11 if size == "small" else examples(6, 3)
    cells = [r for r in root.findall("{*}rect") if r.find("{*}title") is not None]
    assert sum(round((float(c.get("width", 0)) + 1) / side) for c in cells) == subject(size).plan.target.tiles


@SIZES
def test_json_runs_cover_all_tiles(size: str) -> None:
    data = json.loads(content(size, "json"))
    tiles = data["tiles"]
    for coded in (tiles["owner"], tiles["neurons"], tiles["replica"], *tiles["memory"].values(), *tiles["cycles"].values()):
        assert sum(coded[1::2]) == data["facts"]["tiles"]
    assert len(data["layers"]) == len(subject(size).plan.populations)
    assert sum(count for _, count in data["layers"][0]["tiles"]) == data["layers"][0]["tile_count"]


@pytest.mark.parametrize("fmt", ["graphml", "svg"])
def test_names_of_the_model_stay_text_in_xml(fmt: str) -> None:
    root = ET.fromstring(content("small", fmt, EVIL))
    assert "script" not in {element.tag.split("}")[-1] for element in root.iter()}
    assert "alert(1)" in "".join(root.itertext())


def test_names_of_the_model_stay_text_in_json_and_trace() -> None:
    assert json.loads(content("small", "json", EVIL))["layers"][0]["label"] == f"{EVIL} 0"
    json.loads(content("small", "trace", EVIL))
