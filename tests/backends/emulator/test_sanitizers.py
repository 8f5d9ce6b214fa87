"""The emulator's library, some programs and their codelets under the compiler's sanitizers; `SNNC_TEST_SANITIZER` runs all tests so."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from sanitizers import SANITIZERS

HERE = Path(__file__).parent
PROGRAMS = (
    "test_layers.py::test_lstm_and_its_gradients[1-1]",
    "test_layers.py::test_gru_and_its_gradients[3-0]",
    "test_layers.py::test_a_recurrence_with_a_cell_of_the_program[1]",
    "test_layers.py::test_ctc_loss_and_its_gradient[1]",
    "test_layers.py::test_beam_search_with_room_for_all_finds_the_likeliest_labels[1]",
    "test_layers.py::test_pooling_and_its_gradient[2]",
    "test_layers.py::test_normalisations_and_their_gradients[2]",
    "test_sparse.py::test_sparse_products_whose_places_are_data[1]",
    "test_sparse.py::test_sparse_products_whose_places_are_known[1]",
    "test_documented.py::test_functions_run_from_buffers_of_their_code",
    "test_documented.py::test_host_functions_get_inputs_and_give_outputs_in_the_order_of_the_program",
    "test_documented.py::test_vertices_of_popnn_pick_the_first_extreme_of_constants_from_memory",
    "test_documented.py::test_plans_of_products_count_blocks",
    "test_poplibs.py::test_products_of_matrices[40-shape2]",
    "test_poplibs.py::test_reductions_over_any_dimensions_with_scale_update_and_several_at_once",
    "test_checks.py::test_a_request_ahead_may_wait_for_what_the_program_does_meanwhile",
    "test_executables.py::test_tensors_keep_their_views_and_tiles_in_another_graph[JSON]",
    "test_executables.py::test_damaged_tensors_as_json_are_refused",
)


@pytest.mark.wide
@pytest.mark.parametrize("flag", SANITIZERS.values())
def test_the_library_and_programs_have_no_race_and_touch_no_memory_that_is_not_theirs(flag, root):
    """In a process of its own, because the flags belong to all that a process builds."""
    tests = [str(HERE / program) for program in PROGRAMS]
    found = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *tests],
        env={**os.environ, "SNNC_TEST_SANITIZER": flag.removeprefix("-fsanitize=")},
        cwd=root, capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert found.returncode == 0, found.stdout[-4000:]
    assert f"{len(PROGRAMS)} passed" in found.stdout
