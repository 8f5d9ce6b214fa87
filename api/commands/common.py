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
SeedOption: TypeAlias = Annotated[int, typer.Option("--seed", help="Seed of whatever is random.", min=0)]
