"""Tables of all operator handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from snnc.frontends.onnx.flattening.flatten import Handler
from snnc.frontends.onnx.operators import activation, elementwise, loops, moving, products, shape, window

HANDLERS: Final[Mapping[str, Handler]] = {
    **elementwise.HANDLERS,
    **activation.HANDLERS,
    **shape.HANDLERS,
    **products.HANDLERS,
    **window.HANDLERS,
    **moving.HANDLERS,
    **loops.HANDLERS,
}
MARKED: Final[Mapping[str, Handler]] = {**HANDLERS, **elementwise.MARKED}
"""Handlers for a file that marks where gradients stop."""
DESCRIBED: Final[Mapping[str, Handler]] = {**HANDLERS, **elementwise.DESCRIBED}
"""Handlers for a file with snnc's description of its network."""
