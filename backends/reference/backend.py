"""The reference as a target."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from snnc.backends.backend import TRAINING, Backend, BuiltProject, PlacedProgram, TargetOptions

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.plan import Mode, Precision
    from snnc.compiler.lowering.capacities import Capacities
    from snnc.compiler.lowering.halves import Half
    from snnc.compiler.lowering.spike_limits import DropPolicy, SpikeLimit


@dataclass(frozen=True, eq=False)
class ReferenceOptions(TargetOptions):
    """Options of the reference."""

    seed: int = field(default=0, metadata=TRAINING)
    truncate: int | None = field(default=None, metadata=TRAINING)
    capacity: int | Capacities | None = None
    mode: Mode = "exact"
    drop: DropPolicy = "lowest"
    precision: Precision = field(default="float32", metadata={"values": {"float16": "yes"}})


class ReferenceBackend(Backend[ReferenceOptions]):
    """Runs the step program as it is."""

    def halves(self, options: ReferenceOptions) -> tuple[Half, ...]:
        """Return what the step program keeps as float16."""
        from snnc.compiler.lowering.halves import halves_of

        return halves_of(options.precision, trains=options.loss is not None)

    def limit(self, options: ReferenceOptions) -> SpikeLimit | None:
        """Return how many spikes of a source the step program sends."""
        from snnc.compiler.lowering.spike_limits import limit_of

        return limit_of(options)

    def open(self, placed: PlacedProgram, options: ReferenceOptions, built: BuiltProject | None) -> Engine:
        """Return an engine of the program."""
        del options, built
        from snnc.backends.reference.engine import ReferenceEngine

        return ReferenceEngine(placed.program)


REFERENCE: Final = ReferenceBackend("reference", "the NumPy backend: any network, no compiler needed", ReferenceOptions, emits=False)
