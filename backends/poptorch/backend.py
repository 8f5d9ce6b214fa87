"""The target ``poptorch``: a Python package for PopTorch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snnc.backends.backend import TRAINING, BuiltProject, PlacedProgram
from snnc.backends.poplar.backend import TileBackend, TileOptions

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.graph import Graph
    from snnc.compiler.ir.plan import Precision
    from snnc.compiler.ir.step_program import StepProgram
    from snnc.compiler.lowering.spike_limits import DropPolicy, SpikeLimit
    from snnc.compiler.tiles.planning.options import PlanOptions

_UNSUPPORTED: Final = ("nesterov", "clip_value", "clip_norm", "loss_scale", "l1", "bound")
"""Optimiser settings that PopTorch does not support."""
DEFAULT_MACHINE: Final = "gc200"
"""Machine of the target ``poptorch``; ``poptorch:MACHINE`` names a different one."""


@dataclass(frozen=True, eq=False)
class PopTorchOptions(TileOptions):
    """Options of a package for PopTorch. PopART, the runtime that PopTorch uses, stores the weights as float32."""

    precision: Precision = field(default="float32", metadata={"values": {"float16": "with a loss"}})
    input_gradients: bool = field(default=False, metadata=TRAINING)
    drop: DropPolicy = "lowest"

    def for_plan(self) -> PlanOptions:
        """Return the options of a plan that is embedded in another program."""
        return replace(super().for_plan(), embedded=True, operation=True)


class PopTorchBackend(TileBackend[PopTorchOptions]):
    """Emits a custom operation and the package around it; a session runs the forward pass of the operation on the emulator."""

    def runs(self, target: str) -> bool:
        return target.partition(":")[0] == self.name

    def machine(self, target: str) -> str:
        return target.partition(":")[2] or DEFAULT_MACHINE

    def limit(self, options: PopTorchOptions) -> SpikeLimit | None:
        """Return the limit on sent spikes, which a run may lower; None in mode "exact" and without a capacity.

        With ``drop="random"``, train.py sets the seed of the choice.
        """
        from snnc.compiler.lowering.spike_limits import SpikeLimit

        return None if options.mode != "drop" or options.capacity is None else SpikeLimit(options.capacity, options.drop)

    def prepare(self, graph: Graph, options: PopTorchOptions) -> Graph:
        """Make sparse weights dense as the base class does, and insert a relay population after each input whose gradient is returned."""
        from snnc.backends.native.adjoint import with_input_gradients

        ready = super().prepare(graph, options)
        return with_input_gradients(ready)[0] if options.input_gradients and options.loss is not None else ready

    def check(self, program: StepProgram, options: PopTorchOptions) -> None:
        from snnc.backends.poptorch.errors import UnsupportedOnPopTorchError
        from snnc.backends.poptorch.statistics import check_packaged
        from snnc.compiler.errors import HalfTargetError

        if options.half is not None and options.half.weights is not None:
            raise HalfTargetError(
                "half includes weights, but PopART stores and updates the weights of a package as float32; remove weights from half, or "
                "compile for the machine itself."
            )
        optimizer = program.optimizer
        settings = () if optimizer is None else (optimizer, *optimizer.groups)
        refused = [name for name in _UNSUPPORTED if any(getattr(of, name, None) for of in settings)]
        if refused:
            raise UnsupportedOnPopTorchError(
                f"the package's train.py uses the optimisers of PopTorch, which have no {' and no '.join(refused)}; remove this from the "
                "optimiser, or compile for the machine itself."
            )
        if varying := [i.label for i in program.inputs if i.varies]:
            raise UnsupportedOnPopTorchError(
                f"the input {varying[0]!r} is the same at every step, but a random choice of its spikes differs from step to step; a "
                "package gets such an input only once. Give drop='lowest', or compile for the machine itself."
            )
        check_packaged(program, (options.steps or 0) * (options.batch or 0))
        super().check(program, options)

    def plan(self, graph: Graph, program: StepProgram, options: PopTorchOptions) -> PlacedProgram:
        """Map the program onto tiles; relay populations of inputs (`shown`) store the adjoints of their currents for the caller."""
        from snnc.backends.native.adjoint import input_relays

        if options.input_gradients:
            relays = set(input_relays(graph).values())
            shown = tuple(replace(p, shown=True) if p.label in relays else p for p in program.populations)
            program = replace(program, populations=shown)
        return super().plan(graph, program, options)

    def emit(self, placed: PlacedProgram, options: PopTorchOptions, folder: Path) -> None:
        from snnc.backends.poptorch.emit import emit_poptorch

        assert placed.plan is not None, "packages always have a plan"
        emit_poptorch(placed.program, placed.plan, folder)

    def build(self, folder: Path, options: PopTorchOptions) -> BuiltProject:
        from snnc.backends.poptorch.build import build_operation

        return BuiltProject(folder, build_operation(folder))

    def open(self, placed: PlacedProgram, options: PopTorchOptions, built: BuiltProject | None) -> Engine:
        from snnc.backends.poptorch.engine import PopTorchEngine

        assert placed.plan is not None, "packages always have a plan"
        assert built is not None, "this backend emits a package"
        return PopTorchEngine(placed.program, placed.plan, built.folder, built.library)

    def next_command(self, folder: Path, trains: bool) -> str:
        emulated = f"python -m snnc.emulated_poptorch {folder / 'train.py'}"
        return f"run make and python train.py there, with the Poplar SDK; on the emulator: {emulated}"


POPTORCH: Final = PopTorchBackend(
    "poptorch",
    "a Python package for PopTorch around a custom operation; poptorch:MACHINE places it on an IPU other than a gc200",
    PopTorchOptions,
    has_tiles=True,
    trains=False,
)
