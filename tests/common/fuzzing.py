"""Code that the fuzzers of the frontends share: processes with limits, monitoring of the files that are read, and the count of cases.

A fuzzer is a module with ``SUFFIX``, ``sources()``, ``prepare(folder, outside)``, ``make(path, names, rng, outside)`` and
``compare(path, seed, guard)``. Cases are made and checked in processes with a limit on memory, each with its own folder:

    model/     the file of the case, and the files it may read
    outside/   ``secret.h5`` and ``secret.bin``, which mutations refer to and which nothing may open

Reads outside are detected in two ways: the kernel reports (inotify) whether any file in ``outside/`` is opened while a file is loaded,
by any code, including HDF5 and ONNX; and an audit hook reports files that Python itself opens elsewhere.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import importlib
import itertools
import json
import multiprocessing as mp
import os
import resource
import shutil
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

import h5py
import numpy as np

CORPUS = Path(__file__).parents[1] / "corpus"
SECONDS, ASLEEP, MEMORY = 10, 600, 2 << 30
RENEW = 6000
"""Cases after which a process is replaced, so that memory kept by libraries does not reach the limit."""
SECRET = 1234.5


class OutsideReadError(AssertionError):
    """A file outside the model's folder was opened."""


class Watch:
    """Reports whether files in a folder are opened or read, by any code."""

    OPEN, ACCESS = 0x20, 0x01

    def __init__(self, folder):
        libc = ctypes.CDLL(None, use_errno=True)
        self.handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.handle < 0 or libc.inotify_add_watch(self.handle, os.fsencode(folder), self.OPEN | self.ACCESS) < 0:
            raise OSError(ctypes.get_errno(), "inotify")

    def touched(self):
        """Return whether a file was opened or read since the last call."""
        found = False
        with contextlib.suppress(BlockingIOError):
            while os.read(self.handle, 1 << 16):
                found = True
        return found


class Guard:
    """Raises when a block of code opens a file outside the model's folder.

    Parameters
    ----------
    model
        The folder that may be read.
    outside
        The folder that is watched.
    """

    LIBRARIES = (".py", ".pyc", ".so", ".dist-info", ".json", ".txt")
    SYSTEM = ("/proc", "/sys", "/dev", "/etc")

    def __init__(self, model, outside):
        self.model, self.watch, self.armed, self.opened = os.path.realpath(model), Watch(outside), False, []
        sys.addaudithook(self._hook)

    def _hook(self, event, args):
        if not self.armed or event != "open" or not isinstance(args[0], str | bytes):
            return
        path = os.path.realpath(os.fsdecode(args[0]))
        known = path.startswith((self.model, sys.prefix, sys.base_prefix, *self.SYSTEM)) or path.endswith(self.LIBRARIES)
        if not known:
            self.opened.append(path)

    @contextlib.contextmanager
    def __call__(self):
        self.watch.touched()
        self.opened.clear()
        self.armed = True
        try:
            yield
        finally:
            self.armed = False
            if self.watch.touched():
                raise OutsideReadError("a file outside of the model's folder was opened")
            if self.opened:
                raise OutsideReadError(f"opened {self.opened[0]}")


def plant(folder):
    """Make the folders of a process; return the model's folder and the outside folder."""
    shutil.rmtree(folder, ignore_errors=True)
    model, outside = Path(folder) / "model", Path(folder) / "outside"
    for f in (model, outside):
        f.mkdir(parents=True, exist_ok=True)
    np.full(1 << 16, SECRET, np.float32).tofile(outside / "secret.bin")
    with h5py.File(outside / "secret.h5", "w") as file:
        file["weight"] = np.full((64, 64), SECRET, np.float32)
        file["node/type"] = "Input"
    return model, outside


def _worker(module, folder, queue, answers):
    fuzzer = importlib.import_module(module)
    model, outside = plant(folder)
    fuzzer.prepare(model, outside)
    guard = Guard(model, outside)
    path = model / f"case{fuzzer.SUFFIX}"
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # HDF5 complains about files that a mutation could not finish
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    for seed, k, names in iter(queue.get, None):
        what = "?"
        try:
            path.unlink(missing_ok=True)
            what = fuzzer.make(path, names, np.random.default_rng([seed, k]), outside)
            (model / "what").write_text(what)
            found = "ok", what, fuzzer.compare(path, k, guard)
        except BaseException as error:
            found = "FAIL", what, f"{type(error).__name__}: {error}"[:300] + "\n" + traceback.format_exc(limit=-4)
        answers.put((*found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss))


