"""Shell completion of commands, options and the names of targets."""

import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        (["snnc", "c"], {"check", "clean", "compile", "convert"}),
        (["snnc", "compile", "--gradient"], {"--gradient-window"}),
        (["snnc", "compile", "m.onnx", "--target", "g"], {"gc2", "gc200"}),
        (["snnc", "run", "build", "--target", "ref"], {"reference"}),
    ],
)
def test_the_shell_completes(typed, wanted):
    words = {"_SNNC_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1)}
    command = [sys.executable, "-c", "from snnc.cli.main import main; main()"]
    done = subprocess.run(command, env={**os.environ, **words}, capture_output=True, text=True, timeout=30, check=True)
    assert set(done.stdout.split()) == wanted
