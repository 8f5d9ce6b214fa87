"""``snnc verify``: compare a model in snnc and in another implementation, layer by layer and step by step."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import typer

from snnc.cli.common import DialectOption, DtOption, JsonOption, ModelArgument, TrustOption, names_of_targets, permitted
from snnc.cli.console import show, working

DISAGREE: Final = 1
"""Exit code if the two implementations differ."""


def verify(
    model: ModelArgument,
    inputs: Path | None = typer.Option(None, "--inputs", help="An npz archive with an array for each input; random otherwise."),
    samples: int | None = typer.Option(None, "--samples", help="Number of samples of random input (default 4).", min=1),
    steps: int | None = typer.Option(None, "--steps", help="Number of time steps of random input (default 20).", min=1),
    target: str | None = typer.Option(
        None,
        "--target",
        help="cpu, cuda, reference, or a machine listed by snnc targets; default: the project's own target, else reference.",
        autocompletion=names_of_targets,
    ),
    tolerance: float = typer.Option(
        1e-4, "--tolerance", help="Largest allowed difference of values, relative to the larger of 1 and the largest value of the layer."
    ),
    per_step: bool = typer.Option(False, "--per-step", help="Show all layers step by step, not only layers with differences."),
    dt: DtOption = None,
    dialect: DialectOption = None,
    seed: int | None = typer.Option(None, "--seed", help="Seed for random input (default 0).", min=0),
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
        verification = compare(
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
    show(as_json, verification.data, lambda: verification.lines(per_step))
    if not verification.agree:
        raise typer.Exit(DISAGREE)
