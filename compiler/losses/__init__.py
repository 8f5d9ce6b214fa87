"""Loss functions over the recorded output of a sequence, one file a loss."""

from __future__ import annotations

from snnc.compiler.losses.base import Loss

__all__ = ["Loss"]
