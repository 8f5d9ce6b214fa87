"""The harness's side of a worker process: starts it, sends requests, collects its measurements, and stops it.

Engines take turns: each times a few training steps in a row, then the next engine does.
"""

from __future__ import annotations

import json
import math
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from snnc.benchmarks.cpu.engine import Entry
from snnc.benchmarks.subprocesses import ProcessError

SECONDS: Final = 600.0
"""Time limit of one request to an engine, including builds, in seconds."""
TURN_MS: Final = 100.0
"""Desired duration of a turn in milliseconds, which determines its number of steps."""
MAX_STEPS: Final = 50
"""Maximum number of timed steps in a turn."""
WARM_MS: Final = 50.0
"""Milliseconds of a step below which an untimed step follows each reset of the weights: threads and caches are cold after other turns."""


class Process:
    """A running worker process for one engine; it answers the requests listed in :mod:`snnc.benchmarks.cpu.worker`.

    `threads` is the number of cores that it may use; the batch and the weights are on `device` (``"cpu"`` or ``"cuda"``). The environment
    variables `more` replace those of :func:`environment` and of the variant.
    """

    def __init__(self, entry: Entry, variant: str, threads: int, device: str = "cpu", more: Mapping[str, str] | None = None) -> None:
        self.entry, self.variant = entry, variant
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        command = [sys.executable, "-m", "snnc.benchmarks.cpu.worker", entry.module, entry.mode, variant, str(threads), device]
        pipe = subprocess.PIPE
        variables = {**environment(threads, device), **entry.settings.get(variant, {}), **(more or {})}
        self._process = subprocess.Popen(command, env=variables, stdin=pipe, stdout=pipe, stderr=self._errors)
        self._buffer = b""
        first = self._read(SECONDS)
        if "missing" in first:
            self.close()
            raise ProcessError(f"not installed: {first['missing']}")
        self.versions: dict[str, str] = first["versions"]

    @property
    def number(self) -> int:
        """Process id (PID) of the worker."""
        return self._process.pid

    def ask(self, do: str, seconds: float = SECONDS, **more: Any) -> dict[str, Any]:
        """Send a request and wait for its answer. Raise ProcessError, and end the process, if the engine failed, died or took too long."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write((json.dumps({"do": do, **more}) + "\n").encode())
            self._process.stdin.flush()
        except OSError:
            raise ProcessError(self._exit_reason()) from None
        answer = self._read(seconds)
        if "error" in answer:
            self.close()
            raise ProcessError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()

    def _read(self, seconds: float) -> dict[str, Any]:
        assert self._process.stdout is not None
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(0.0, end - time.monotonic())):
                    self.close()
                    raise ProcessError(f"took longer than {seconds:.0f} s")
                part = os.read(self._process.stdout.fileno(), 65536)
                if not part:
                    raise ProcessError(self._exit_reason())
                self._buffer += part
        line, _, self._buffer = self._buffer.partition(b"\n")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _exit_reason(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").strip().splitlines()
        self.close()
        return f"its process ended with {code}: {lines[-1] if lines else 'no output'}"


@dataclass
class EngineProcess:
    """An engine whose numbers passed the check: its process and its measurements."""

    process: Process
    loss: float
    """Loss of the first step."""
    first_step_s: float
    """Seconds from the start of the build to the end of the first step."""
    ms: list[float] = field(default_factory=list)
    """Milliseconds of all timed steps."""
    medians: list[float] = field(default_factory=list)
    """Median of each turn, in milliseconds."""
    step_ms: float = 0.0
    """The latest median."""
    peak_mb: float = 0.0
    device_mb: float | None = None
    joules: float | None = None
    gradient_error: float = 0.0
    """`peak_mb`, `device_mb`, `joules` and `gradient_error`: see :func:`~snnc.benchmarks.cpu.rows.row`."""

    def turn(self, seconds: float = SECONDS) -> None:
        """Run one turn of at most `seconds`; raise ProcessError if the engine fails or takes longer."""
        steps = min(MAX_STEPS, max(1, math.ceil(TURN_MS / max(self.step_ms, 1e-3))))
        ms = self.process.ask("turn", seconds, untimed=int(self.step_ms < WARM_MS), steps=steps)["ms"]
        self.ms += ms
        self.medians.append(median(ms))
        self.step_ms = self.medians[-1]


_ON_CPU: Final = {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
_ON_CUDA: Final = {"JAX_PLATFORMS": "cuda", "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "JAX_DEFAULT_MATMUL_PRECISION": "highest"}
"""Environment for a GPU. It overrides two defaults of JAX: reserving most of the device's memory, and multiplying in TF32."""


def environment(threads: int, device: str = "cpu") -> Mapping[str, str]:
    """Return the environment of a worker: each thread pool has `threads` threads."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "SNNC_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads)), **(_ON_CPU if device == "cpu" else _ON_CUDA)}
