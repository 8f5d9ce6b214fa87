"""Where snnc keeps what it made and can make again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder that holds made things, which is made where it is missing: ``$SNNC_CACHE``, else ``~/.cache/snnc``."""
    chosen = os.environ.get("SNNC_CACHE")
    folder = Path(chosen) if chosen else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "snnc"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
