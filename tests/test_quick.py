"""``./test --quick FOLDER`` runs as many test files of a folder as fit into a minute."""

import os
import subprocess
import sys

from quick import in_order


def test_files_that_take_least_come_first_and_long_tests_not_at_all():
    names = ["a.py::one", "a.py::two", "b.py::long", "b.py::short", "c.py::new", "c.py::other"]
    seconds = {"a.py::one": 2.0, "a.py::two": 1.5, "b.py::long": 9.0, "b.py::short": 0.5}
    assert in_order(names, seconds) == ["c.py::new", "c.py::other", "b.py::short", "a.py::one", "a.py::two"]


def quick(folder, root, budget=30.0):
    (folder / "conftest.py").write_text(
        "import quick\n"
        "def pytest_configure(config):\n"
        "    config.pluginmanager.register(quick.Seconds(config))\n"
        "    config.pluginmanager.register(quick.Quick())\n"
        f"    config.pluginmanager.register(quick.Budget({budget}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rs", "-q", "."],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(root / "tests" / "common"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout


def test_what_took_long_is_left_out_the_next_time_and_what_is_late_is_skipped(tmp_path, root):
    (tmp_path / "test_some.py").write_text("import quick, time\n\ndef test_long():\n    time.sleep(0.3)\n\ndef test_short():\n    pass\n")
    (tmp_path / "conftest.py").touch()
    assert "2 passed" in quick(tmp_path, root)
    text = (tmp_path / "test_some.py").read_text()
    (tmp_path / "test_some.py").write_text(text.replace("import quick, time", "import quick, time\n\nquick.LONG = 0.2"))
    assert "1 passed, 1 deselected" in quick(tmp_path, root)
    late = quick(tmp_path, root, budget=-1.0)
    assert "1 skipped, 1 deselected" in late
    assert "the budget of -1 seconds is used up" in late
