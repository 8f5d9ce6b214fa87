"""Options that several commands share, and what they do with them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

ModelArgument: TypeAlias = Annotated[Path, typer.Argument(help="An .onnx file, or a folder that snnc compile wrote.", metavar="MODEL")]
ProjectArgument: TypeAlias = Annotated[Path, typer.Argument(help="A folder that snnc compile wrote.", metavar="DIR")]
JsonOption: TypeAlias = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else on stdout.")]
DtOption: TypeAlias = Annotated[float | None, typer.Option("--dt", help="Seconds a time step, for models in continuous time.")]
DialectOption: TypeAlias = Annotated[str | None, typer.Option("--dialect", help="Whose reading of a NIR file to follow.")]
ConvertOption: TypeAlias = Annotated[
    bool, typer.Option("--ann2snn", help="Convert a ReLU network to integrate-and-fire neurons; needs --calibration.")
]
CalibrationOption: TypeAlias = Annotated[
    Path | None,
    typer.Option("--calibration", help="With --ann2snn: an npz archive of samples, x [samples, …]; with y, accuracy is measured."),
]
PercentileOption: TypeAlias = Annotated[
    float | None, typer.Option("--percentile", help="With --ann2snn: percentile of activations that becomes a threshold (default 99.9).")
]
ConvertedStepsOption: TypeAlias = Annotated[
    int | None, typer.Option("--steps", help="With --ann2snn: time steps of the spiking network (default 64).")
]
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", help="Seed of whatever is random.", min=0)]
