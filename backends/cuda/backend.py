"""The target ``cuda``: an NVIDIA GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snnc.backends.backend import Backend, BuiltProject, PlacedProgram, SequenceOptions

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.plan import Precision
    from snnc.compiler.ir.step_program import StepProgram
    from snnc.compiler.lowering.half_numbers import HalfOption
    from snnc.compiler.lowering.halves import Halves


@dataclass(frozen=True, eq=False)
class CudaOptions(SequenceOptions):
    """Options of the CUDA backend."""

    memory: int | None = None
    precision: Precision = field(default="float32", metadata={"values": {"tf32": "yes", "bfloat16": "with a loss", "float16": "yes"}})
    half: HalfOption | None = None
    device: int | None = None
    """Number of the device; None: chosen by the environment. Not a user option: a PyTorch module sets it to the device of its tensors."""


class CudaBackend(Backend[CudaOptions]):
    """Emits, builds and loads a CUDA program."""

    def halves(self, options: CudaOptions) -> Halves:
        """Return which weights and states the step program stores as float16; kernels round histories, factors of products and deltas."""
        from snnc.compiler.lowering.halves import halves_of

        return halves_of("float32", options.half, trains=options.loss is not None).only("weights", "states")

    def rounds_products(self, options: CudaOptions) -> bool:
        return options.precision == "tf32" or (options.precision == "float16" and options.half is None)

    def check(self, program: StepProgram, options: CudaOptions) -> None:
        from snnc.backends.cuda.errors import HalfTogetherError

        if options.half is not None and (options.half.history or options.half.deltas):
            raise HalfTogetherError(
                "half includes history or deltas, but programs for GPUs round the history, factors of dense products and deltas together; "
                "give half='weights', 'states' or both, or omit half and give precision='float16'."
            )

    def emit(self, placed: PlacedProgram, options: CudaOptions, folder: Path) -> None:
        from snnc.backends.cuda.emit import emit_cuda
        from snnc.backends.native.memory import check_bound

        precision = options.precision if options.half is None else "float32"
        emit_cuda(placed.program, folder, options.steps, options.batch, precision)
        check_bound(folder, options.batch, options.memory)

    def build(self, folder: Path, options: CudaOptions) -> BuiltProject:
        from snnc.backends.cuda.engine import build_for_device

        return BuiltProject(folder, build_for_device(folder, options.device))

    def open(self, placed: PlacedProgram, options: CudaOptions, built: BuiltProject | None) -> Engine:
        from snnc.backends.cuda.engine import load_engine
        from snnc.backends.training.updates.masks import masks_of

        assert built is not None, "this backend emits a program"
        engine = load_engine(built.library, built.folder, options.memory, options.device)
        engine.drop_by(masks_of(placed.program))
        return engine

    def launches(self, project: Mapping[str, Any], steps: int, batch: int) -> dict[str, Any] | None:
        from snnc.backends.cuda.schedule.prediction import predicted_step

        return predicted_step(project, steps, batch)

    def on_device(self) -> bool:
        from snnc.backends.cuda.errors import CHECK_ON_HOST

        return not os.environ.get(CHECK_ON_HOST)


CUDA: Final = CudaBackend(
    "cuda",
    "a GPU (sm_75 and newer): an emitted CUDA program; running it needs nvcc and a device, emitting it needs neither",
    CudaOptions,
    synonyms=("gpu", "nvidia"),
    native=True,
)
