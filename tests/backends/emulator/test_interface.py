"""More of the documented host interface; expected values are computed by hand, with NumPy or with ml_dtypes."""

import csv
import json
import subprocess

import ml_dtypes
import numpy as np

from snnc.backends.emulator import build

OWN_NAMES = """
#include <poplar/Engine.hpp>
#include <popops/ElementWise.hpp>
using namespace pva;
using namespace poplar;
const auto EngineOptions = OptionFlags{{"debug.instrument", "true"}};
struct half {};
TypeTraits traits = TypeTraits::make<float>();
void f(Engine &engine, const Graph &, const Target &) { engine = Engine(Graph(), program::Sequence(), EngineOptions); half(); }
"""


def test_vertices_are_named_by_nested_templates_enumerators_packs_and_pointers(cases):
    assert cases.run("interface", "names").split() == [str(4 + 21 + 9)]


def test_names_of_programs_that_use_the_namespaces_meet_none_of_the_headers():
    command = [*build.compiler(), "-std=c++17", "-fsyntax-only", f"-I{build.include_dir()}", "-x", "c++", "-"]
    result = subprocess.run(command, input=OWN_NAMES, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr


def test_a_sequence_is_made_of_any_program_and_programs_are_compared_and_dumped(cases):
    lines = cases.run("interface", "sequences").splitlines()
    assert lines[0] == str(3 + 6 + 4 + 2 + 1)
    assert lines[1].split() == ["0", "1", "0", "1"]
    assert lines[2:5] == ["Sequence", "  Repeat x2", "    Sequence"]
    assert lines[5].split() == ["Sync"]
    assert lines[6].split() == ["Copy", "4", "1"]


def test_reports_of_executions_list_what_ran_and_when(cases):
    lines = cases.run("interface", "execution").splitlines()
    # A round is a stream, a compute set, a copy and the compute set again; two rounds and the compute set once more.
    assert lines[0] == "once:9 again:9 1 1 1"
    # In their order, none before the one before it: two rounds of two runs.
    assert lines[1].split() == ["stage11111", "stream0111", "stage21111", "move1111"] * 4
    assert lines[2:] == ["1 stage2 work", "0 0"]


def test_types_targets_views_and_conversions_have_their_documented_values(cases):
    lines = cases.run("interface", "types").splitlines()
    assert lines[:6] == [
        "float 4 1 0 0", "half 2 1 0 0", "unsigned short 2 0 1 0", "quarter 1 1 0 1", "quarter_metadata 1 0 0 0", "int 4 0 1 0",
    ]  # fmt: skip
    assert lines[6] == "IPU_MODEL ipu2 2x4 CPU [2,5) 1 1"
    assert lines[7].split() == ["32767", "-128", "4294967295", "65504", str(624 // 16)]
    assert "int does not fit" in lines[8]
    assert lines[9] == "some text 1 some text! 1 7 9 1"
    assert lines[10] == f"{0x3C01} -2 half unsigned char"
    assert [float(x) for x in lines[11].split()] == [float(np.float16(x)) for x in (1.5, -2.25, 1000.3, 0)]
    assert lines[12:] == ["1 -2 1000 -2", "3 4"]


def test_orders_of_elements_follow_memory(cases):
    lines = cases.run("interface", "layouts").splitlines()
    assert lines[0] == "1"
    # The columns {0, 3, 1, 4, 2, 5} are put in order, and the other tensor with them.
    order = np.argsort(np.arange(6).reshape(2, 3).T.ravel())
    assert lines[1:7] == [f"other[{i}:{i + 1}]" for i in order]
    assert lines[7:9] == ["[4,6)", "[0,3)"]
    assert lines[9] == "0 1 0"
    assert lines[10:13] == ["{2,1,3}", "2", "3 1"]
    assert lines[13] == "t{2,3} Copy DeviceToHostFIFO out float[6]"


def test_fields_say_what_they_can_hold(cases):
    lines = cases.run("interface", "fields").splitlines()
    assert lines[0].split() == ["4294967295", "4294967295", "65535", "65535"]
    assert lines[1] == "poplar::index_error: getMaxFieldDim: field 'row' of Fields has 1 dimensions"


def test_quarters_are_those_of_another_implementation(cases):
    lines = cases.run("interface", "quarters").splitlines()
    values = np.arange(-400, 401.0) ** 3 * 0.000371
    for i, (dtype, scale) in enumerate((d, s) for d in (ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz) for s in (0, -3)):
        decoded = np.arange(256, dtype=np.uint8).view(dtype).astype(np.float64) * 2.0**scale
        np.testing.assert_allclose([float(x) for x in lines[2 * i].split()], decoded, rtol=1e-5)
        encoded = (values / 2.0**scale).astype(dtype).view(np.uint8)
        assert [int(x) for x in lines[2 * i + 1].split()] == encoded.tolist()
    assert lines[8] == "-7 1 127 128"


def test_quarters_are_cast_on_tiles_by_the_metadata_that_hold_when_the_program_runs(cases):
    lines = cases.run("interface", "quarterTensors").splitlines()
    assert lines[0] == "1 0 1"
    narrow = np.clip(np.array([1, -0.3, 400, 1e6, 0.001]) / 2, -240, 240).astype(ml_dtypes.float8_e4m3fnuz)
    first = narrow.astype(np.float64) * 2
    back = (first * 4).astype(ml_dtypes.float8_e5m2fnuz).astype(np.float64) / 4
    assert [int(x) for x in lines[1].split()] == narrow.view(np.uint8).tolist()
    np.testing.assert_allclose([float(x) for x in lines[2].split()], first, rtol=1e-5)
    np.testing.assert_allclose([float(x) for x in lines[3].split()], back, rtol=1e-5)
    assert lines[4].startswith("poplar::tensor_metadata_error: tensor 'in' of type float has no metadata")


def test_records_of_operations_are_written_with_their_parents(cases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = cases.run("interface", "debugInfo").splitlines()
    assert lines[0] == "model/layer layer model/layer/matmul 1"
    assert lines[1] == "model/layer/matmul/step/add 1"
    assert json.loads(lines[2].split()[0]) == {"list": [1, True, "t"], "number": 2.5}
    assert lines[2].split()[1:] == ["t", "2.5", "3"]
    assert lines[3].startswith("poplar::poplar_error: DebugInfo::closeStreamer: no file is open")
    inner, outer = json.loads((tmp_path / "debug.json").read_text())["contexts"]
    assert (inner["layer"], inner["name"], inner["parentId"]) == ("mine", "model/layer/matmul", outer["id"])
    assert outer["args"] == {"size": 3, "name": 'x"y'}
    assert outer["flags"] == {"a": "b"}
    assert outer["location"]["functionName"] == "debugInfo"


def test_functions_of_a_graph_are_built_once_and_called_with_other_tensors(cases):
    lines = cases.run("interface", "functions").splitlines()
    # 100 + a + b + 2 b.
    assert lines[0] == lines[1] == "131 162"
    assert lines[2] == "1"
    assert lines[3] == "a graph function of 2 arguments was called with 1"


def test_options_are_parsed_and_wrong_ones_are_named(cases):
    lines = cases.run("interface", "options", CHOSEN='{"target.x": 5}').splitlines()
    assert lines[0] == '{"target.x":"5"}'
    assert lines[1] == "0.25 31 1 2 5"
    assert [line.split(":")[0] for line in lines[2:5]] == [
        "Invalid value 'maybe' for option 'fast'", "Invalid value '3x' for option 'n'", "Invalid value '2' for option 'rate'",
    ]  # fmt: skip
    assert lines[5] == "Unrecognised option 'slow'"
    assert lines[6].startswith("poplar::invalid_option: an engine has no option 'nonsense'")


def test_regions_are_split_merged_and_mapped(cases):
    lines = cases.run("interface", "regions").splitlines()
    assert lines[0] == "[0,2) [10,12) | [12,13) [20,23) | [23,24) | "
    assert lines[1:3] == ["2 [4,5)", "1 [5,9)"]
    assert lines[3] == "2 [0,6) [2,5)"
    assert lines[4] == "2 3 2 3"
    assert lines[5] == " ".join(map(str, np.unravel_index(17, (2, 3, 4))))
    assert lines[6] == "{2,2,2,3} 1 1"
    assert lines[7] == "1 0 1"
    # Parts of 7 in three: 2, 2, 3; of 5 in two: 2, 3.
    assert lines[8] == "{3,3} {5,7} 6"
    # The first row is shared by tiles 1 and 2; the last row, which nothing uses, follows the rows before it.
    assert lines[9] == "1:[0,4) 2:[4,24) "
    assert lines[10].split() == ["{6}", str(4 - 1 - (3 + 2) % 4), "3", "0"]


def test_slices_of_groups_are_those_of_each_group(cases):
    slices, columns, updated = ([float(x) for x in line.split()] for line in cases.run("interface", "groupedSlices").splitlines())
    t, s, indices = np.arange(30.0).reshape(2, 5, 3), np.arange(100.0, 124).reshape(2, 4, 3), np.array([[4, 0, 4, 2], [1, 1, 3, 0]])
    assert slices == np.take_along_axis(t, indices[..., None], 1).ravel().tolist()
    assert columns == t[0][:, [2, 0]].T.ravel().tolist()
    for group, index, rows in zip(t, indices, s, strict=True):
        np.add.at(group, index, 0.5 * rows)
    assert updated == t.ravel().tolist()


def test_tables_of_estimators_give_them_their_arguments(cases):
    assert cases.run("interface", "estimators").split() == [str(6 * 5 + 4)]


def test_intervals_list_when_each_tile_computed_and_when_all_tiles_exchanged(cases):
    header, *lines, last = cases.run("interface", "intervals").splitlines()
    assert header == last == "begin,end,tile,kind,name"
    rows = list(csv.reader(lines))
    kinds = [(tile, kind) for _, _, tile, kind, _ in rows]
    assert kinds == [("all", "host"), ("0", "compute"), ("1", "compute"), ("all", "exchange")]
    assert [row[4] for row in rows[1:]] == ['work, "both"', 'work, "both"', "move"]
    spans = [(int(begin), int(end)) for begin, end, *_ in rows]
    # Workers take turns: 10 cycles of one are 60 of the tile.
    assert [end - begin for begin, end in spans[1:3]] == [60, 120]
    assert spans[0][1] <= spans[1][0] == spans[2][0] < spans[2][1] <= spans[3][0] < spans[3][1]
