"""C++ that is copied into emitted projects is formatted by ``.clang-format``."""

import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

clang_format = pytest.importorskip("clang_format", reason="the wheel clang-format is not installed")

ROOT = Path(__file__).parents[1]
CPP = {".h", ".hpp", ".cpp", ".cu", ".cuh"}
MAJOR = "23"
"""Versions of clang-format differ in what they make of some lines."""


@pytest.mark.skipif(version("clang-format").split(".")[0] != MAJOR, reason=f"clang-format is not of version {MAJOR}")
def test_plain_sources_of_templates_are_formatted():
    files = [str(f) for f in sorted(ROOT.glob("templates/*/runtime/**/*")) if f.suffix in CPP]
    assert len(files) > 100
    command = [clang_format.get_executable("clang-format"), "--dry-run", "-Werror", "--ferror-limit=5", *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
