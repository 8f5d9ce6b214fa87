"""Programs with one fault each throw what says so; their twins without it throw nothing."""

from pathlib import Path

import pytest

from snnc.backends.emulator import build, popc

CASES = Path(__file__).parent / "cases"
FAULTS = {
    # Races
    "write_write": ("graph_connection_error", ["'work'", "vertex 0 (Scale) writes a[4:5]", "vertex 1 (Scale) writes"]),
    "row_meets_column": ("graph_connection_error", ["m[8:9]", "vertex 0 (Scale)", "vertex 1 (Scale)", "writes"]),
    "read_of_a_row": ("graph_connection_error", ["vertex 0 (Scale) writes m[6:12]", "vertex 1 (Sum) reads"]),
    "through_a_transpose": ("graph_connection_error", ["m[18:19]", "vertex 0 (Scale)", "vertex 1 (Scale)"]),
    "counter_of_two": ("graph_connection_error", ["ints[3:4]", "(Count)"]),
    "library_meets_vertex": ("graph_connection_error", ["'work'", "a[3:4]", "(Scale)"]),
    "workers_share_a_word": ("application_runtime_error", ["workers 0 and 1 write one 32-bit word", "'data'", "(Neighbours)", "'work'"]),
    "workers_see_each_other": ("application_runtime_error", ["byte 4 of field 'data'", "(Chain)", "order"]),
    # Tiles
    "vertex_on_no_tile": ("invalid_tile_mapping", ["vertex 0 (Scale)", "'work'"]),
    "vertex_beyond_the_tiles": ("invalid_tile_mapping", ["tile 4", "vertex 0 (Scale)", "4 tiles"]),
    "tensor_beyond_the_tiles": ("invalid_tile_mapping", ["tile 4", "'a'", "4 tiles"]),
    "virtual_tile": ("invalid_tile_mapping", ["tile 2", "'a'", "2 tiles"]),
    "interval_beyond_the_tensor": ("index_error", ["[4:9]", "{8}"]),
    "partly_mapped": ("invalid_tile_mapping", ["ghost[7:8]", "(Scale)"]),
    "unmapped_in_a_library": ("poputil::poplibs_error", ["'ghost'", "{8}", "not mapped"]),
    "unmapped_constant": ("invalid_tile_mapping", ["ghost[0:8]", "copy ghost to a"]),
    "unmapped_in_a_stream": ("invalid_tile_mapping", ["ghost[0:2]", "stream s"]),
    "unmapped_host_access": ("invalid_tile_mapping", ["ghost[0:2]", "'h'"]),
    "unmapped_print": ("invalid_tile_mapping", ["ghost[0:2]", "PrintTensor 'p'"]),
    "incomplete_mapping": ("invalid_tile_mapping", ["'ghost'", "not mapped completely"]),
    # Vertices and fields
    "unknown_vertex": ("unknown_vertex_type", ["'Add<double>'", "Add<float>"]),
    "unknown_field": ("unknown_field", ["Scale", "'date'", "data, factor"]),
    "field_not_connected": ("graph_connection_error", ["'b'", "(Add<float>)", "not connected"]),
    "row_not_connected": ("graph_connection_error", ["'rows'", "(Sum)", "not connected"]),
    "connected_twice": ("graph_connection_error", ["'a'", "(Add<float>)", "twice"]),
    "wrong_element_type": ("type_error", ["'data'", "float", "'halves'", "half"]),
    "matrix_for_a_vector": ("graph_connection_error", ["'data'", "rank 1", "{4,6}"]),
    "vector_for_a_scalar": ("graph_connection_error", ["'counter'", "rank 0", "{1}"]),
    "vector_for_a_list": ("graph_connection_error", ["'rows'", "rank 2", "{8}"]),
    "constant_written_by_a_vertex": ("graph_connection_error", ["(Scale)", "constant 'one'"]),
    "constant_written_by_a_copy": ("graph_connection_error", ["copy a to one", "constant 'one'"]),
    "constant_written_by_the_host": ("graph_connection_error", ["'h'", "constant 'one'"]),
    "constant_left_undefined": ("graph_connection_error", ["WriteUndef", "constant 'one'"]),
    "tensor_of_another_graph": ("graph_connection_error", ["'data'", "another graph"]),
    "program_of_another_graph": ("graph_connection_error", ["'b'", "another graph"]),
    "mapping_of_another_graph": ("graph_connection_error", ["setTileMapping", "'a'", "another graph"]),
    "initial_values": ("graph_connection_error", ["7 values", "'a'", "{8}"]),
    "table_too_small": ("graph_connection_error", ["'table'", "2 elements", "3 values"]),
    "table_shrunk": ("graph_connection_error", ["'table'", "3 initial values", "2 elements"]),
    "no_estimate": ("missing_perf_estimate", ["vertex 0 (Scale)", "setPerfEstimate"]),
    "estimator_of_nothing": ("unknown_vertex_type", ["registerPerfEstimator", "'Nothing'"]),
    # Shapes and types of tensors
    "slice_beyond": ("index_error", ["[2:7]", "{4,6}", "dimension 1"]),
    "slice_backwards": ("index_error", ["[5:4]", "{8}"]),
    "index_beyond": ("index_error", ["6", "{6}"]),
    "reshape": ("index_error", ["{4,6}", "{5,3}"]),
    "concat": ("index_error", ["{6,4}", "{4,6}", "dimension 1"]),
    "reinterpret": ("type_error", ["float", "half"]),
    "constant_values": ("tensor_creation_error", ["{3}", "2 values"]),
    "too_many_elements": ("tensor_creation_error", ["'huge'", "{131072,65536}"]),
    "copy_of_another_size": ("graph_connection_error", ["'m' has 12", "'b' has 6"]),
    "copy_of_another_type": ("type_error", ["'ints'", "int", "'b'", "float"]),
    "copy_to_an_element_twice": ("graph_connection_error", ["copy a to b", "'b' twice"]),
    "host_write_to_an_element_twice": ("graph_connection_error", ["'h'", "'b' twice"]),
    # PopLibs
    "add_shapes": ("poputil::poplibs_error", ["{4,6}", "{8}", "broadcast"]),
    "in_place_broadcast": ("poputil::poplibs_error", ["{4,6}", "broadcast"]),
    "in_place_alias": ("poputil::poplibs_error", ["'b'", "twice"]),
    "add_types": ("poputil::poplibs_error", ["float and int"]),
    "select_condition": ("poputil::poplibs_error", ["condition", "float"]),
    "map_placeholder": ("poputil::poplibs_error", ["_3 of 2"]),
    "product_shapes": ("poputil::poplibs_error", ["{1,4,6}"]),
    "product_types": ("poputil::poplibs_error", ["float", "half"]),
    "product_added_to": ("poputil::poplibs_error", ["4,4}", "4,3}"]),
    "reduce_dimension": ("poputil::poplibs_error", ["dimension 2", "{4,6}"]),
    "reduce_output": ("poputil::poplibs_error", ["output", "{6}"]),
    "scaled_add_shapes": ("poputil::poplibs_error", ["{8}", "{24}"]),
    "slice_offset_type": ("poputil::poplibs_error", ["offsets", "float", "unsigned int"]),
    "update_shape": ("poputil::poplibs_error", ["{1,5}"]),
    "gather_axis": ("poputil::poplibs_error", ["dimension 2", "{4,6}"]),
    "top_k": ("poputil::poplibs_error", ["7 elements", "{4,6}"]),
    "loop_step": ("poputil::poplibs_error", ["step of 0"]),
    "library_not_added": ("unknown_vertex_type", ["popops::addCodelets(graph)"]),
    # Memory
    "out_of_memory": ("graph_memory_allocation_error", ["tile 1", "15000 bytes available", "big (12000 bytes)"]),
    "out_of_memory_for_what_is_gathered": ("graph_memory_allocation_error", ["tile 3", "15000 bytes available"]),
    "out_of_memory_where_it_is_allowed": ("graph_memory_allocation_error", ["tile 1", "15000 bytes available"]),
    "streaming_memory": ("stream_memory_allocation_error", ["'far'", "120 bytes", "has 100"]),
    # What was never written, and what should not be
    "undefined_input": ("application_runtime_error", ["field 'b' of vertex 0 (Add<float>)", "b[6:7]", "WriteUndef"]),
    "undefined_to_the_host": ("application_runtime_error", ["host access 'h'", "a[0:1]"]),
    "undefined_to_a_stream": ("application_runtime_error", ["a[0:1]", "WriteUndef"]),
    "undefined_decision": ("application_runtime_error", ["decision", "ints[1:2]"]),
    "undefined_sum": ("application_runtime_error", ["m[12:13]", "WriteUndef"]),
    "beyond_the_end": ("application_runtime_error", ["field 'out'", "(Reach)", "beyond its end", "byte 16 of 16"]),
    "before_the_begin": ("application_runtime_error", ["field 'out'", "(Reach)", "before its begin"]),
    "beyond_a_column": ("application_runtime_error", ["field 'out'", "(Reach)", "beyond its end", "byte 16 of 16"]),
    "workers_beyond": ("application_runtime_error", ["field 'out'", "(Overrun)", "beyond its end", "byte 32 of 32"]),
    "input_written": ("application_runtime_error", ["field 'in'", "(Meddle)", "input and was written"]),
    # Streams and the host
    "stream_elements": ("stream_connection_error", ["'s' carries 6", "'a' has 8"]),
    "stream_type": ("type_error", ["'s'", "half", "'a'", "float"]),
    "stream_direction": ("stream_connection_error", ["'s'", "other way"]),
    "stream_buffer": ("stream_connection_error", ["'s'", "32 bytes", "48 bytes"]),
    "stream_not_connected": ("stream_connection_error", ["stream s", "not connected"]),
    "stream_disconnected": ("stream_connection_error", ["stream s", "not connected"]),
    "stream_unknown": ("stream_connection_error", ["no stream 't'"]),
    "stream_twice": ("graph_object_creation_error", ["'s'", "exists"]),
    "callback_fails": ("std::runtime_error", ["no data left"]),
    "host_read_size": ("stream_connection_error", ["'h'", "a{8}", "32 bytes", "36"]),
    "host_read_of_halves_as_floats": ("stream_connection_error", ["'h'", "halves{4}", "8 bytes", "16"]),
    "host_name": ("stream_connection_error", ["'H'", "read"]),
    "host_write_to_what_is_read": ("stream_connection_error", ["'h'", "write"]),
    "host_access_twice": ("graph_object_creation_error", ["'h'", "exists"]),
    # Engines
    "not_loaded": ("runtime_error", ["not loaded"]),
    "no_such_program": ("index_error", ["run(2)", "2 programs"]),
    "another_machine": ("invalid_machine_model", ["4 tiles", "8"]),
    "engine_option": ("invalid_option", ["'exchnage.enablePrefetch'", "'true'"]),
    "options_of_the_environment": ("parse_error", ["character 43", "was expected"]),
    "aborts": ("application_runtime_error", ["it overflowed"]),
    "no_such_machine": ("invalid_machine_model", ["ipu3", "ipu21"]),
    # Remote buffers
    "row_that_is_not_there": ("index_error", ["from remote buffer far", "row 3", "which has 3"]),
    "row_before_the_first": ("index_error", ["to remote buffer far", "row", "which has 3"]),
    "rows_and_elements": ("stream_connection_error", ["'far'", "3 rows of 4", "'a' has 8"]),
    "remote_name": ("stream_connection_error", ["no remote buffer 'near'"]),
    "remote_row_of_the_host": ("index_error", ["copyToRemoteBuffer", "row 3", "'far'", "has 3"]),
    "remote_replica": ("index_error", ["replica 2", "'far'", "has 2"]),
    # Replicas
    "replicas_and_ipus": ("graph_replication_error", ["4 IPUs", "3 replicas"]),
    "replica_receives_twice": ("graph_replication_error", ["'a'", "2 replicas"]),
    "replica_that_is_not_there": ("graph_replication_error", ["'a'", "2 replicas"]),
    "replicas_disagree": ("graph_replication_error", ["0 on replica 0", "1 on replica 1"]),
    "replicas_differ": ("graph_replication_error", ["'i'", "replicas 0 and 1"]),
    "host_values_of_all_replicas": ("stream_connection_error", ["'h'", "64 bytes", "32"]),
    "callback_of_a_replica": ("stream_connection_error", ["'s'", "no replica 2"]),
    # Control programs
    "predicate_type": ("type_error", ["RepeatWhileFalse", "'a'", "float"]),
    "predicate_size": ("graph_connection_error", ["If", "'ints'", "2 elements"]),
    "case_twice": ("control_program_error", ["two cases for 1"]),
    "no_case": ("application_runtime_error", ["no case"]),
    "recursion": ("graph_recursion_error", ["function 1", "itself"]),
    "no_such_function": ("graph_program_compilation_error", ["function"]),
}  # fmt: skip


@pytest.fixture(scope="session")
def outcomes(cases, tmp_path_factory):
    """What each program throws, by its name: those with a fault, and their twins."""
    table = tmp_path_factory.mktemp("faults") / "faulty.gp"
    assert popc.main([str(CASES / "faulty.cpp"), "-o", str(table), "--library", str(build.library())]) == 0
    return {kind: dict(line.split("\t", 1) for line in cases.run("faults", kind, table).splitlines()) for kind in ("bad", "good")}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_fault_is_named_by_its_exception_and_the_twin_runs(outcomes, fault):
    error, parts = FAULTS[fault]
    text = outcomes["bad"][fault]
    assert text.startswith(f"{error}: " if "::" in error else f"poplar::{error}: ")
    for part in parts:
        assert part in text
    assert outcomes["good"][fault] == "none"


def test_every_program_is_listed(outcomes):
    assert list(outcomes["bad"]) == list(outcomes["good"]) == list(FAULTS)
