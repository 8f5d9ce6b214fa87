"""Script that runs popc (the emulator's codelet compiler) without importing the rest of snnc; ``Graph::addCodelets`` starts it by path."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType


def main() -> int:
    """Run popc with empty modules in place of the packages that contain it."""
    emulator = Path(__file__).resolve().parent
    root = emulator.parent.parent
    folders = {
        "snnc": None,
        "snnc.compiler": root / "compiler",
        "snnc.backends": None,
        "snnc.backends.emulator": emulator,
        "snnc.backends.toolchain": root / "backends" / "toolchain",
    }
    for name, folder in folders.items():
        package = ModuleType(name)
        package.__path__ = [] if folder is None else [str(folder)]
        sys.modules[name] = package
    from snnc.backends.emulator.popc import main as popc

    return popc(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
