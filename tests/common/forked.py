"""The command line in a process of its own, forked from that of the tests: it need not import again what they have imported."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from typing import TextIO

from snnc.cli.main import main

SECONDS = 60
"""Time after which a process hangs and is ended."""


class Forked:
    """A process that does `work`, with pipes of text as those of :class:`subprocess.Popen`.

    `work` must not use a library with threads of its own, such as the program of a CPU project. `stdout` is the number of a file that is
    written to instead of a pipe.
    """

    def __init__(self, work: Callable[[], object], stdout: int | None = None) -> None:
        pipes = [os.pipe() for _ in range(3)]
        theirs = [pipes[0][0], pipes[1][1] if stdout is None else stdout, pipes[2][1]]
        ours = [pipes[0][1], pipes[1][0], pipes[2][0]]
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        self.pid = os.fork()
        if self.pid == 0:
            _become(work, theirs, ours)
        for end in (pipes[0][0], pipes[1][1], pipes[2][1]):
            os.close(end)
        self.stdin, self.stdout, self.stderr = (open(end, "r" if number else "w") for number, end in enumerate(ours))  # noqa: SIM115
        self.returncode: int | None = None

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, text: str = "") -> tuple[str, str]:
        """Write `text`, wait for the end of the process, and return what it said on stdout and stderr (each less than a pipe holds)."""
        try:
            with self.stdin:
                self.stdin.write(text)
        except BrokenPipeError:
            pass
        with self.stdout, self.stderr:
            said = self.stdout.read(), self.stderr.read()
        self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return said


def command(*arguments: object, stdout: int | None = None, prepare: Callable[[], object] = lambda: None) -> Forked:
    """Start the command line, after `prepare` in its process."""

    def work() -> None:
        prepare()
        main([str(argument) for argument in arguments])

    return Forked(work, stdout)


def _become(work: Callable[[], object], ends: list[int], others: list[int]) -> None:
    """Do `work` and exit as an interpreter would; never returns to the tests."""
    code: object = 1
    try:
        for number, end in enumerate(ends):
            os.dup2(end, number)
        for end in others:
            os.close(end)
        streams: list[TextIO] = [open(number, "w" if number else "r", buffering=1 if number == 2 else -1) for number in range(3)]  # noqa: SIM115
        sys.stdin, sys.stdout, sys.stderr = streams
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.alarm(SECONDS)
        try:
            work()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        try:
            sys.stdout.flush()
        except OSError:
            code = 120
            raise
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code if isinstance(code, int) else 1)
