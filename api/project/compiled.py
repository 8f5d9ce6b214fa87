"""Result of compilation, passed between the stages of the driver."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.backends.backend import PlacedProgram
from snnc.compiler.ir.graph import Graph
from snnc.options.compile_options import CompileOptions


@dataclass(frozen=True, eq=False, kw_only=True)
class Compiled(PlacedProgram):
    """A step program and its mapping onto tiles, with the graph that it comes from and the options."""

    graph: Graph
    options: CompileOptions
