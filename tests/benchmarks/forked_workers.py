"""Benchmark workers as forks of the test process: new processes import it for half a second each."""

from __future__ import annotations

import gc
import os
import signal
import sys
import traceback
from types import SimpleNamespace

import bench_stub  # noqa: F401  # imported once, before the forks
import pytest

from snnc.benchmarks.cpu import process, worker


class ForkedWorker:
    """What :class:`snnc.benchmarks.cpu.process.Process` needs of a ``subprocess.Popen``, for a command that starts a worker."""

    def __init__(self, command, env, stdin, stdout, stderr):
        assert command[2] == worker.__name__
        requests, answers = os.pipe(), os.pipe()
        self.returncode = None
        self.pid = os.fork()
        if not self.pid:
            _become_worker(command[3:], env, requests, answers, stderr)
        os.close(requests[0])
        os.close(answers[1])
        self.stdin, self.stdout = os.fdopen(requests[1], "wb"), os.fdopen(answers[0], "rb")

    def poll(self):
        return self._waited(os.WNOHANG)

    def wait(self):
        return self._waited(0)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def _waited(self, options):
        if self.returncode is None and (waited := os.waitpid(self.pid, options))[0]:
            self.returncode = os.waitstatus_to_exitcode(waited[1])
        return self.returncode


def _become_worker(arguments, env, requests, answers, stderr):
    """Serve requests as the process of ``python -m snnc.benchmarks.cpu.worker`` does, and end."""
    code = 1
    gc.freeze()  # a collection would copy all pages of the test process
    try:
        for source, target in ((requests[0], 0), (answers[1], 1), (stderr.fileno(), 2)):
            os.dup2(source, target)
        os.closerange(3, 65536)
        os.environ.clear()
        os.environ.update(env)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115  # they live as long as the process
        module, mode, variant, threads, device = arguments
        worker._serve(module, mode, variant, int(threads), device)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


@pytest.fixture(name="forked")
def workers_are_forks(monkeypatch):
    """Workers are forks of this process, and their turns are short."""
    monkeypatch.setattr(process, "TURN_MS", 10.0)
    monkeypatch.setattr(process, "subprocess", SimpleNamespace(PIPE=-1, Popen=ForkedWorker))
