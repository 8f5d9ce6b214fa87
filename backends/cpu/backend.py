"""The processor of this machine as a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from snnc.backends.backend import TRAINING, Backend, BuiltProject, PlacedProgram, SequenceOptions

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.plan import Precision
    from snnc.compiler.ir.step_program import StepProgram
    from snnc.compiler.lowering.half_numbers import HalfNumbers
    from snnc.compiler.lowering.halves import Half


@dataclass(frozen=True, eq=False)
class CpuOptions(SequenceOptions):
    """Options of the processor."""

    memory: int | None = None
    threads: int | None = None
    precision: Precision = field(default="float32", metadata={"values": {"bfloat16": "yes", "float16": "with a loss"}})
    half: HalfNumbers | None = field(default=None, metadata=TRAINING)


class CpuBackend(Backend[CpuOptions]):
    """Emits a C++ program and loads it."""

    def halves(self, options: CpuOptions) -> tuple[Half, ...]:
        """Return the weights, if they are float16: the program itself rounds the past when it stores it."""
        return ("weights",) if options.half is not None and options.half.weights is not None else ()

    def check(self, program: StepProgram, options: CpuOptions) -> None:
        """Refuse deltas as float16.

        Raises
        ------
        HalfTargetError
            Deltas are requested as float16.
        """
        del program
        from snnc.compiler.errors import HalfTargetError

        if options.half is not None and options.half.deltas:
            raise HalfTargetError("half has deltas, but a program for the CPU multiplies float32 deltas; leave them out.")

    def emit(self, placed: PlacedProgram, options: CpuOptions, folder: Path) -> None:
        """Write the program, its tables and weights; refuse a bound on memory that it cannot meet."""
        from snnc.backends.cpu.emit import emit_cpu
        from snnc.backends.native.memory import check_bound

        precision = options.precision if options.half is None or options.half.pasts else "float32"
        emit_cpu(placed.program, folder, options.steps, options.batch, precision)
        check_bound(folder, options.batch, options.memory)

    def build(self, folder: Path, options: CpuOptions) -> BuiltProject:
        """Compile the program."""
        del options
        from snnc.backends.cpu.build import build_cpu

        return BuiltProject(folder, build_cpu(folder))

    def open(self, placed: PlacedProgram, options: CpuOptions, built: BuiltProject | None) -> Engine:
        """Load the program."""
        from snnc.backends.cpu.engine import CpuEngine
        from snnc.backends.training.updates.masks import masks_of

        assert built is not None, "a program is emitted"
        engine = CpuEngine(built.library, built.folder, options.threads, options.memory)
        engine.drop_by(masks_of(placed.program))
        return engine

    def threads(self, options: CpuOptions) -> int:
        """Return the number of threads of a session."""
        from snnc.backends.cpu.engine import threads_of

        return threads_of(options.threads)


CPU: Final = CpuBackend(
    "cpu", "this processor: an emitted C++ program, the fastest way to train here; needs a C++ compiler", CpuOptions, native=True
)
