"""Result of compilation, passed between the stages of the driver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from snnc.backends.backend import PlacedProgram
from snnc.compiler.ir.graph import Graph
from snnc.compiler.ir.plan import Plan
from snnc.compiler.ir.step_program import StepProgram
from snnc.options.compile_options import CompileOptions

if TYPE_CHECKING:
    from snnc.compiler.tiles.planning.ordering import ChannelOrders
    from snnc.compiler.tiles.planning.parting import Parts


@dataclass(frozen=True, eq=False)
class Compiled:
    """A graph with its options, its program and its plan; the plan is None if the target has no tiles."""

    graph: Graph
    options: CompileOptions
    program: StepProgram
    plan: Plan | None
    parts: Parts | ChannelOrders | None = None
    """The rewritten program that the plan places, with populations in parts or channels reordered; None for the original program."""

    @property
    def placed(self) -> StepProgram:
        """The program that the plan maps."""
        return self.on_target.placed

    @property
    def on_target(self) -> PlacedProgram:
        """Input of the target's backend: program, plan and parts."""
        return PlacedProgram(self.program, self.plan, self.parts)
