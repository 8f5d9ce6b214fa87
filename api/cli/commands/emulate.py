"""``snnc emulate``: build a Poplar program and run it on the emulator."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand

from snnc.cli.common import refuse_without_effect
from snnc.cli.console import note, result, working
from snnc.errors import CommandLineError, OptionConflictError

IPUS = ("ipu1", "ipu2", "ipu21", "none")
RUN_OPTIONS = ("ipu", "check_bounds", "check_undefined", "check_workers", "lenient_memory", "profile")
"""Parameters that only affect a run of the program."""
PROGRAM_ARGUMENTS = "snnc.emulate.arguments"
"""Key in the command's context for the arguments after ``--``, which are those of the emulated program."""


class WithProgramArguments(TyperCommand):
    """A command that passes everything after ``--`` to the emulated program."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments before ``--`` and store the rest."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[PROGRAM_ARGUMENTS] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


def emulate(
    ctx: typer.Context,
    sources: list[Path] | None = typer.Argument(None, help="The host program, then codelets and further host code.", metavar="FILE…"),
    include: list[Path] | None = typer.Option(None, "-I", "--include", help="A folder for #include; may be repeated."),
    define: list[str] | None = typer.Option(None, "-D", "--define", help="A macro, NAME or NAME=VALUE; may be repeated."),
    flag: list[str] | None = typer.Option(None, "--flag", help="A flag for the C++ compiler, such as --flag=-lm; may be repeated."),
    ipu: str = typer.Option("ipu2", "--ipu", help="The emulated hardware: ipu1, ipu2, ipu21 or none."),
    sanitize: str = typer.Option("", "--sanitize", help="Compiler sanitizers: address, undefined, …"),
    check_bounds: bool = typer.Option(False, "--check-bounds", help="Stop with an error if a vertex writes outside a field."),
    check_undefined: bool = typer.Option(
        False, "--check-undefined", help="Stop with an error if a vertex reads elements undefined since WriteUndef."
    ),
    check_workers: bool = typer.Option(
        False,
        "--check-workers",
        help="Stop with an error if two workers of a MultiVertex change the same 32-bit word or depend on each other.",
    ),
    lenient_memory: bool = typer.Option(False, "--lenient-memory", help="Only warn if a tile's memory overflows."),
    profile: Path | None = typer.Option(None, "--profile", help="JSON file for the profile of the run."),
    output: Path | None = typer.Option(None, "-o", "--output", help="Copy the built program to this file and do not run it."),
    prefix: bool = typer.Option(False, "--prefix", help="Print the install prefix for CMake and Makefiles, and exit."),
) -> None:
    """Build a Poplar program against the emulator and run it; its output and exit code are passed on.

    Builds are cached by content. Codelets are searched for where the program expects them, then among FILE…, then next to the host
    program. The folder printed by --prefix contains headers, libraries and bin/popc; pass it to CMake as CMAKE_PREFIX_PATH for
    find_package(poplar).

    Example: snnc emulate host.cpp codelets.cpp -- 1000 --device model-ipu2
    """
    from snnc.backends.emulator.build import complete_prefix
    from snnc.backends.emulator.emulate import Checks, build_program, run_program
    from snnc.data.whole_files import check_output

    if prefix:
        refuse_without_effect(ctx, "--prefix", [str(p.name) for p in ctx.command.params if p.name != "prefix"])
        with working("building the emulator"):
            place = complete_prefix()
        result(str(place))
        return
    if not sources:
        raise CommandLineError("snnc emulate needs a host program: snnc emulate host.cpp [codelets.cpp …] [-- arguments]")
    if output is not None:
        refuse_without_effect(ctx, "-o, which copies the program and does not run it", RUN_OPTIONS)
        if ctx.meta.get(PROGRAM_ARGUMENTS):
            raise OptionConflictError("arguments after -- are for a run, and -o does not run the program; leave one of them out.")
    if ipu not in IPUS:
        raise CommandLineError(f"--ipu is {ipu!r}; it must be one of {', '.join(IPUS)}.")
    for written in (output, profile):
        check_output(written, *sources)
    with working("building"):
        program = build_program(sources, include=include or (), define=define or (), flags=flag or (), sanitize=sanitize)
    if output is not None:
        shutil.copy(program.path, output)
        note(f"wrote {output}")
        return
    checks = Checks(check_bounds, check_undefined, check_workers, lenient_memory, profile)
    raise typer.Exit(run_program(program, ctx.meta.get(PROGRAM_ARGUMENTS, ()), ipu=ipu, checks=checks))
