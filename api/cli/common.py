"""Options shared by several commands, and their checks."""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from snnc.cli.console import note

ModelArgument: TypeAlias = Annotated[Path, typer.Argument(help="An ONNX or NIR file, or a folder from snnc compile.", metavar="MODEL")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else on stdout.")]
DtOption: TypeAlias = Annotated[float | None, typer.Option("--dt", help="Time step in seconds, for models in continuous time (NIR files).")]
DialectOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--dialect",
        help="Framework whose conventions apply to a NIR file: nir (the format's own, default), snntorch, norse, spikingjelly or spyx.",
    ),
]
DetachOption: TypeAlias = Annotated[
    str | None,
    typer.Option("--detach", help="Rule for where gradients stop inside neurons, for model files: reset (default), none or all."),
]
ConvertOption: TypeAlias = Annotated[
    bool, typer.Option("--ann2snn", help="Convert a ReLU network to integrate-and-fire neurons; requires --calibration.")
]
CalibrationOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--calibration", help="With --ann2snn: an npz archive of samples, x [samples, …]; with labels y, accuracy is measured."),
]
PercentileOption: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--percentile", help="With --ann2snn: percentile of a layer's positive activations that becomes its threshold (default 99.9)."
    ),
]
ConvertedStepsOption: TypeAlias = Annotated[
    int | None, typer.Option("--steps", help="With --ann2snn: number of time steps of the spiking network (default 64).")
]
InputKindOption: TypeAlias = Annotated[str | None, typer.Option("--input-kind", help="Kind of the inputs: spikes (0 or 1) or values.")]
TrustOption: TypeAlias = Annotated[
    bool, typer.Option("--trust", help="Compile and execute the C++ of a project compiled or changed by somebody else.")
]
RecordOption: TypeAlias = Annotated[
    int | None, typer.Option("--record", help="Store the spikes of this many samples in the project, for snnc inspect.", min=1)
]


def names_of_targets(incomplete: str) -> list[str]:
    """Return the targets whose names begin with the typed text, for shell completion."""
    from snnc.backends.registry import named
    from snnc.compiler.machines import target_names

    return [name for name in (*(backend.name for backend in named()), *target_names()) if name.startswith(incomplete)]


def refuse_without_effect(context: typer.Context, option: str, ineffective: Collection[str]) -> None:
    """Raise OptionConflictError if the user gave a parameter in `ineffective`; the message says that it has no effect with `option`."""
    from snnc.errors import OptionConflictError

    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in ineffective and source is not None and source.name == "COMMANDLINE":
            shown = parameter.opts[0] if parameter.param_type_name == "option" else str(parameter.name).upper()
            raise OptionConflictError(f"{shown} has no effect with {option}; leave one of them out.")


def check_seed(seed: int | None, model: Path, target: str | None) -> None:
    """Raise OptionTargetError if a seed is given, but nothing is placed: the target has no tiles, or a project runs on its own target."""
    if seed is None:
        return
    from snnc.backends.registry import DEFAULT, backend_of
    from snnc.driver.loading import is_project, load_options
    from snnc.errors import OptionTargetError

    project_target = load_options(model).target if is_project(model) else DEFAULT
    if (is_project(model) and target in (None, project_target)) or not backend_of(target or DEFAULT).has_tiles:
        raise OptionTargetError(
            f"seed = {seed} (--seed) only affects the placement on the tiles of a machine, and this run places nothing; leave it out."
        )


def permitted(model: Path, trust: bool, target: str | None = None) -> bool:
    """Return `trust`, or True if the user, asked at a terminal, allows a project that somebody else compiled to be executed."""
    from snnc.driver.loading import is_project, load_options
    from snnc.driver.trusting import check_trusted
    from snnc.errors import CommandLineError, UntrustedProjectError

    if not is_project(model):
        if trust:
            raise CommandLineError(f"--trust is for compiled projects, but {str(model)!r} is not one; leave it out.")
        return False
    options = load_options(model)
    if not options.backend.emits or target not in (None, options.target):
        return trust
    try:
        check_trusted(model, trust)
    except UntrustedProjectError as error:
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise
        note(f"{error.text}")
        if not typer.confirm("Compile and execute it?", default=False, err=True):
            raise
        return True
    return trust


def check_recordable(record: int | None, model: Path, target: str | None) -> None:
    """Raise RecordingError if spikes are to be recorded, but the model is not a project or is compiled again for a different target."""
    if record is None:
        return
    from snnc.driver.loading import is_project, load_options
    from snnc.errors import RecordingError

    if not is_project(model):
        raise RecordingError(
            f"--record stores spikes in a project's folder, but {str(model)!r} is not a project; "
            f"compile it first: snnc compile {model} -o DIR"
        )
    project_target = load_options(model).target
    if target not in (None, project_target):
        raise RecordingError(
            f"--record stores spikes in a project's folder, and this project is for {project_target!r}; leave out --target {target}."
        )
