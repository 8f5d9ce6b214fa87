"""Memory of a process: currently resident bytes, and the peak since the last reset."""

from __future__ import annotations

import resource
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

_STATUS: Final = Path("/proc/self/status")
_CLEAR: Final = Path("/proc/self/clear_refs")


def resident_bytes() -> int:
    """Return the number of resident bytes; the peak of the whole process if the system does not report them."""
    return _status("VmRSS") or max_resident_bytes()


def peak_bytes() -> int:
    """Return the peak of resident bytes since :func:`reset_peak`, or of the whole process if the system cannot reset it."""
    return _status("VmHWM") or max_resident_bytes()


def reset_peak() -> None:
    """Reset the peak (proc(5), clear_refs), if the system can do so."""
    with suppress(OSError):
        _CLEAR.write_text("5")


def _status(key: str) -> int:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:")), 0)


def max_resident_bytes() -> int:
    """Return the peak of resident bytes of the whole process, from ``ru_maxrss``, which is in KiB on Linux and in bytes on macOS."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
