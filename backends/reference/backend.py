"""The target ``reference``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from snnc.backends.backend import Backend, BuiltProject, PlacedProgram, SequenceOptions

if TYPE_CHECKING:
    from snnc.backends.runtime.engine import Engine
    from snnc.compiler.ir.plan import Precision
    from snnc.compiler.lowering.half_numbers import HalfOption


@dataclass(frozen=True, eq=False)
class ReferenceOptions(SequenceOptions):
    """Options of the reference backend."""

    precision: Precision = field(default="float32", metadata={"values": {"float16": "yes"}})  # "float16" rounds numbers selected by `half`
    half: HalfOption | None = None


class ReferenceBackend(Backend[ReferenceOptions]):
    """Runs the step program in this process, without emitting code."""

    def open(self, placed: PlacedProgram, options: ReferenceOptions, built: BuiltProject | None) -> Engine:
        from snnc.backends.reference.engine import ReferenceEngine

        return ReferenceEngine(placed.program)


REFERENCE: Final = ReferenceBackend("reference", "the NumPy backend: any network, no compiler needed", ReferenceOptions, emits=False)
