"""Executables, graphs and tensors stored in files."""

import json
import struct

import pytest


@pytest.mark.parametrize("libraries", [[], ["poplibs"]])
def test_another_process_runs_what_one_compiled_and_leaves_what_is_behind_it(cases, tmp_path, libraries):
    file = tmp_path / "program.exe"
    written = cases.run("executables", "write", file, *libraries)
    # The cache in which codelets were compiled is not needed any more.
    read = cases.run("executables", "read", file, SNNC_CACHE=str(tmp_path / "empty"), SNNC_PYTHON="no-python")
    assert read == "behind\n" + written + written
    assert cases.run("executables", "other-device", file).startswith("poplar::invalid_machine_model")


def test_damaged_and_cut_files_are_the_public_error(cases, tmp_path):
    file = tmp_path / "program.exe"
    cases.run("executables", "write", file, "poplibs")
    assert cases.run("executables", "damage", file) == "graph_object_load_error many\n"
    assert cases.run("executables", "load", tmp_path / "missing") == "graph_object_load_error\n"
    assert cases.run("executables", "empty").startswith("poplar::poplar_error: an executable that holds nothing")


def check_sum(payload):
    """FNV-1a over words of eight bytes, with a shift: what damages a file by chance does not hit it."""
    total = 0xCBF29CE484222325 ^ len(payload)
    for (word,) in struct.iter_unpack("<Q", payload + bytes(-len(payload) % 8)):
        total = (total ^ word) * 0x100000001B3 % 2**64
        total ^= total >> 29
    return total


def rewritten(data, payload, length=None):
    return data[:16] + struct.pack("<QQ", len(payload) if length is None else length, check_sum(payload)) + payload


def test_numbers_in_a_file_take_no_memory_and_name_only_what_there_is(cases, tmp_path):
    file = tmp_path / "program.exe"
    cases.run("executables", "write", file)
    data = file.read_bytes()[: -len("behind")]
    payload = data[32:]
    assert rewritten(data, payload) == data
    forged = {
        "length": rewritten(data, payload, 2**62),
        "options": rewritten(data, struct.pack("<Q", 2**60) + payload[8:]),
        "cut": rewritten(data, payload[:-9]),
        "more": rewritten(data, payload + bytes(8)),
        "version": data[:8] + struct.pack("<I", 2**31) + data[12:],
    }
    # Variable x: its shape is followed by its number of elements.
    at = payload.index(b"x\x0c" + struct.pack("<QQq", 1, 8, 8)) + 2
    forged["shape"] = rewritten(data, payload[:at] + struct.pack("<QQq", 1, 2**40, 2**40) + payload[at + 24 :])
    forged["elements"] = rewritten(data, payload[:at] + struct.pack("<QQq", 1, 8, 9) + payload[at + 24 :])
    # Behind it: no constant, no bytes, no owner; then a piece a tile.
    tiles = at + 24 + 1 + 8 + 4 + 8
    forged["tile"] = rewritten(data, payload[: tiles + 16] + struct.pack("<I", 4) + payload[tiles + 20 :])
    for name, changed in forged.items():
        file.write_bytes(changed)
        assert cases.run("executables", "load", file) == "graph_object_load_error\n", name


@pytest.mark.parametrize("form", ["binary", "JSON"])
def test_tensors_keep_their_views_and_tiles_in_another_graph(cases, form):
    assert cases.run("executables", "tensors", form).splitlines() == [
        "a{2,4}float mapped 0-1 4-5",
        "a{12}float mapped 0-6",
        "b{3}half not mapped",
        "3",
    ]


def test_tensors_as_json_name_their_elements_and_variables(cases):
    written = cases.json("executables", "tensorsAsJson")
    column, rows = written["tensors"]
    ((number, variable),) = written["variables"].items()
    assert variable["name"] == 'an "archive": "'
    assert variable["shape"] == [4, 3]

    def elements(tensor):
        assert {run["variable"] for run in tensor["elements"]} == {int(number)}
        return [run["start"] + i * run["stride"] for run in tensor["elements"] for i in range(run["count"])]

    assert elements(column) == [1, 4, 7, 10]
    assert elements(rows) == list(range(3, 9))
    assert (column["shape"], rows["shape"], rows["type"]) == ([4], [6], "float")


def test_damaged_tensors_as_json_are_refused(cases):
    assert cases.run("executables", "damagedTensors").split() == ["refused"] * 5


def test_a_graph_as_json_names_variables_tiles_and_vertices(cases):
    graph = cases.json("executables", "json")
    assert graph["tiles"] == 4
    assert graph["variables"][0]["name"] == 'x "quoted"'
    assert graph["variables"][0]["shape"] == [4]
    (vertex,) = graph["compute_sets"][0]["vertices"]
    assert vertex == {"type": "Scale", "tile": 1, "edges": [{"field": "data", "elements": 2, "variables": [0]}]}
    assert json.dumps(graph)
