"""The process of one engine: answers requests, one line of JSON each.

``python -m snnc.benchmarks.cpu.worker MODULE MODE VARIANT THREADS DEVICE``

MODE is that of an entry of :mod:`snnc.benchmarks.cpu.engine`: ``exact`` or ``window`` gradients of snnc, or ``tf32``, for example; VARIANT
is a form of the framework's program, such as ``eager`` or ``compiled``.

Requests (``do``) and answers:

- ``open`` (``data``): build the engine for the problem in an archive; ``{}``.
- ``check`` (``data``, ``out``): build an engine for the problem, train a few steps, and write losses, gradients and weights; ``{}``.
- ``step``: one training step; ``{"ms": …, "loss": …}``.
- ``turn`` (``untimed``, ``steps``): repeatedly reset the weights, train `untimed` steps and then timed ones, until `steps` steps are timed;
  ``{"ms": [...]}``.
- ``reset_peak``: start measuring the peak memory; ``{}``.
- ``memory``: ``{"peak_mb": …}``, the peak since ``reset_peak``, minus the resident memory after the framework was loaded.

The worker sends a first line without a request: ``{"versions": {...}}``, or ``{"missing": …}`` if the framework cannot be
imported. An answer ``{"error": …}`` has the reason of a failure. Only answers go to standard output; output of libraries
goes to stderr.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from snnc.benchmarks.cpu.engine import BenchmarkEngine
from snnc.benchmarks.cpu.equality import UPDATES, write_answer
from snnc.benchmarks.cpu.memory import peak_bytes, reset_peak, resident_bytes
from snnc.benchmarks.cpu.problem import read_problem
from snnc.compiler.ir.graph import Array

IN_A_ROW: Final = 3
"""Maximum number of timed steps between two resets: a network that memorises one batch soon fires several times as often, so fast engines,
which run more steps in the same time, would be timed at a higher activity than slow ones."""

_PACKAGES: Final = ("snnc.compiler", "snnc.frontends", "snnc.backends", "snnc.templates")
"""Packages whose files affect the emitted program and its build."""


class Worker:
    """Answers the requests to one engine."""

    def __init__(self, module: Any, mode: str, variant: str, device: str) -> None:
        self._module, self._mode, self._variant, self._device = module, mode, variant, device
        self._engine: BenchmarkEngine | None = None
        gc.collect()
        self._base = resident_bytes()

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Process one request and return the answer."""
        match request["do"]:
            case "open":
                self._engine = self._make(request["data"])
                return {}
            case "check":
                self._check(request)
                return {}
            case "step":
                return self._step()
            case "turn":
                return self._turn(request["untimed"], request["steps"])
            case "reset_peak":
                gc.collect()
                reset_peak()
                return {}
            case "memory":
                return {"peak_mb": max(0, peak_bytes() - self._base) / 1e6}
        return {"error": f"there is no request {request['do']!r}"}

    def _make(self, data: str) -> BenchmarkEngine:
        engine: BenchmarkEngine = self._module.ENGINE(read_problem(Path(data)), self._mode, self._variant, self._device)
        return engine

    def _check(self, request: dict[str, Any]) -> None:
        engine = self._make(request["data"])
        losses: list[float] = []
        gradients: list[Mapping[str, Array]] = []
        weights: list[Mapping[str, Array]] = []
        for _ in range(UPDATES):
            losses.append(engine.step())
            gradients.append(engine.gradients())
            weights.append(engine.weights())
        write_answer(Path(request["out"]), losses, gradients, weights)

    def _step(self) -> dict[str, Any]:
        assert self._engine is not None
        start = time.perf_counter()
        loss = self._engine.step()
        return {"ms": 1e3 * (time.perf_counter() - start), "loss": loss}

    def _turn(self, untimed: int, steps: int) -> dict[str, Any]:
        assert self._engine is not None
        ms: list[float] = []
        while len(ms) < steps:
            self._engine.reset()
            for _ in range(untimed):
                self._engine.step()
            ms += [self._step()["ms"] for _ in range(min(IN_A_ROW, steps - len(ms)))]
        return {"ms": ms}


def _versions(packages: tuple[str, ...]) -> dict[str, str]:
    versions = {}
    for name in packages:
        try:
            versions[name] = version(name) + (f"+{_own_sources()}" if name == "snnc" else "")
        except PackageNotFoundError:
            versions[name] = "unknown"
    return versions


def _own_sources() -> str:
    """Return a digest of the files of :data:`_PACKAGES`, which distinguishes the states of a checkout."""
    files = [file for package in _PACKAGES for folder in import_module(package).__path__ for file in sorted(Path(folder).rglob("*"))]
    total = hashlib.sha256()
    for file in files:
        if file.is_file() and "__pycache__" not in file.parts:
            total.update(file.name.encode() + file.read_bytes())
    return total.hexdigest()[:12]


def _serve(module: str, mode: str, variant: str, threads: int, device: str) -> None:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def send(answer: dict[str, Any]) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    try:
        framework = import_module(module)
        framework.load()
    except ImportError as error:
        send({"missing": str(error)})
        return
    worker = Worker(framework, mode, variant, device)
    send({"versions": _versions(framework.VERSIONS)})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            send(worker.answer(request))
        except NotImplementedError as error:
            send({"error": str(error)})
        except Exception as error:  # any exception of a framework becomes an answer, so that the others are still measured
            send({"error": f"{type(error).__name__}: {error}"})


if __name__ == "__main__":
    _serve(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
