"""Builds the emulator once, and each C++ case once; tests run cases with arguments and compare their output."""

import json
import os
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import pytest

from snnc.backends.emulator import build, popc
from snnc.backends.toolchain import compilers, objects

CASES = Path(__file__).parent / "cases"
WITH_LIBRARIES = (
    "poplibs", "faults", "everyday", "executables", "documented", "interface", "forms", "halves", "in_place", "layers", "less_common",
    "utilities",
)  # fmt: skip
"""Cases that need PopLibs."""
JOINT = ("forms", "in_place", "layers", "less_common", "utilities")
"""Cases that are one program, in half the time that five would take: they use the same templates of `numbers.hpp` and of the libraries."""
COMMON_HEADERS = (
    "case.hpp", "popops/Cast.hpp", "popops/DynamicSlice.hpp", "popops/ElementWise.hpp", "popops/Gather.hpp", "popops/Loop.hpp",
    "popops/Reduce.hpp", "popops/ScaledAdd.hpp", "popops/TopK.hpp", "popops/Zero.hpp", "popops/codelets.hpp", "poplin/Convolution.hpp",
    "poplin/MatMul.hpp", "poputil/TileMapping.hpp",
)  # fmt: skip
"""Headers that are compiled once for all cases; this saves a third of the time of each."""

SANITIZER = os.environ.get("SNNC_TEST_SANITIZER", "")
"""Sanitizers of the compiler under which library, programs and codelets are built and run: `thread`, or `address,undefined`."""
SANITIZER_FLAGS = [f"-fsanitize={SANITIZER}", "-fno-sanitize-recover=all", "-g"] if SANITIZER else []
if SANITIZER:
    os.environ["SNNC_LIBRARY_FLAGS"] = " ".join(["-O1", *SANITIZER_FLAGS])
    os.environ["SNNC_CODELET_EXTRA_FLAGS"] = " ".join(SANITIZER_FLAGS)
    os.environ.setdefault("SNNC_THREADS", "3")
    os.environ.setdefault("SNNC_PARALLEL_MICROSECONDS", "0")
collect_ignore = ["test_build.py", "test_emulate.py", "test_sanitizers.py"] if SANITIZER else []
"""These are about tool chains, and load what they build into Python."""


@pytest.fixture(scope="session")
def sanitizer_flags() -> list[str]:
    """Flags of a host program that a test compiles itself: the sanitizers' library must be loaded before the emulator's."""
    return SANITIZER_FLAGS


@pytest.fixture(scope="module", autouse=True)
def as_for_users(codelets_as_for_users):
    """Sizes of code in these tests are those of the machine code."""


class Cases:
    """Compiles `cases/<name>.cpp` on first use and runs it.

    Programs get the table of the common codelets: each of two hundred runs would start popc to find it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def codelets(self) -> Path:
        return popc.compile_codelets(CASES / "codelets.cpp", build.library())

    def program(self, name: str) -> Path:
        output = self.folder / name
        if not output.exists():
            self.compile(CASES / f"{name}.cpp", output, complete=name in WITH_LIBRARIES)
        return output

    @cached_property
    def joint_program(self) -> Path:
        """The program of :data:`JOINT`, whose first argument is the name of a case; each case is in a namespace of its own."""
        source = self.folder / "joint.cpp"
        texts = {name: (CASES / f"{name}.cpp").read_text() for name in JOINT}
        heads = (text.partition("\nnamespace {")[0].splitlines() for text in texts.values())
        headers = dict.fromkeys(line for lines in heads for line in lines if line.startswith("#include"))
        cases = (f'namespace of_{name} {{\n#include "{name}.cpp"\n}}' for name in JOINT)
        calls = (f'  if (name == "{name}")\n    return of_{name}::main(argc - 1, argv + 1);' for name in JOINT)
        main = "int main(int argc, char **argv) {\n  const std::string name(argv[1]);"
        source.write_text("\n".join([*headers, *cases, main, *calls, "  return 2;\n}\n"]))
        self.compile(source, self.folder / "joint", ["-I", str(CASES)], complete=True)
        return self.folder / "joint"

    def compile(self, source: Path, output: Path, flags: Sequence[str] = (), **options: bool) -> None:
        """Compile and link a host program with the precompiled headers."""
        chosen = [*self.flags, *self.precompiled, *compilers.linker_flags(compilers.compiler()), *flags]
        build.compile_program([source], output, flags=chosen, **options)

    @cached_property
    def flags(self) -> list[str]:
        return ["-O0", "-Wall", "-Wextra", "-Werror", f'-DCODELETS="{self.codelets}"', *SANITIZER_FLAGS]

    @cached_property
    def precompiled(self) -> list[str]:
        """Flags that include the common headers; the library's path changes with their contents."""
        command = [*compilers.compiler(), *compilers.common_flags(compilers.compiler()), *self.flags, "-isystem", str(build.include_dir())]
        return objects.precompiled(CASES, COMMON_HEADERS, [*command, str(build.library())], command)

    def run(self, name: str, *arguments: object, stdin: str = "", **environment: str) -> str:
        """Return standard output; a case that fails fails the test."""
        command = [self.joint_program, name] if name in JOINT else [self.program(name)]
        result = subprocess.run(
            [*command, *map(str, arguments)],
            input=stdin, capture_output=True, text=True, check=False, env={**os.environ, **environment},
        )  # fmt: skip
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def json(self, name: str, *arguments: object, **environment: str) -> dict:
        return json.loads(self.run(name, *arguments, **environment))


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Cases:
    build.library()
    return Cases(tmp_path_factory.mktemp("cases"))
