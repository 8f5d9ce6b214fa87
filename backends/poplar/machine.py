"""Properties of a machine in the emitted program, from which the emulator computes cycles and bytes."""

from __future__ import annotations

from typing import Any, Final

from snnc.backends.codegen.names import c_string
from snnc.compiler.machines.target import Streaming, Target

CONTROL_CYCLES: Final = 30.0
"""Part of the fixed cycles of a superstep that the emulator counts even without an exchange: its ``controlCycles``."""
CONTROL_CODE: Final = 700
"""Part of the fixed bytes of a tile that the emulator counts as control code instead of stack: its ``controlCodeBytes``."""
VERSION: Final = "ipu2"
"""Model of the emulator for machines other than IPUs; all of its numbers are replaced."""


def machine_context(target: Target) -> dict[str, Any]:
    """Return ``numbers`` (value and meaning, in the order of the C++ struct ``Machine``) and ``wires`` (two chips, bytes per second)."""
    streaming = target.streaming or Streaming(0, 0.0)
    control = min(CONTROL_CYCLES, target.superstep_cycles)
    control_code = min(CONTROL_CODE, target.fixed_tile_bytes)
    numbers: list[tuple[str, str]] = [
        (c_string(target.device or VERSION), "version"),
        (str(target.chips), "IPUs"),
        (str(target.tiles_per_chip), "tiles of an IPU"),
        (str(target.tile_bytes), "bytes of a tile"),
        (repr(float(target.clock_hz)), "clock, Hz"),
        (str(target.workers), "workers of a tile"),
        (repr(float(target.exchange_bytes_per_cycle)), "bytes that a tile receives per cycle"),
        (repr(float(target.fragment_cycles)), "cycles per received fragment"),
        (str(target.fragment_code_bytes), "bytes of exchange code per fragment"),
        (str(control_code), "bytes of control code"),
        (str(target.fixed_tile_bytes - control_code), "bytes of stack"),
        (repr(float(target.sync_cycles)), "cycles of a barrier on one IPU"),
        (repr(float(target.link_sync_cycles)), "cycles of a barrier across IPUs"),
        (repr(float(target.superstep_cycles - control)), "cycles to set up an exchange"),
        (repr(float(control)), "cycles to control a superstep"),
        (repr(float(target.host.bytes_per_second if target.host else 0.0)), "bytes per second to the host; 0: unknown"),
        (repr(float(target.vertex_start_cycles)), "worker cycles to start a vertex"),
        (repr(float(streaming.bytes_per_second)), "bytes per second from or to streaming memory of an IPU; 0: none"),
        (str(streaming.bytes_per_chip), "bytes of streaming memory of an IPU"),
    ]
    links = target.links
    wires = [(a, b, repr(float(n * links.bytes_per_second))) for a, b, n in links.wires(target.chips)] if links and target.chips > 1 else []
    return {"numbers": [{"value": v, "meaning": m} for v, m in numbers], "wires": wires}