class Worker:
    """A process that runs one case at a time and is replaced when it dies, hangs, or has run many cases."""

    def __init__(self, module, folder):
        self.module, self.folder, self.answered = module, Path(folder), 0
        self.start()

    def start(self):
        context = mp.get_context("spawn")
        self.queue, self.answers = context.Queue(), context.Queue()
        self.process = context.Process(target=_worker, args=(self.module, str(self.folder), self.queue, self.answers), daemon=True)
        self.process.start()
        self.cases = 0

    def __call__(self, seed, k, names):
        if self.cases >= RENEW:
            self.stop()
            self.start()
        self.queue.put((seed, k, names))
        # Processor time is independent of the machine's load; a process that waits forever uses none.
        busy, end = self._busy() + SECONDS + (0 if self.cases else 60), time.monotonic() + ASLEEP
        self.cases += 1
        while self._busy() < busy and time.monotonic() < end:
            try:
                answer = self.answers.get(timeout=0.5)
                self.answered += 1
                return answer
            except Exception:
                if not self.process.is_alive():
                    if self.answered == 0:
                        raise RuntimeError("the process cannot start") from None
                    return self._lost(f"the process died with {self.process.exitcode}")
        self.process.kill()
        return self._lost(f"no answer within {SECONDS} s")

    def _busy(self):
        """Return the seconds of CPU time that the process has used."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _lost(self, why):
        self.process.join(5)
        self.start()
        what = self.folder / "model" / "what"
        return "FAIL", what.read_text() if what.exists() else "?", why, 0

    def stop(self):
        self.queue.put(None)
        self.process.join(5)
        self.process.kill()


class Count:
    """The cases that are done and their results, in a file from which a later run continues.

    Parameters
    ----------
    seed
        The seed of all cases.
    cases, seconds
        When to stop; None for no limit.
    state
        The file, or None.
    """

    def __init__(self, seed, cases, seconds, state):
        self.seed, self.cases, self.state, self.lock = seed, cases, state and Path(state), threading.Lock()
        self.end = None if seconds is None else time.monotonic() + seconds
        self.done, self.ahead, self.tally, self.failures, self.peak = 0, set(), {}, [], 0
        if self.state and self.state.exists():
            kept = json.loads(self.state.read_text())
            if kept["seed"] == seed:
                self.done, self.ahead, self.tally, self.peak = kept["done"], set(kept["ahead"]), kept["tally"], kept["peak"]
                self.failures = [tuple(f) for f in kept["failures"]]
        self.first, self.saved = self.done + len(self.ahead), time.monotonic()
        self.numbers = (k for k in itertools.count(self.done) if k not in self.ahead)

    def next(self):
        """Return the number of the next case, or None at the end."""
        with self.lock:
            k = next(self.numbers)
            over = (self.cases is not None and k >= self.cases) or (self.end is not None and time.monotonic() > self.end)
            return None if over else k

    def add(self, k, key, peak, failure=None):
        with self.lock:
            self.tally[key] = self.tally.get(key, 0) + 1
            self.peak = max(self.peak, peak)
            if failure:
                self.failures.append(failure)
            self.ahead.add(k)
            while self.done in self.ahead:
                self.ahead.remove(self.done)
                self.done += 1
            if self.state and time.monotonic() > self.saved + 5:
                self.save()

    def save(self):
        if self.state:
            self.saved = time.monotonic()
            kept = {k: getattr(self, k) for k in ("seed", "done", "tally", "failures", "peak")} | {"ahead": sorted(self.ahead)}
            beside = self.state.with_suffix(".new")
            beside.write_text(json.dumps(kept))
            beside.replace(self.state)


def fuzz(module, folder, seed, *, seconds=None, cases=None, names=None, keep=None, log=None, jobs=1, state=None):
    """Run cases until the time or the number is reached; return their count, with its ``tally`` and ``failures``."""
    fuzzer = importlib.import_module(module)
    names, count = names or fuzzer.sources(), Count(seed, cases, seconds, state)

    def work(number):
        worker = Worker(module, Path(folder) / str(number))
        try:
            while (k := count.next()) is not None:
                status, what, text, peak = worker(seed, k, names)
                if status == "ok":
                    count.add(k, text, peak)
                    continue
                count.add(k, "FAIL", peak, (k, what, text))
                if log:
                    log(f"case {k} {what}: {text}")
                path = worker.folder / "model" / f"case{fuzzer.SUFFIX}"
                if keep and path.exists():
                    shutil.copy(path, Path(keep) / f"{seed}_{k}{fuzzer.SUFFIX}")
        finally:
            worker.stop()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    count.save()
    return count


def main(module, description):
    """Run a fuzzer from the command line."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--seconds", type=float, help="stop after this time (default: 60 if --cases is not given)")
    parser.add_argument("--cases", type=int, help="stop after this many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--keep", help="folder for failing files")
    parser.add_argument("--state", help="file from which a restarted run continues")
    parser.add_argument("--only", default="", help="only sources whose names contain this")
    a = parser.parse_args()
    if a.keep:
        Path(a.keep).mkdir(parents=True, exist_ok=True)
    seconds = 60 if a.seconds is None and a.cases is None else a.seconds
    names, start = [n for n in importlib.import_module(module).sources() if a.only in n], time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        options = {"seconds": seconds, "cases": a.cases, "names": names, "keep": a.keep, "jobs": a.jobs, "state": a.state}
        count = fuzz(module, folder, a.seed, log=lambda text: print(text, flush=True), **options)
    for key, number in sorted(count.tally.items()):
        print(f"{number:6d} {key}")
    total, new = sum(count.tally.values()), sum(count.tally.values()) - count.first
    rate = new / (time.monotonic() - start)
    print(f"{module}: {total} cases, {len(count.failures)} failures, {rate:.1f} cases/s, at most {count.peak / 1024:.0f} MiB")
    return 1 if count.failures else 0
