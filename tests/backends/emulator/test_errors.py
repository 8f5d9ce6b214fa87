"""Each check of the API refuses exactly the invalid uses, with a message that names the cause."""

import pytest

EXPECTED = {
    "write_write": ("graph_connection_error", ["'work'", "vertex 0 (Scale)", "vertex 1 (Scale)", "a[3:5]", "writes"]),
    "read_write": ("graph_connection_error", ["'work'", "vertex 0 (Scale)", "vertex 1 (Add<float>)", "a[3:4]", "reads"]),
    "strided_race": ("graph_connection_error", ["a[4:5]"]),
    "unmapped_vertex": ("invalid_tile_mapping", ["vertex 0 (Scale)", "'work'"]),
    "unmapped_tensor": ("invalid_tile_mapping", ["ghost[3:8]", "vertex 0 (Scale)"]),
    "bad_tile": ("invalid_tile_mapping", ["tile 4", "'a'", "4 tiles"]),
    "unconnected": ("graph_connection_error", ["'b'", "Add<float>", "not connected"]),
    "connected_twice": ("graph_connection_error", ["'data'", "twice"]),
    "unknown_vertex": ("unknown_vertex_type", ["'Nothing'", "Scale"]),
    "unknown_field": ("unknown_field", ["'datum'", "data, factor"]),
    "wrong_type": ("type_error", ["'data'", "float", "'ints'", "int"]),
    "wrong_rank": ("graph_connection_error", ["rank 1", "{2,4}"]),
    "slice_outside": ("index_error", ["[4:9]", "{8}"]),
    "index_outside": ("index_error", ["8", "{8}"]),
    "reshape_wrong": ("index_error", ["{8}", "{3,3}"]),
    "concat_wrong": ("index_error", ["{4,2}", "{2,4}"]),
    "constant_written": ("graph_connection_error", ["constant 'one'"]),
    "copy_sizes": ("graph_connection_error", ["'a' has 8", "'b' has 4"]),
    "copy_types": ("type_error", ["float", "'ints'"]),
    "copy_aliases": ("graph_connection_error", ["'b'", "twice"]),
    "predicate_type": ("type_error", ["RepeatWhileTrue", "'a'"]),
    "predicate_size": ("graph_connection_error", ["If", "'p'", "2 elements"]),
    "stream_unconnected": ("stream_connection_error", ["stream in", "not connected"]),
    "stream_elements": ("stream_connection_error", ["'in' carries 4", "'a' has 8"]),
    "stream_buffer": ("stream_connection_error", ["'in'", "32 bytes", "36 bytes"]),
    "stream_name": ("stream_connection_error", ["no stream 'in'"]),
    "stream_direction": ("stream_connection_error", ["'out'", "other way"]),
    "handle_size": ("stream_connection_error", ["'a'", "32 bytes", "28"]),
    "handle_unknown": ("stream_connection_error", ["write", "'a'"]),
    "not_loaded": ("runtime_error", ["not loaded"]),
    "no_program": ("index_error", ["run(1)", "1 programs"]),
    "other_device": ("invalid_machine_model", ["4 tiles", "8"]),
    "bad_version": ("invalid_machine_model", ["ipu9"]),
    "no_file": ("file_load_error", ["nowhere.cpp", "not in the folder", "snnc emulate HOST.cpp nowhere.cpp"]),
    "broken_codelet": ("file_load_error", ["nonsense"]),
    "no_vertex": ("file_load_error", ["no class derived from poplar::Vertex", "template class Scale<float>;"]),
    "remote_type": ("type_error", ["'far'", "int", "'a'", "float"]),
    "remote_elements": ("stream_connection_error", ["'far'", "1 rows of 3", "'a' has 8"]),
    "remote_rows": ("stream_connection_error", ["'far'", "2 rows of 8", "'a' has 8"]),
    "remote_offset_type": ("type_error", ["'far'", "offset", "'b'", "float"]),
    "remote_offset_rank": ("graph_connection_error", ["'rows'", "{2,2}"]),
    "remote_twice": ("graph_object_creation_error", ["'far'"]),
    "remote_empty": ("graph_object_creation_error", ["'far'", "0 rows of 8"]),
    "remote_unmapped": ("invalid_tile_mapping", ["ghost[0:8]", "from remote buffer far"]),
    "remote_unmapped_offset": ("invalid_tile_mapping", ["ghost[0:1]", "from remote buffer far"]),
    "remote_constant": ("graph_connection_error", ["constant 'one'"]),
    "remote_row": ("index_error", ["to remote buffer far", "row 2", "which has 2"]),
    "remote_two_ipus": ("graph_connection_error", ["'far'", "IPU 0", "IPU 1"]),
    "remote_other_graph": ("graph_program_compilation_error", ["'far'", "another graph"]),
    "remote_room": ("stream_memory_allocation_error", ["IPU 0", "128 bytes", "has 100"]),
    "remote_buffer_room": ("stream_memory_allocation_error", ["'x'", "104 bytes", "has 100"]),
    "remote_handle": ("stream_connection_error", ["no remote buffer 'far'"]),
    "remote_host_row": ("index_error", ["copyFromRemoteBuffer", "row 3", "'far'", "has 3"]),
    "remote_host_size": ("stream_connection_error", ["'far'", "32 bytes", "28"]),
    "remote_host_size_back": ("stream_connection_error", ["'far'", "32 bytes", "36"]),
    "remote_replica": ("index_error", ["replica 1", "'far'"]),
    "remote_not_loaded": ("runtime_error", ["copyToRemoteBuffer", "not loaded"]),
    "abort": ("application_runtime_error", ["stop here"]),
    "abort_if": ("application_runtime_error", ["it is true"]),
    "recursion": ("graph_recursion_error", ["function 0"]),
    "unmapped_copy": ("invalid_tile_mapping", ["ghost[0:8]", "copy ghost to a"]),
    "unmapped_handle": ("invalid_tile_mapping", ["ghost[0:8]", "'h'"]),
    "unmapped_predicate": ("invalid_tile_mapping", ["ghost[0:1]", "predicate"]),
    "incomplete_mapping": ("invalid_tile_mapping", ["'ghost'"]),
    "vertex_tile": ("invalid_tile_mapping", ["tile 9", "vertex 0 (Scale)"]),
    "handle_twice": ("graph_object_creation_error", ["'h'"]),
    "stream_twice": ("graph_object_creation_error", ["'s'"]),
    "stream_type": ("type_error", ["'s'", "int", "float"]),
    "reinterpret": ("type_error", ["float", "half"]),
    "squeeze": ("index_error", ["dimension 0", "{8}"]),
    "shuffle_twice": ("index_error", ["dimension 1", "twice"]),
    "shuffle_rank": ("index_error", ["2 dimensions", "{8}"]),
    "sub_sample": ("index_error", ["stride of 0"]),
    "dimension": ("index_error", ["dimension 1", "{8}"]),
    "concat_types": ("type_error", ["float", "int"]),
    "concat_none": ("tensor_creation_error", ["no tensors"]),
    "no_tensor": ("tensor_creation_error", ["no graph"]),
    "other_graph": ("graph_connection_error", ["'data'", "another graph"]),
    "tensor_for_value": ("graph_connection_error", ["'factor'", "takes a value"]),
    "value_for_vector": ("graph_connection_error", ["'data'", "constant"]),
    "value_for_output": ("graph_connection_error", ["'out'", "constant"]),
    "row_of_vector": ("graph_connection_error", ["'data'[0]", "lists"]),
    "list_for_scalar": ("graph_connection_error", ["'out'", "list"]),
    "missing_row": ("graph_connection_error", ["'rows'", "not connected"]),
    "constant_values": ("tensor_creation_error", ["'c'", "{3}", "2 values"]),
    "initial_values": ("graph_connection_error", ["2 values", "'a'", "{8}"]),
    "field_initial": ("graph_connection_error", ["'data'", "initial value"]),
    "foreign_compute_set": ("graph_object_creation_error", ["compute set"]),
    "execute_nothing": ("graph_program_compilation_error", ["compute set"]),
    "call_nothing": ("graph_program_compilation_error", ["function"]),
    "no_option": ("invalid_option", ["'absent'"]),
    "empty_model": ("invalid_machine_model", ["at least one"]),
    "switch_bounds": ("application_runtime_error", ["no case"]),
    "out_of_memory": (
        "graph_memory_allocation_error",
        # 2110 floats, 700 bytes of control code, 3174 of stack.
        ["tile 2", "12314 bytes needed", "10000 bytes available", "big (6000 bytes), middle (2000 bytes), small (400 bytes)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("scenario", EXPECTED)
def test_refuses_and_names_the_culprit(cases, scenario):
    error, parts = EXPECTED[scenario]
    text = cases.run("errors", scenario)
    assert text.startswith(f"poplar::{error}: ")
    for part in parts:
        assert part in text


@pytest.mark.parametrize("scenario", ["disjoint", "interleaved", "same_vertex", "shared_read"])
def test_allows_what_is_no_race(cases, scenario):
    assert cases.run("errors", scenario) == "built\n"


def test_workers_that_write_one_word_are_named_when_they_are_kept_apart(cases):
    text = cases.run("errors", "half_words", SNNC_CHECK_WORKERS="1")
    assert text.startswith("poplar::application_runtime_error: ")
    assert "workers 0 and 1" in text
    assert cases.run("errors", "half_words") == "built\n"
