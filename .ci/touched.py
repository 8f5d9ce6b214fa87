"""Print the tests of the folders that a change touches, one path per line: ``git diff --name-only BASE | python .ci/touched.py``.

The folders of tests have the names of the code's folders: the tests of ``compiler/tiles/memory/x.py`` are in
``tests/compiler/tiles/memory``, or in the nearest folder above that exists. Templates are tested with the backend that emits them,
examples by one file. Code that can change emitted programs is also tested end to end, the mapper also with the programs of the Poplar
backend, and all code but the benchmarks by the hashes of what snnc emits and prints.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

CODE = ("api", "frontends", "compiler", "backends", "benchmarks")
EMIT = ("compiler", "backends", "templates")
"""Folders whose changes can change emitted programs."""
BY_TEMPLATE = {"common": ["backends"], "native": ["backends/cpu", "backends/cuda", "backends/native"], "report": ["api/report"]}
"""Test folders by folder of templates, where the name differs from that of a backend."""


def tests_of(file: str, root: Path) -> list[str]:
    """Return the test folders and files for one changed file, relative to the checkout."""
    path = Path(file)
    if path.parts[0] == "tests":
        return _of_tests(path, root)
    if path.parts[0] == "examples":
        return ["tests/test_examples.py"]
    if path.parts[0] == "templates" and len(path.parts) > 2:
        folders = BY_TEMPLATE.get(path.parts[1], [f"backends/{path.parts[1]}"])
        return [f"tests/{folder}" for folder in folders if (root / "tests" / folder).is_dir()]
    if path.parts[0] not in CODE or path.suffix == ".md":
        return []
    folder = path.parent
    while not (root / "tests" / folder).is_dir():
        folder = folder.parent
    loose = sorted((root / "tests" / folder).glob("test_*.py")) if len(folder.parts) == 1 else []  # without those in subfolders
    return [test.relative_to(root).as_posix() for test in loose] or [f"tests/{folder.as_posix()}"]


def _of_tests(path: Path, root: Path) -> list[str]:
    """Return a changed test file, or the test files that import a changed helper."""
    if path.suffix != ".py" or not (root / path).is_file():
        return []
    if path.name.startswith("test_"):
        return [path.as_posix()]
    imports = re.compile(rf"^\s*(?:from|import) {re.escape(path.stem)}\b", re.M)
    return [t.relative_to(root).as_posix() for t in sorted((root / "tests").rglob("test_*.py")) if imports.search(t.read_text())]


def touched(files: Iterable[str], root: Path) -> list[str]:
    """Return the tests of all changed files, then the tests of whole programs; a path inside another one is omitted."""
    files = list(files)
    tests = dict.fromkeys(test for file in files for test in tests_of(file, root))
    changed = {file.split("/")[0] for file in files if not file.endswith(".md")}
    if any(file.startswith("compiler/tiles/") and not file.endswith(".md") for file in files):
        tests["tests/backends/poplar"] = None
    if changed & set(EMIT):
        tests["tests/end_to_end"] = None
    if changed & {"api", "frontends", *EMIT}:
        tests["tests/golden"] = None
    return [test for test in tests if not any(other != test and Path(test).is_relative_to(other) for other in tests)]


if __name__ == "__main__":
    print("\n".join(touched(sys.stdin.read().split(), Path.cwd())))
