"""A GPU as a target."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from snnc.backends.backend import TRAINING, Backend, BuiltProject, PlacedProgram, SequenceOptions

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.plan import Precision
    from snnc.compiler.ir.step_program import StepProgram
    from snnc.compiler.lowering.half_numbers import HalfNumbers
    from snnc.compiler.lowering.halves import Half


@dataclass(frozen=True, eq=False)
class CudaOptions(SequenceOptions):
    """Options of a GPU.

    Attributes
    ----------
    device
        Number of the device; None: chosen by the environment. Users do not set it: a PyTorch module sets it to the device of its tensors.
    """

    memory: int | None = None
    precision: Precision = field(default="float32", metadata={"values": {"bfloat16": "with a loss", "float16": "yes"}})
    half: HalfNumbers | None = field(default=None, metadata=TRAINING)
    device: int | None = None


class CudaBackend(Backend[CudaOptions]):
    """Emits a CUDA program and loads it."""

    def halves(self, options: CudaOptions) -> tuple[Half, ...]:
        """Return the weights, if they are float16: the program itself rounds the past, factors of products and deltas."""
        return ("weights",) if options.half is not None else ()

    def check(self, program: StepProgram, options: CudaOptions) -> None:
        """Refuse pasts or deltas alone as float16.

        Raises
        ------
        HalfTogetherError
            Pasts or deltas are named.
        """
        del program
        from snnc.backends.cuda.errors import HalfTogetherError

        if options.half is not None and (options.half.pasts or options.half.deltas):
            raise HalfTogetherError(
                "half has pasts or deltas, but a program for a GPU rounds pasts, factors of dense products and deltas together; give "
                "half='weights', or leave half out and give precision='float16'."
            )

    def emit(self, placed: PlacedProgram, options: CudaOptions, folder: Path) -> None:
        """Write the program, its tables and weights; refuse a bound on memory that it cannot meet."""
        from snnc.backends.cuda.emit import emit_cuda
        from snnc.backends.native.memory import check_bound

        precision = options.precision if options.half is None else "float32"
        emit_cuda(placed.program, folder, options.steps, options.batch, precision)
        check_bound(folder, options.batch, options.memory)

    def build(self, folder: Path, options: CudaOptions) -> BuiltProject:
        """Compile the program for the device of this machine."""
        from snnc.backends.cuda.engine import build_for_device

        return BuiltProject(folder, build_for_device(folder, options.device))

    def open(self, placed: PlacedProgram, options: CudaOptions, built: BuiltProject | None) -> Engine:
        """Load the program."""
        from snnc.backends.cuda.engine import load_engine
        from snnc.backends.training.updates.masks import masks_of

        assert built is not None, "a program is emitted"
        engine = load_engine(built.library, built.folder, options.memory, options.device)
        engine.drop_by(masks_of(placed.program))
        return engine

    def launches(self, project: Mapping[str, Any], steps: int, batch: int) -> dict[str, Any] | None:
        """Return the predicted kernels of a training step, with their seconds on the measured card."""
        from snnc.backends.cuda.schedule.prediction import predicted_step

        return predicted_step(project, steps, batch)

    def on_device(self) -> bool:
        """Return whether kernels run on a GPU, not in a check on the processor."""
        from snnc.backends.cuda.errors import CHECK_ON_HOST

        return not os.environ.get(CHECK_ON_HOST)


CUDA: Final = CudaBackend(
    "cuda",
    "a GPU (sm_75 and newer): an emitted CUDA program; needs nvcc and a device to run, neither to be emitted",
    CudaOptions,
    synonyms=("gpu", "nvidia"),
    native=True,
)
