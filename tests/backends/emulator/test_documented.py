"""Less common parts of the documented interface; expected values are computed by hand or with NumPy."""

import re

import numpy as np


def printed(text):
    """Return what PrintTensor wrote, as flat arrays by title."""
    parts = re.split(r"^(\w+): ", text, flags=re.MULTILINE)[1:]
    return {name: [float(x) for x in re.findall(r"-?\d+(?:\.\d+)?", values)] for name, values in zip(parts[::2], parts[1::2], strict=True)}


def test_host_functions_get_inputs_and_give_outputs_in_the_order_of_the_program(cases):
    assert cases.run("documented", "hostFunction").splitlines() == ["note 7", "6 7"]


def test_calls_of_host_functions_name_what_does_not_fit(cases):
    lines = cases.run("documented", "hostFunctionErrors").splitlines()
    assert lines[0] == "Call of host function 'f': it has 1 inputs, the call has 2"
    assert lines[1] == "poplar::stream_connection_error: there is no host function 'g'"


def test_types_targets_versions_and_clones_say_what_is_documented(cases):
    assert cases.run("documented", "values").split() == ["3.3.11040", "1022", "11", "{3,4}23", "11"]


def test_engines_take_lists_of_values_and_time_on_the_host(cases):
    assert cases.run("documented", "engine").splitlines() == ["4 5 6", "9"]


def test_vertices_are_named_by_vector_template_arguments(cases):
    # sizeof: float 4, half4 8, float2 8; float2 8, uchar4 4, float4 16.
    assert cases.run("documented", "vectors").split() == ["20", "28"]


def test_braces_are_assigned_to_vectors(cases):
    assert cases.run("documented", "braces").split() == ["3.5", "4"]


def test_values_are_ordered_by_their_keys(cases):
    keys, values = np.array([[5, 1, 4, 2, 3], [-1, 9, 0, 7, 7]]), np.arange(10.0).reshape(2, 5)
    rows, columns = np.argsort(keys, 1, kind="stable"), np.argsort(keys, 0, kind="stable")
    found = printed(cases.run("documented", "keys"))
    assert found["sorted"] == found["v"] == np.take_along_axis(values, rows, 1).ravel().tolist()
    assert found["columns"] == np.take_along_axis(values, columns, 0).ravel().tolist()
    assert found["top"] == [5, 4, 9, 7]
    assert found["places"] == [0, 2, 6, 8]


def test_a_loop_reads_its_limit_when_it_starts(cases):
    assert cases.run("documented", "loops").split() == ["up:", "[1]", "up:", "[4]", "up:", "[7]", "down:", "[9]"]


def test_slices_are_taken_by_their_indices_and_outputs_may_have_dimensions_of_one_element(cases):
    assert cases.run("documented", "pieces").splitlines() == ["70 80 10 20 70 80", "36", "1 2", "0 s"]


def test_functions_run_from_buffers_of_their_code(cases):
    assert cases.run("documented", "functionBuffers").splitlines() == [
        "7", "1", "Copy: a buffer of function 0 holds no code of function 1",
        "addFunctionBuffer: there is no function 9 among the graph's 2",
    ]  # fmt: skip


def test_padding_repeats_or_mirrors_the_edge(cases):
    t = np.array([[1, 2, 3], [4, 5, 6]])
    found = printed(cases.run("documented", "pads"))
    assert found["edge"] == np.pad(t, ((1, 0), (0, 2)), "edge").ravel().tolist()
    assert found["reflect"] == np.pad(t, ((0, 0), (2, 1)), "reflect").ravel().tolist()


def test_groups_are_the_elements_that_follow_each_other_in_memory(cases):
    innermost, *groupings = cases.run("documented", "groupings").splitlines()
    assert innermost.split() == ["8", "1", "4"]
    # The whole tensor, its transpose, and blocks of four channels.
    assert [line.split() for line in groupings] == [["2:8", "1:6", "0:4"], ["1:8", "2:6", "0:4"], ["3:4", "1:2", "2:6", "0:4"]]


def test_every_replica_sends_a_row_to_every_other(cases):
    lines = cases.run("documented", "exchange").splitlines()
    assert [int(x) for x in lines[0].split()] == np.arange(32).reshape(4, 4, 2).transpose(1, 0, 2).ravel().tolist()
    assert lines[1] == "SQUARE_ADD"


def test_the_folder_of_reports_is_made(cases, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cases.run("documented", "report")
    profile = (tmp_path / "made/here/profile.json").read_text()
    assert profile
    # By the name that programs give to pva::openReport.
    assert (tmp_path / "made/here/profile.pop").read_text() == profile


def test_plans_of_products_count_blocks(cases):
    one, grouped, tiles = cases.run("documented", "plan").splitlines()
    pattern = r"(\d+) products of (\d+) x (\d+) by \d+ x (\d+), (\w+) to (\w+): rows in (\d+), columns in (\d+), terms in (\d+) parts"
    assert re.match(pattern, grouped).groups()[:6] == ("3", "7", "5", "2", "float", "float")
    found = re.match(pattern, one).groups()
    assert found[:6] == ("1", "40", "300", "20", "half", "float")
    rows, columns, terms = map(int, found[6:])
    assert rows * columns * terms == int(tiles) > 1
    assert f"blocks of up to {-(-40 // rows)} x {-(-300 // terms)} by {-(-300 // terms)} x {-(-20 // columns)}, " in one


def test_vertices_of_popnn_pick_the_first_extreme_of_constants_from_memory(cases):
    lines = cases.run("documented", "picks").splitlines()
    assert lines[:6] == ["value: 4.0000000", "label: 9", "value: -2.0000000", "label: 7", "value: -8", "label: 9"]
    assert int(lines[6]) == 3 * 6 * (20 + 3 * 4), "three vertices of one tile, each as long as all its workers"


def test_softmax_needs_only_the_codelets_of_popops(cases):
    text = cases.run("documented", "softmax")
    found = printed(text)
    y, x = np.array([1, 2, 5]) / 8, np.log([1, 2, 5])
    np.testing.assert_allclose(found["y"], y, atol=1e-6)
    np.testing.assert_allclose(found["logs"], np.log(y), atol=1e-6)
    np.testing.assert_allclose(found["gradient"], y * (x - y @ x), atol=1e-6)
    assert "popnn::addCodelets" in text
