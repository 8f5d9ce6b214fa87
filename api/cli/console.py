"""Output of the commands: results on stdout; notes, warnings and progress on stderr."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def result(text: str) -> None:
    """Print a line of the result."""
    print(text)


def result_now(text: str) -> None:
    """Print a line of the result immediately, and flush it to the file or pipe."""
    print(text, flush=True)


def result_json(data: Any) -> None:
    """Print the result as JSON."""
    print(json.dumps(data, indent=2, allow_nan=False))


def show(as_json: bool, data: Callable[[], Any], lines: Callable[[], Iterable[str]]) -> None:
    """Print a result as JSON, or as lines of text."""
    if as_json:
        result_json(data())
        return
    for line in lines():
        result(line)


def write_json(file: Path | None, data: Any) -> None:
    """Write the result as JSON to a file, or to stdout for ``-``; do nothing if `file` is None."""
    from snnc.data.whole_files import write_text

    if str(file) == "-":
        result_json(data)
    elif file is not None:
        write_text(file, json.dumps(data, indent=1, allow_nan=False) + "\n")


def columns() -> int | None:
    """Return the width of the terminal; None if stdout is not a terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def note(text: str) -> None:
    """Print a line on stderr that is not part of the result."""
    print(text, file=sys.stderr, flush=True)


def warn(text: str) -> None:
    """Print a warning."""
    note(f"warning: {text}")


def fail(text: str) -> None:
    """Print an error."""
    note(f"error: {text}")


@contextmanager
def working(what: str) -> Iterator[None]:
    """Show a spinner while the block runs, then its time if it took more than 2 s; do nothing if stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    start = time.monotonic()
    with Console(stderr=True).status(what):
        yield
    if time.monotonic() - start > 2:
        note(f"{what}: {time.monotonic() - start:.1f} s")


@contextmanager
def progress(what: str, total: int) -> Iterator[Callable[[float, str], None]]:
    """Yield a function that shows how much of `total` is done, and a text, in a progress bar: only on a terminal, and after two seconds."""
    start = time.monotonic()
    bar: Any = None
    task: Any = None

    def update(done: float, text: str) -> None:
        nonlocal bar, task
        if bar is None:
            if not sys.stderr.isatty() or time.monotonic() - start < 2:
                return
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            # Redirect only results that go to this terminal; they are printed above the bar.
            bar = Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=sys.stdout.isatty())
            task = bar.add_task(what, total=total)
            bar.start()
        bar.update(task, completed=done, description=f"{what} {text}".strip())

    try:
        yield update
    finally:
        if bar is not None:
            bar.stop()
