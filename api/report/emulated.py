"""Write the profile of an emulated program as text, JSON or trace: memory by category, cycles and balance by step.

A *step* here is a compute set or copy of the program.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from snnc.compiler.tiles.errors import ReportOptionError
from snnc.errors import DataFileError

MAX_BYTES: Final = 1 << 30
PARTS: Final = (
    ("compute", "compute_cycles_busiest"),
    ("sync", "sync_cycles"),
    ("exchange", "exchange_cycles"),
    ("links", "link_cycles"),
    ("control", "control_cycles"),
)
"""Kinds of cycles of a step, and their names in the profile."""


def profile_in(path: Path) -> dict[str, Any] | None:
    """Return the profile in a file; None if the file contains something else or is too large. Raise DataFileError if it is unreadable."""
    try:
        if path.stat().st_size > MAX_BYTES:
            return None
        profile = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataFileError(f"{str(path)!r} cannot be read: {error}") from None
    except ValueError:
        return None
    return profile if isinstance(profile, dict) and {"steps", "per_tile", "tiles", "clock_hz"} <= profile.keys() else None


def write_profile(profile: Mapping[str, Any], format: str) -> bytes:
    """Return a profile as ``text``, ``json`` or ``trace`` (for chrome://tracing); raise ReportOptionError for other formats."""
    match format:
        case "text":
            cycles, clock = profile["cycles"], profile["clock_hz"]
            head = f"{profile['tiles']:,} tiles at {clock / 1e9:g} GHz: {cycles:,.0f} cycles, {cycles / clock * 1e6:,.1f} microseconds"
            return "\n".join([f"{head} (emulated)", "", *_memory(profile), "", *_steps(profile), ""]).encode()
        case "json":
            return json.dumps(profile).encode()
        case "trace":
            return json.dumps({"traceEvents": _events(profile), "displayTimeUnit": "ns"}).encode()
    raise ReportOptionError(f"a profile of an emulated program is written as text, json, trace, not as {format!r}")


def _memory(profile: Mapping[str, Any]) -> list[str]:
    memory = profile["per_tile"]["memory"]
    total = memory["total"]
    fullest = max(range(len(total)), key=total.__getitem__)
    lines = [f"{'bytes':<18}{'all tiles':>16}{f'tile {fullest}':>14}"]
    for name, values in memory.items():
        lines.append(f"{name.replace('_', ' '):<18}{sum(values):>16,}{values[fullest]:>14,}")
    share = total[fullest] / profile["bytes_per_tile"]
    return [*lines, f"the fullest tile uses {share:.1%} of {profile['bytes_per_tile']:,} bytes"]


def _steps(profile: Mapping[str, Any]) -> list[str]:
    """Return a line per step, by descending cycles; balance is the mean compute time of all tiles, divided by that of the busiest tile."""
    lines = [f"{'step':<40}{'runs':>8}{'cycles':>14}{'share':>8}{'balance':>9}  " + "".join(f"{name:>12}" for name, _ in PARTS)]
    total = sum(step["cycles"] for step in profile["steps"]) or 1
    for step in sorted(profile["steps"], key=lambda step: -step["cycles"]):
        busiest = step["compute_cycles_busiest"] * profile["tiles"]
        balance = f"{step['compute_cycles_sum'] / busiest:.0%}" if busiest and step["compute_cycles_sum"] else ""
        parts = "".join(f"{step[key]:>12,.0f}" for _, key in PARTS)
        name = f"{step['kind']} {step['name']}"
        lines.append(f"{name[:39]:<40}{step['executions']:>8,}{step['cycles']:>14,.0f}{step['cycles'] / total:>8.1%}{balance:>9}  {parts}")
    return lines


def _events(profile: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return one bar per step and kind of cycles, with all executions of the step together, in program order; times are in microseconds."""
    scale, at = 1e6 / profile["clock_hz"], 0.0
    events = []
    for step in profile["steps"]:
        for name, key in PARTS:
            if step[key] > 0:
                place = {"name": step["name"], "cat": name, "ph": "X", "pid": 0, "tid": name, "ts": at, "dur": step[key] * scale}
                events.append({**place, "args": {"executions": step["executions"]}})
                at += step[key] * scale
    return events
