"""Handlers for files with a description by snnc: sines need values there, but no equation that identifies neurons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.frontends.onnx.flattening.elementwise import elementwise
from snnc.frontends.onnx.flattening.flatten import Handler

HANDLERS: Final[Mapping[str, Handler]] = {
    "Sin": lambda call: [elementwise(call.pool, "sin", *call.nodes())],
    "Cos": lambda call: [elementwise(call.pool, "cos", *call.nodes())],
}
