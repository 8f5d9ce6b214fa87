"""The target ``cpu``: the CPU of this machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snnc.backends.backend import Backend, BuiltProject, PlacedProgram, SequenceOptions

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.plan import Precision
    from snnc.compiler.ir.step_program import StepProgram
    from snnc.compiler.lowering.half_numbers import HalfOption
    from snnc.compiler.lowering.halves import Halves


@dataclass(frozen=True, eq=False)
class CpuOptions(SequenceOptions):
    """Options of the CPU backend."""

    memory: int | None = None
    threads: int | None = None
    precision: Precision = field(default="float32", metadata={"values": {"bfloat16": "yes", "float16": "with a loss"}})
    half: HalfOption | None = None


class CpuBackend(Backend[CpuOptions]):
    """Emits, builds and loads a C++ program."""

    def halves(self, options: CpuOptions) -> Halves:
        """Return the requested float16 weights and states. Histories are not included: the program rounds them when it stores them."""
        from snnc.compiler.lowering.halves import halves_of

        return halves_of("float32", options.half, trains=options.loss is not None).only("weights", "states")

    def rounds_products(self, options: CpuOptions) -> bool:
        return options.precision == "bfloat16"

    def check(self, program: StepProgram, options: CpuOptions) -> None:
        from snnc.compiler.errors import HalfTargetError

        if options.half is not None and options.half.deltas:
            raise HalfTargetError("half includes deltas, but programs for the CPU store deltas as float32; remove them from half.")

    def emit(self, placed: PlacedProgram, options: CpuOptions, folder: Path) -> None:
        from snnc.backends.cpu.emit import emit_cpu
        from snnc.backends.native.memory import check_bound
        from snnc.compiler.lowering.halves import halves_of

        precision = options.precision if options.half is None or options.half.history else "float32"
        halves = None if options.half is None else halves_of(precision, options.half, trains=options.loss is not None)
        emit_cpu(placed.program, folder, options.steps, options.batch, precision, halves)
        check_bound(folder, options.batch, options.memory)

    def build(self, folder: Path, options: CpuOptions) -> BuiltProject:
        from snnc.backends.cpu.build import build_cpu

        return BuiltProject(folder, build_cpu(folder))

    def open(self, placed: PlacedProgram, options: CpuOptions, built: BuiltProject | None) -> Engine:
        from snnc.backends.cpu.engine import CpuEngine
        from snnc.backends.training.updates.masks import masks_of

        assert built is not None, "this backend emits a program"
        engine = CpuEngine(built.library, built.folder, options.threads, options.memory)
        engine.drop_by(masks_of(placed.program))
        return engine

    def threads(self, options: CpuOptions) -> int:
        from snnc.backends.cpu.engine import threads_of

        return threads_of(options.threads)


CPU: Final = CpuBackend(
    "cpu", "this processor: an emitted C++ program, the fastest way to train here; needs a C++ compiler", CpuOptions, native=True
)
