"""Compile code that only older compilers accepted: CMake runs this on a failed compiler command (see ``LAUNCHER`` in ``build.py``)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

SOURCES = (".cpp", ".cc", ".cxx", ".c++", ".C")
OUTPUTS = ("-o", "-MF", "-MT", "-MQ")


def load_sources() -> ModuleType:
    """Return the module of sources by its path: the rest of snnc is not needed."""
    spec = importlib.util.spec_from_file_location("snnc_sources", Path(__file__).with_name("sources.py"))
    if spec is None or spec.loader is None:
        raise ImportError("sources.py is missing beside the launcher")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_outputs(command: Sequence[str]) -> list[str]:
    """Return a compiler's command without what it writes.

    Examples
    --------
    >>> without_outputs(["g++", "-MD", "-MF", "a.d", "-O2", "-o", "a.o", "-c", "a.cpp"])
    ['g++', '-O2', 'a.cpp']
    """
    kept, skip = [], False
    for word in command:
        if not skip and word not in (*OUTPUTS, "-c", "-MD", "-MMD", "-MP"):
            kept.append(word)
        skip = not skip and word in OUTPUTS
    return kept


def main(command: Sequence[str]) -> int:
    """Run the command on a preprocessed source in which lambdas outside of functions capture nothing; return its exit code."""
    source = next((word for word in command if word.endswith(SOURCES)), None)
    if source is None:
        return subprocess.run(command, check=False).returncode
    plain = without_outputs(command)
    errors = subprocess.run([*plain, "-w", "-fsyntax-only"], capture_output=True, text=True, check=False).stderr
    text = subprocess.run([*plain, "-E"], capture_output=True, text=True, check=False).stdout
    with tempfile.TemporaryDirectory(prefix="snnc-launcher-") as folder:
        changed = Path(folder) / f"{Path(source).stem}.ii"
        changed.write_text(load_sources().without_capture_defaults(text, errors))
        return subprocess.run([str(changed) if word == source else word for word in command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
