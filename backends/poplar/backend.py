"""Targets that are machines with tiles, such as ``gc200``; TOML files can describe further machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from snnc.backends.backend import TRAINING, Backend, BuiltProject, PlacedProgram, TargetOptions

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.graph import Graph
    from snnc.compiler.ir.plan import Mode, Precision, Recompute, Streaming
    from snnc.compiler.ir.step_program import StepProgram
    from snnc.compiler.lowering.capacities import Capacities
    from snnc.compiler.lowering.half_numbers import HalfOption
    from snnc.compiler.lowering.spike_limits import DropPolicy, SpikeLimit
    from snnc.compiler.tiles.activity import Activity
    from snnc.compiler.tiles.planning.options import PlanOptions
    from snnc.compiler.tiles.planning.ordering import Common

FILLED: Final = 0.5
"""Density at which a sparse weight, with 8 bytes per entry, needs as much memory as a dense one, with 4 bytes per element."""


@dataclass(frozen=True, eq=False)
class TileOptions(TargetOptions):
    """Options of every plan on tiles."""

    capacity: int | Capacities | None = None
    mode: Mode = "exact"
    calibrate: Activity | None = None
    """Activity of the neurons, measured on the user's data or assumed; None: unknown."""
    recompute: Recompute = field(default="auto", metadata=TRAINING)
    precision: Precision = field(default="float32", metadata={"values": {"float16": "yes"}})
    half: HalfOption | None = None
    strategy: str = "snnc"
    """``"snnc"``, or a baseline for comparison in estimates."""
    other_targets: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Synonyms of each target that is not a machine, by its name, for the message about an unknown target."""
    common: Common | None = None
    """Intermediate results that several plans of one program share; None: one plan."""

    def for_plan(self) -> PlanOptions:
        from snnc.compiler.tiles.planning.options import PlanOptions

        names = {f.name for f in fields(PlanOptions)}
        return PlanOptions(**{f.name: getattr(self, f.name) for f in fields(self) if f.name in names})


@dataclass(frozen=True, eq=False)
class PoplarOptions(TileOptions):
    """Options of the Poplar backend."""

    seed: int = 0
    drop: DropPolicy = "lowest"
    parts: int | None = None
    streaming: Streaming = field(default="auto", metadata=TRAINING)
    embedded: bool = False
    """Whether populations stay undivided and in the author's order, because another program calls this one. Not a user option."""


SomeTileOptions = TypeVar("SomeTileOptions", bound=TileOptions)


class TileBackend(Backend[SomeTileOptions]):
    """Base class of backends that plan on the tiles of a machine."""

    def machine(self, target: str) -> str:
        """Return the name or file of the machine of a target."""
        return target

    def prepare(self, graph: Graph, options: SomeTileOptions) -> Graph:
        """Make sparse weights dense where this reduces the memory on tiles, except for training in mode "drop".

        There, results would change: with a gradient window, only dense connections return no gradient to dropped spikes (decision 33).
        """
        from snnc.compiler.passes.fill_sparse import fill_sparse

        if options.mode == "drop" and options.loss is not None:
            return graph
        return fill_sparse(graph, trains=options.loss is not None, least=FILLED)

    def check(self, program: StepProgram, options: SomeTileOptions) -> None:
        from snnc.compiler.errors import StepsNeededError
        from snnc.compiler.machines import load_target

        load_target(self.machine(options.target), options.other_targets)
        if program.steps is None:
            raise StepsNeededError(
                f"{program.name!r} accepts any number of steps, but {options.target} needs a fixed number; give steps (--steps 100)."
            )

    def plan(self, graph: Graph, program: StepProgram, options: SomeTileOptions) -> PlacedProgram:
        from snnc.compiler.lowering.spike_limits import without_limits
        from snnc.compiler.machines import load_target
        from snnc.compiler.tiles.planning.placing import map_graph

        mapped = map_graph(
            graph,
            without_limits(program),
            options.for_plan(),
            options.calibrate,
            machine=load_target(self.machine(options.target)),
            strategy=options.strategy,
            common=options.common,
        )
        return PlacedProgram(program, mapped.plan, mapped.parts)


class PoplarBackend(TileBackend[PoplarOptions]):
    """Emits, builds and loads a Poplar program, which runs on the emulator if the machine has no IPU."""

    def runs(self, target: str) -> bool:
        """Return True: any name that no other backend recognises is the name of a machine or the path of its TOML file."""
        return True

    def limit(self, options: PoplarOptions) -> SpikeLimit | None:
        from snnc.compiler.lowering.spike_limits import limit_of

        return limit_of(options.mode, options.capacity, options.drop, options.seed)

    def emit(self, placed: PlacedProgram, options: PoplarOptions, folder: Path) -> None:
        from snnc.backends.poplar.emit import emit_poplar

        assert placed.plan is not None, "machines always have a plan"
        emit_poplar(placed.placed, placed.plan, folder)

    def build(self, folder: Path, options: PoplarOptions) -> BuiltProject:
        from snnc.backends.poplar.build import build_poplar

        return BuiltProject(folder, build_poplar(folder))

    def open(self, placed: PlacedProgram, options: PoplarOptions, built: BuiltProject | None) -> Engine:
        """Load the program; the engine's arrays have the author's order, even if the plan divides or reorders populations."""
        from snnc.backends.poplar.engine import PoplarEngine
        from snnc.backends.runtime.engine_of_parts import EngineOfParts
        from snnc.backends.training.updates.masks import masks_of
        from snnc.compiler.lowering.spike_limits import limits_of

        assert built is not None, "this backend emits a program"
        engine = PoplarEngine(built.library, built.folder, limits_of(placed.program))
        masks = masks_of(placed.program)
        if placed.parts is None:
            engine.drop_by(masks)
            return engine
        correspondence, of_parts = placed.parts.correspondence, EngineOfParts(engine, placed.parts.correspondence)
        if masks.layers:
            engine.draw_masks = lambda *of: correspondence.initial_of_parts(masks.of(of_parts.get_parameters().__getitem__, *of))
        return of_parts


POPLAR: Final = PoplarBackend("machine", "", PoplarOptions, "machines (gc200, pod4, …)", has_tiles=True, adjoint=True)
