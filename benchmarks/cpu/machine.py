"""Facts about the machine and the run that a table of timings needs."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from snnc.backends.native.processors import processors


def facts(threads: int) -> dict[str, str]:
    """Return the processor, its cores, the threads that engines may use, how busy it is, the system and the date, as text."""
    return {
        "CPU": _model(),
        "cores": str(processors()),
        "threads": str(threads),
        "load": f"{os.getloadavg()[0]:.1f} of {processors()} at the start" if hasattr(os, "getloadavg") else "unknown",
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
    }


def _model() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    fields = (line.partition(":") for line in text.splitlines())
    return next((value.strip() for name, _, value in fields if name.strip() == "model name"), platform.processor() or "unknown")
