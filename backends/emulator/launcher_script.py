"""Script that repeats a failed compiler command on copies of its sources, in which lambdas outside of functions have no capture default.

Only older compilers accept one there. The shell script ``LAUNCHER`` in ``build.py`` runs this script with the command as arguments.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

SOURCES = (".cpp", ".cc", ".cxx", ".c++", ".C")
OUTPUTS = ("-o", "-MF", "-MT", "-MQ")
"""Options followed by a name: output, dependency file, and targets in the dependency file."""


def without_outputs(command: Sequence[str]) -> list[str]:
    """Return a compiler's command without ``-c`` and without the options for its output files.

    Examples
    --------
    >>> without_outputs(["g++", "-MD", "-MF", "a.d", "-O2", "-o", "a.o", "-c", "a.cpp"])
    ['g++', '-O2', 'a.cpp']
    """
    words, skip = [], False
    for word in command:
        if not skip and word not in (*OUTPUTS, "-c", "-MD", "-MMD", "-MP"):
            words.append(word)
        skip = not skip and word in OUTPUTS
    return words


def main(command: Sequence[str]) -> int:
    """Run a compiler's command, with a corrected, preprocessed copy of each source whose lambdas it rejects; return its exit code."""
    names = [word for word in command if word.endswith(SOURCES)]
    options = [word for word in without_outputs(command) if word not in names]
    sources = importlib.import_module("sources")  # from the folder of this script, without importing the rest of snnc
    with tempfile.TemporaryDirectory(prefix="snnc-launcher-") as folder:
        changed: dict[str, str] = {}
        for source in names:
            copy = sources.accepted_copy(options, Path(source), folder)
            if copy is not None:
                changed[source] = str(copy)
        return subprocess.run([changed.get(word, word) for word in command], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
