"""Notices at the start of training about differences from training in the model's own framework."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from snnc.compiler.ir.step_program import StepProgram

_CODES: Final = "SNNC-W27"
"""Prefix of the codes of assumptions about training."""


class TrainingDiffers(UserWarning):
    """Training differs from training in the framework that the model comes from."""


def differences(program: StepProgram) -> list[str]:
    """Return those assumptions of a program that name a difference from training in the framework of its model."""
    return [text for text in program.assumptions if text.startswith(_CODES)]


def warn_of_differences(program: StepProgram) -> None:
    """Issue a warning for each of :func:`differences`, as ``fit`` does before the first update."""
    for text in differences(program):
        warnings.warn(text, TrainingDiffers, stacklevel=3)


@contextmanager
def reported_differences(program: StepProgram, report: Callable[[str], None]) -> Iterator[None]:
    """Report each of :func:`differences`, and suppress the warnings of training inside the block."""
    for text in differences(program):
        report(text)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TrainingDiffers)
        yield
