"""``snnc verify``: compare a model in snnc and in another implementation, layer by layer and step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from snnc.cli.common import DialectOption, DtOption, JsonOption, ModelArgument, TrustOption, names_of_targets, permitted
from snnc.cli.console import show, working

DISAGREE: Final = 1
"""Exit code if the two implementations differ."""


def verify(
    model: ModelArgument,
    inputs: Annotated[Path | None, typer.Option("--inputs", help="An npz archive with an array for each input; random otherwise.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", help="Number of samples of random input (default 4).", min=1)] = None,
    steps: Annotated[int | None, typer.Option("--steps", help="Number of time steps of random input (default 20).", min=1)] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            help="cpu, cuda, reference, or a machine listed by snnc targets; default: the project's own target, else reference.",
            autocompletion=names_of_targets,
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance", help="Largest allowed difference of values, relative to the larger of 1 and the largest value of the layer."
        ),
    ] = 1e-4,
    per_step: Annotated[bool, typer.Option("--per-step", help="Show all layers step by step, not only layers with differences.")] = False,
    dt: DtOption = None,
    dialect: DialectOption = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Seed for random input (default 0).", min=0)] = None,
    trust: TrustOption = False,
    as_json: JsonOption = False,
) -> None:
    """Run a model in snnc and in another implementation, and compare every layer at every step: spikes exactly, values within a tolerance.

    The other implementation is ONNX Runtime for ONNX files and compiled projects, and a plain interpreter of the format for NIR files.
    Random input is binary in every second sample and normally distributed in the others. A file that describes one time step runs step
    by step, with its states fed back; they start at zero unless the archive contains them. The exit code is 0 if both agree, and 1 if
    anything differs.

    Example: snnc verify model.onnx --samples 8
    """
    from snnc.checks.verifying import verify as compare

    trust = permitted(model, trust, target)
    with working("running"):
        found = compare(
            model,
            inputs=inputs,
            samples=samples,
            steps=steps,
            target=target,
            tolerance=tolerance,
            seed=seed,
            dt=dt,
            dialect=dialect,
            trust=trust,
        )
    show(as_json, found.data, lambda: found.lines(per_step))
    if not found.agree:
        raise typer.Exit(DISAGREE)
