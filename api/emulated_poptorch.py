"""Run an emitted PopTorch package without an IPU and without the Poplar SDK: ``python -m snnc.emulated_poptorch train.py``."""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

from snnc.backends.poptorch.errors import PopTorchFolderError
from snnc.compiler.errors import SnncError

LIBRARY = "SNNC_OPERATION_LIBRARY"
"""Environment variable with the path of a package's operation library."""
VERSION = "POPTORCH_IPU_MODEL_VERSION"
"""Environment variable of PopTorch that selects the emulated IPU."""


def install(folder: str | Path, *, tiles: int = 0) -> None:
    """Build the package's operation for the emulator, and make ``import poptorch`` load snnc's emulation of PopTorch.

    ``snnc compile --target poptorch`` wrote `folder`. `tiles` is the number of tiles of the emulated IPU, 0 for all.

    Raise PopTorchFolderError if the folder contains no PopTorch package, ToolMissingError if no C++ compiler was found, and BuildError if
    the compiler fails on the operation.
    """
    where = Path(folder)
    if not (where / "operation.cpp").exists() or not (where / "network.json").exists():
        raise PopTorchFolderError(f"{str(folder)!r} contains no package from snnc compile --target poptorch.")
    from snnc.backends.poptorch.build import build_operation
    from snnc.backends.poptorch.emulated.executor import make_poptorch
    from snnc.backends.poptorch.popart import load_operation

    library = build_operation(where)
    load_operation(library)
    os.environ[LIBRARY] = str(library)
    ipus = json.loads((where / "network.json").read_text(encoding="utf-8")).get("ipus", 1)
    sys.modules["poptorch"] = make_poptorch(os.environ.get(VERSION, "ipu2"), tiles, ipus)


def main(arguments: list[str]) -> int:
    """Run a script of a package with the remaining arguments; return the exit code."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(
            "python -m snnc.emulated_poptorch SCRIPT [ARGUMENTS]\n\nRuns a script next to an emitted operation.cpp, with PopTorch emulated."
        )
        return 0 if arguments else 2
    script = Path(arguments[0])
    try:
        install(script.resolve().parent)
    except SnncError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    sys.argv = arguments
    sys.path.insert(0, str(script.resolve().parent))
    runpy.run_path(str(script), run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
