"""The command ``snnc``: runs a subcommand and prints each error as one line with its code."""

from __future__ import annotations

import errno
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Final

import typer

import snnc
from snnc.cli.commands.bench import bench
from snnc.cli.commands.check import check
from snnc.cli.commands.clean import clean
from snnc.cli.commands.compile import compile_
from snnc.cli.commands.convert import convert
from snnc.cli.commands.doctor import doctor
from snnc.cli.commands.emulate import WithProgramArguments, emulate
from snnc.cli.commands.explore import explore
from snnc.cli.commands.inspect import inspect
from snnc.cli.commands.reproduce import reproduce
from snnc.cli.commands.run import run
from snnc.cli.commands.targets import targets
from snnc.cli.commands.train import train
from snnc.cli.commands.verify import verify
from snnc.cli.console import fail, result_json, warn
from snnc.compiler.errors import SnncError
from snnc.errors import CommandLineError, InternalError, MemoryShortError, OutputFileError

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as in shells."""

_SURROUNDINGS: Final = frozenset(
    {errno.ENAMETOOLONG, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EROFS}  # a path
    | {errno.ENOSPC, errno.EDQUOT, errno.EMFILE}  # an exhausted resource
)
"""Error numbers caused by a path or an exhausted resource, not by a fault in snnc."""

_CLICK: Final[type[Exception]] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")
"""Base class of click's errors, for which typer has no public name."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit. SIGTERM and SIGHUP raise an exception, so that cleanup code runs before the process ends."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _end)
    raise SystemExit(run_command(sys.argv[1:] if arguments is None else arguments))


def run_command(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_, **__: warn(str(message))
        warnings.simplefilter("default" if "SNNC_DEBUG" in os.environ else "ignore")
        warnings.filterwarnings("always", category=UserWarning, module=r"snnc(\.|$)")
        try:
            code = _command_line()(arguments, prog_name="snnc", standalone_mode=False)
            sys.stdout.flush()
        except (KeyboardInterrupt, typer.Abort):
            fail("interrupted.")
            return INTERRUPTED
        except _Ended as ended:
            fail(f"ended by {signal.Signals(ended.number).name}.")
            return 128 + ended.number
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 0
        except Exception as error:
            return _report(error, as_json="--json" in arguments)
    if code == INTERRUPTED:
        fail("interrupted.")
    return code if isinstance(code, int) else 0


@cache
def _command_line() -> Callable[..., object]:
    """Return the command tree, built only once per process because reading it from annotations takes time."""
    return typer.main.get_command(make_app())


class _Ended(BaseException):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def _end(number: int, frame: FrameType | None) -> None:
    raise _Ended(number)


def make_app() -> typer.Typer:
    """Return the typer application with all commands."""
    app = typer.Typer(
        help="snnc compiles spiking neural networks for machines made of many small processors with local memory.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    commands: list[Callable[..., None]] = [
        compile_, run, train, check, verify, convert, inspect, explore, bench, reproduce, targets, doctor, clean,
    ]  # fmt: skip
    for command in commands:
        app.command(command.__name__.removesuffix("_"))(command)
    app.command("emulate", cls=WithProgramArguments)(emulate)
    app.callback(invoke_without_command=True)(_version)
    return app


def _version(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    """Compile spiking neural networks for machines made of many small processors with local memory."""
    if version:
        print(f"snnc {snnc.__version__}")
        raise typer.Exit


def _report(error: Exception, *, as_json: bool) -> int:
    if os.environ.get("SNNC_DEBUG") == "1":
        traceback.print_exception(error)
    known = _as_snnc_error(error)
    fail(str(known))
    if as_json and known.data:
        result_json({"error": {"code": known.code, "text": known.text, **known.data}})
    return known.exit_code


def _as_snnc_error(error: Exception) -> SnncError:
    if isinstance(error, SnncError):
        return error
    if isinstance(error, _CLICK):
        text = str(error.format_message() if hasattr(error, "format_message") else error).strip() or "No command."
        return CommandLineError(f"{text[:1].lower()}{text[1:].rstrip('.')}; see snnc --help.")
    if isinstance(error, MemoryError):
        return MemoryShortError("this machine has too little memory; use a smaller batch or fewer steps.")
    if isinstance(error, OSError) and error.filename is None and error.errno is not None:
        return OutputFileError(f"the output cannot be written: {(error.strerror or str(error)).lower()}.")
    if isinstance(error, OSError) and error.errno in _SURROUNDINGS:
        return OutputFileError(f"{str(error.filename)[:200]!r} cannot be used: {(error.strerror or str(error)).lower()}.")
    text = " ".join(str(error).split())[:200]
    return InternalError(f"internal error in snnc itself ({type(error).__name__}: {text}); please report it. SNNC_DEBUG=1 shows more.")
