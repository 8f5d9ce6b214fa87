"""Without a framework, files that need it are skipped with the reason, unless it is required."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT_TORCH = """
import sys
class Blocked:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked)
import pytest
sys.exit(pytest.main(["-q", "-rs", "-p", "lacking", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


@pytest.mark.parametrize(
    ("line", "required", "status", "said"),
    [
        ("import torch.nn", "", 0, "1 passed, 1 skipped"),
        ("import torch.nn", "1", 2, "1 error"),
        ("import torchlight_of_a_typo", "", 2, "1 error"),
    ],
)
def test_a_file_is_skipped_only_for_want_of_a_framework(tmp_path, line, required, status, said):
    (tmp_path / "test_with.py").write_text(f"{line}\n\ndef test_it():\n    assert False\n")
    (tmp_path / "test_without.py").write_text("def test_it():\n    pass\n")
    settings = {"PYTHONPATH": str(Path(__file__).parent / "common"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(tmp_path)],
        env={**os.environ, **settings, "SNNC_TEST_FRAMEWORKS": required},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, said in done.stdout) == (status, True), done.stdout + done.stderr
    assert ("torch is not installed" in done.stdout) == (status == 0)
