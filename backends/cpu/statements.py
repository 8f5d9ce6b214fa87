"""Parts of the statements in ``network.cpp``: block statements, the collapsed readout, and expressions for steps and gradients."""

from __future__ import annotations

from dataclasses import dataclass

from snnc.backends.codegen.statements import Guarded, Statement
from snnc.compiler.ir.step_operations import BufferValue, DenseProduct


@dataclass(frozen=True)
class BlockStatement:
    """A statement that runs once for all steps of a block, or once per step."""

    statement: str
    each_step: bool = False


@dataclass(frozen=True)
class CollapsedReadout:
    """Arguments of the macro ``collapsed_loss`` of ``readout.jinja``."""

    population: str
    states: int
    """Number of states of the population."""
    width: int
    """Number of values in a row of the output, with padding."""
    parameters: tuple[str, ...]
    current: str
    output: str
    mean: str
    """Members of the network: the readout's current, its output, and the mean of the output."""
    step: str
    """Statement that runs a step of the readout."""
    biases: tuple[str, ...]
    products: tuple[DenseProduct, ...]


def to_earlier_step(source: BufferValue, statement: str) -> Statement:
    """Return a backward statement that adds to an earlier step, guarded by the condition that this step exists."""
    return Guarded(f"t >= {source.delay}", statement) if source.delay else statement


def earlier_step(source: BufferValue) -> str:
    """Return the C++ expression of the step of `source` that is read at step ``t``."""
    return f"t - {source.delay}" if source.delay else "t"


def gradient_of(name: str) -> str:
    """Return the C++ expression of a worker's own gradient."""
    return f"{name.removeprefix('d_')}.gradient(w.index)"
