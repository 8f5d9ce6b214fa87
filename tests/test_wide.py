"""The cases of a parametrised test that always run."""

import os
import subprocess
import sys

import pytest

CONFTEST = """
import pytest
from wide import is_wide, unknown_cases

def pytest_configure(config):
    config.addinivalue_line("markers", "wide")
    config.addinivalue_line("markers", "representative(*ids)")

def pytest_collection_modifyitems(items):
    items[:] = [item for item in items if not is_wide(item)]
    assert unknown_cases(items) == [], unknown_cases(items)
"""
TESTS = """
import pytest

@pytest.mark.representative({})
@pytest.mark.parametrize("second", [1, 2])
@pytest.mark.parametrize("first", ["a", "b", "[c]"])
def test_of_cases(first, second):
    pass

@pytest.mark.parametrize("value", [1, pytest.param(2, marks=pytest.mark.wide)])
def test_without_a_marker(value):
    pass
"""


@pytest.mark.parametrize(
    ("cases", "run"),
    [
        ('"a-1"', ["a-1"]),
        ('"a-*", "[c]-2"', ["a-1", "a-2", "[c]-2"]),
        ('"*-1"', ["a-1", "b-1", "[c]-1"]),
        ('"a-*", "d-1"', None),
    ],
)
def test_cases_that_are_named_run_and_have_to_exist(tmp_path, root, cases, run):
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_some.py").write_text(TESTS.format(cases))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root / "tests" / "common"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if run is None:
        assert "test_of_cases[d-1]" in done.stdout + done.stderr
        return
    wanted = [f"test_some.py::test_of_cases[{case}]" for case in run] + ["test_some.py::test_without_a_marker[1]"]
    assert [line for line in done.stdout.splitlines() if "::" in line] == wanted
