"""Run a Python module in a separate process, whose last line of output is its result as JSON."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any


class ProcessError(Exception):
    """A separate process failed or took too long; the message is the reason."""


def run_module(
    module: str, arguments: Sequence[str], seconds: float, *, stdin: str = "", environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run `module` for at most `seconds`, with the text `stdin` as its standard input, and return the JSON object of its last line.

    Raise ProcessError if the module fails, takes too long or prints nothing.
    """
    command = [sys.executable, "-m", module, *arguments]
    try:
        done = subprocess.run(command, input=stdin, env=environment, capture_output=True, text=True, timeout=seconds, check=False)
    except subprocess.TimeoutExpired:
        raise ProcessError(f"took longer than {seconds:.0f} s") from None
    printed = done.stdout.splitlines()
    if done.returncode or not printed:
        raise ProcessError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    result: dict[str, Any] = json.loads(printed[-1])
    return result
