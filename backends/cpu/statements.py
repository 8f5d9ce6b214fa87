"""Parts of the statements of ``network.cpp``: of blocks of steps, of a collapsed readout, and expressions of steps and windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from snnc.backends.codegen.statements import Guarded, Statement
from snnc.compiler.ir.arrays.windows import Windows
from snnc.compiler.ir.step_operations import BufferValue, DenseProduct


@dataclass(frozen=True)
class BlockStatement:
    """A statement for all steps of a block, or one that runs for each of its steps."""

    statement: str
    each_step: bool = False


@dataclass(frozen=True)
class CollapsedReadout:
    """Values of ``collapsed_loss`` of ``readout.jinja``.

    Attributes
    ----------
    population, states, width
        The readout, the number of its states, and numbers of a padded row of its output.
    parameters
        C++ expressions of its parameters.
    current, output, mean
        Members of the network: its current, its output and the output's mean.
    step
        Statement that runs a step of the readout.
    biases
        Parameters that its current begins with.
    products
        Its dense connections.
    """

    population: str
    states: int
    width: int
    parameters: tuple[str, ...]
    current: str
    output: str
    mean: str
    step: str
    biases: tuple[str, ...]
    products: tuple[DenseProduct, ...]


def to_earlier_step(source: BufferValue, statement: str) -> Statement:
    """Return a backward statement that adds to the step that was read, under the condition that the sequence has that step."""
    return Guarded(f"t >= {source.delay}", statement) if source.delay else statement


def earlier_step(step: str, source: BufferValue) -> str:
    """The step that is read."""
    return f"{step} - {source.delay}" if source.delay else step


def windows_expression(windows: Windows, output: Sequence[int], channels: int, outputs: int, groups: int) -> str:
    """C++ expression of windows, with their number."""
    pairs = (windows.size, output, windows.kernel, windows.stride, [before for before, _ in windows.padding], windows.dilation)
    numbers = [str(channels), str(outputs), str(groups)]
    numbers += ["{" + ", ".join(map(str, _planar(pair, n))) + "}" for pair, n in zip(pairs, (1, 1, 1, 1, 0, 1), strict=True)]
    return f"Windows{{{', '.join(numbers)}}}"


def _planar(numbers: Sequence[int], missing: int) -> tuple[int, int]:
    """Two axes; a single one is the second."""
    return (missing, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])


def gradient_of(name: str) -> str:
    """Expression of a worker's own gradient."""
    return f"{name.removeprefix('d_')}.gradient(w.index)"
