"""The emulator's replacement of Graphcore's codelet compiler ``popc``: compiles codelets to a shared library and a table of its vertices.

``python -m snnc.backends.emulator.popc codelets.cpp -o codelets.gp`` writes the table, and next to it the library and the object file;
without ``-o``, it writes them to the cache. It links several sources, and tables that it wrote before, into one library.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from snnc.backends.emulator.sources import EMULATOR, HALF_CLASSES, KEEP_COMPUTE, portable_copy, without_comments
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import (
    common_flags,
    compiler,
    compiler_named_by,
    compiler_version,
    digest,
    is_clang,
    machine_id,
    run_compiler,
)
from snnc.compiler.errors import BuildError, SnncError
from snnc.compiler.files.temporary import temporary_folder

if TYPE_CHECKING:
    from snnc.backends.emulator.dwarf import VertexType

# Products and sums are rounded separately, like the instructions of the cost model, even if the host could fuse them.
DEFAULT_FLAGS = "-O2 -ftree-vectorize -march=native -fno-math-errno -fno-trapping-math -ffp-contract=off"
PRELUDE = ("-D__POPC__", "-include", str(EMULATOR / "include/poplar/core/Codelets.hpp"), KEEP_COMPUTE)
"""Flags of every codelet: popc's macro, what popc declares without an include, and code for ``compute``."""

AS_HARDWARE = ("-D__IPU__", "-include", "math.h")
"""Flags that imitate compilation for an IPU: ``__IPU__`` is defined, and `sin(x)` of a float is a float, whichever header declares it."""

API_VERSION = "3.3.0"
"""Version of Poplar whose documented interface the emulator follows."""
HALF_VECTORS = re.compile(r"\bhalf[24]\b")
INCLUDE_PATHS = ("CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH")
HARMLESS = ("-D", "-O", "-W", "-f", "-m", "-g", "-std=")
"""Prefixes of flags that do not affect the search for headers."""
CLANG_VERSION = re.compile(r"clang version (\d+)")
FIRST_CLANG_WITH_HALVES = 16
"""First version that accepts the flag of :func:`half_flags`."""
TARGETS = ("cpu", "ipu1", "ipu2", "ipu21")
"""Names that ``--list-targets`` prints; whichever is chosen, popc compiles for this machine."""
GCC_VERSION = re.compile(r"\) (\d+)\.\d+")
FIRST_GCC_WITH_EXCESS_PRECISION = 13
"""First version whose C++ compiler accepts the flag of :func:`half_flags`."""
# Names of vertices in a source, in a table and in an assembly file.
DECLARED_VERTEX = re.compile(r"\b(?:class|struct)\s+(\w+)\s*:\s*[^{;]*?\b(?:Multi|Supervisor)?Vertex\b")
LISTED_VERTEX = re.compile(r"^vertex\t(?:\w+::)*(\w+)", re.M)
ASSEMBLED_VERTEX = re.compile(r"\b__runCodelet_(\w+)")
TABLE, LIBRARY, OBJECT = "codelets.gp", "codelets.so", "codelets.o"
"""Files of a cache entry."""
FIRST_WORD = b"popc\t"
"""First bytes of a table."""


def codelet_compiler() -> list[str]:
    """Return the compiler of codelets: ``$SNNC_CODELET_CXX``, ``$CXX``, ``clang++``, or the compiler of host programs.

    ``clang++``, the basis of Graphcore's popc, is used only from version :data:`FIRST_CLANG_WITH_HALVES` on.
    """
    named = compiler_named_by("SNNC_CODELET_CXX")
    if named is not None:
        return named
    clang = None if os.environ.get("CXX") else shutil.which("clang++")
    if clang is not None:
        version = CLANG_VERSION.search(compiler_version([clang]))
        if version is not None and int(version.group(1)) >= FIRST_CLANG_WITH_HALVES:
            return [clang]
    return compiler()


def compile_codelets(source: Path, library: Path, flags: Sequence[str] = ()) -> Path:
    """Return the path of the table of a source, which is compiled unless the cache contains the result.

    Raises a BuildError if the file does not compile, or contains no vertex that can run.

    `library` is ``libpoplar.so``, with which the codelets are linked. `flags` are further compiler flags (``-D``, ``-I``, …), after those
    of ``$SNNC_CODELET_FLAGS`` (by default :data:`DEFAULT_FLAGS`) and ``$SNNC_CODELET_EXTRA_FLAGS``.
    """
    return _with_vertices(_compiled(source, library, flags), source.name)


def _joined(objects: Sequence[Path], library: Path, flags: Sequence[str] = (), *, may_fail: bool = False) -> Path:
    """Link objects and return the path of their joint table; of vertices with the same name, the first is used."""
    command, chosen = compiler(), [*_chosen_flags(), *flags]
    key = digest([*(path.read_bytes() for path in objects), *command, compiler_version(command), *chosen, str(library), _table_writers()])

    def build(folder: Path) -> None:
        _link(objects, folder / LIBRARY, [*command, *common_flags(command), *chosen], library)
        # The joint table may be an input of a later call.
        run_compiler([*command, *flags, "-r", "-nostdlib", *map(str, objects), "-o", str(folder / OBJECT)], "the joint object")
        _write_table(folder, _types(folder / LIBRARY))

    return _cached_table(key, build, may_fail=may_fail)


def _cached_table(key: str, build: Callable[[Path], None], *, may_fail: bool) -> Path:
    """Return the table of a cache entry; with `may_fail`, a failed build is cached as a table without vertices."""

    def attempt(folder: Path) -> None:
        try:
            build(folder)
        except BuildError:
            if not may_fail:
                raise
            _write_table(folder, ())

    return cached_file(f"codelets/{key}{'-optional' if may_fail else ''}", TABLE, attempt)


def _object(file: Path, library: Path, flags: Sequence[str]) -> Path:
    """Return the object file of a source, which is compiled unless the cache contains it, or of a table."""
    if not _is_table(file):
        return _compiled(file, library, flags).with_name(OBJECT)
    path = file.with_name(file.name + ".o")
    if not path.is_file():
        raise BuildError(f"{file}: {path.name} is missing next to it; popc links tables that it wrote itself, not Graphcore's tables")
    return path


def _is_table(file: Path) -> bool:
    if file.suffix == ".gp":
        return True
    with file.open("rb") as stream:
        return stream.read(len(FIRST_WORD)) == FIRST_WORD


def _chosen_flags() -> list[str]:
    return shlex.split(os.environ.get("SNNC_CODELET_FLAGS", DEFAULT_FLAGS)) + shlex.split(os.environ.get("SNNC_CODELET_EXTRA_FLAGS", ""))


def _compiled(source: Path, library: Path, flags: Sequence[str]) -> Path:
    """Return the table of a source, which may be empty.

    Some sources compile, or have vertices, only with ``__IPU__`` defined. If only some vertices need it, the others are compiled without.
    """
    chosen, commands = _chosen_flags(), [codelet_compiler()]
    if commands[0] != compiler():
        commands.append(compiler())  # may accept a source that the first one rejects
    failures: list[BuildError] = []
    empty: Path | None = None
    has_variants = "__IPU__" in source.read_text(errors="replace")
    with temporary_folder("snnc-codelets-") as folder:
        copy = portable_copy(source, Path(folder))
        for extra in ((), AS_HARDWARE):
            for command in commands:
                try:
                    # Under these flags, GCC accepts conversions from `void *`, which C permits and C++ does not.
                    of_c = ["-fpermissive", "-w"] if source.suffix == ".c" and not is_clang(command) else []
                    always = [*chosen, *half_flags(command), *of_c]
                    table = _compile(source, copy, library, command, always, [*flags, *extra])
                    if not has_variants or (extra and _has_vertices(table)):
                        return table
                    if _has_vertices(table):
                        again = partial(_compile, source, copy, library, command, always, [*flags, *AS_HARDWARE], may_fail=True)
                        return _with_hardware_vertices(source, table, again, library)
                    empty = empty or table
                    break
                except BuildError as error:
                    failures.append(error)
    if empty is not None:
        return empty
    raise failures[len(commands) - 1]  # the last one without AS_HARDWARE


def _with_hardware_vertices(source: Path, table: Path, compile_as_hardware: Callable[[], Path], library: Path) -> Path:
    """Return `table` or, if further vertices compile with ``__IPU__`` defined, a table with these too."""
    missing = set(DECLARED_VERTEX.findall(source.read_text(errors="replace"))) - _vertex_names(table)
    with suppress(BuildError):  # a header may be missing; perhaps the program needs only the vertices of `table`
        if missing and missing & _vertex_names(other := compile_as_hardware()):
            # Functions that both variants define are those of the first, except where the compiler inlined them in the second.
            objects, flags = [table.with_name(OBJECT), other.with_name(OBJECT)], ["-Wl,--allow-multiple-definition"]
            joined = _joined(objects, library, flags, may_fail=True)
            return joined if _has_vertices(joined) else table
    return table


def _vertex_names(table: Path) -> set[str]:
    return set(LISTED_VERTEX.findall(table.read_text()))


def _has_vertices(table: Path) -> bool:
    return "\nvertex\t" in table.read_text()


def _with_vertices(table: Path, names: str) -> Path:
    if not _has_vertices(table):
        raise BuildError(
            f"{names} contains no class derived from poplar::Vertex or poplar::MultiVertex that can run; "
            "a template makes one where it is instantiated, as in: template class Scale<float>;"
        )
    return table


def half_flags(command: Sequence[str]) -> list[str]:
    """Return the flags under which a compiler rounds halves after every operation, not once per expression."""
    if is_clang(command):
        return ["-ffloat16-excess-precision=none"]
    version = GCC_VERSION.search(compiler_version(command).partition("\n")[0])
    return ["-fexcess-precision=16"] if version and int(version.group(1)) >= FIRST_GCC_WITH_EXCESS_PRECISION else []


def _compile(
    source: Path, copy: Path, library: Path, command: Sequence[str], chosen: Sequence[str], flags: Sequence[str], *, may_fail: bool = False
) -> Path:
    """Return the table of `copy`, the adapted text of `source`, compiled by `command` with the `chosen` and further flags."""
    key_flags = [*common_flags(command), *chosen, *PRELUDE, *flags]
    options = _options(source, command, chosen, flags)
    text = _text_without_preprocessing(source, copy, [*chosen, *flags], library)
    if text is None:
        text = run_compiler([*command, *options, "-E", "-P", str(copy)], source.name)
    key = digest([text, *command, compiler_version(command), *key_flags, machine_id(), str(library), _table_writers()])
    return _cached_table(key, lambda to: _build(copy, to, [*command, *options], library, is_clang(command)), may_fail=may_fail)


def _text_without_preprocessing(source: Path, copy: Path, flags: Sequence[str], library: Path) -> str | None:
    """Return the text of a source without comments, if it can replace the preprocessed text in the cache key; else None.

    It can if the source includes only headers of C++, and headers of the emulator, whose contents determine the name of `library`.
    """
    cached = library.parents[1].name.startswith("emulator-")
    harmless = all(flag.startswith(HARMLESS) and not flag.startswith("-Wp,") for flag in flags)
    if not cached or not harmless or any(os.environ.get(name) for name in INCLUDE_PATHS):
        return None
    return without_comments(copy.read_text(errors="surrogateescape"), EMULATOR / "include", source.resolve().parent)


def _options(source: Path, command: Sequence[str], chosen: Sequence[str], flags: Sequence[str]) -> list[str]:
    include = ["-isystem", str(EMULATOR / "include"), "-I", str(source.resolve().parent)]
    return [*common_flags(command), *chosen, *PRELUDE, *flags, *include]


def _table_writers() -> bytes:
    """Return the source of the modules that write tables, for the cache key."""
    return b"".join((EMULATOR / name).read_bytes() for name in ("popc.py", "adapted.py", "dwarf.py", "refused.py", "sources.py"))


def _build(source: Path, folder: Path, command: Sequence[str], library: Path, clang: bool) -> None:
    from snnc.backends.emulator.adapted import compile_adapted  # not needed if the cache has the table

    output, object_file = folder / LIBRARY, folder / OBJECT
    debug = ["-gdwarf-4", "-fno-eliminate-unused-debug-types", "-fno-semantic-interposition"]
    debug += ["-fstandalone-debug"] if clang else ["-fno-var-tracking"]  # only types are read from the debug information
    rest = [*debug, "-c", "-o", str(object_file)]
    flags = list(command)
    if not clang and HALF_VECTORS.search(source.read_text(errors="replace")):
        flags.append(HALF_CLASSES)
    with temporary_folder("snnc-codelets-") as scratch:
        while True:
            accepted = compile_adapted(source, Path(scratch), flags, rest, clang)
            _link([object_file], output, command, library)
            types = _types(output)
            # HALF_CLASSES makes vectors of halves classes. If a template argument in a vertex's name is still spelled as such a class, not
            # as in Poplar (half2), the program would not find the vertex; the file is compiled again with the compiler's own vectors.
            if HALF_CLASSES not in accepted.flags or not any("snnc_vector" in vertex.name for vertex in types):
                break
            flags = [flag for flag in accepted.flags if flag != HALF_CLASSES]
    if accepted.refused is not None:
        others = f" and {', '.join(sorted(accepted.refused))}" if accepted.refused else ""
        print(f"popc: {source.name} contains assembly of an IPU{others}; a vertex that reaches it stops the run", file=sys.stderr)
    _write_table(folder, types)


def _link(objects: Sequence[Path], output: Path, command: Sequence[str], library: Path) -> None:
    rest = ["-shared", str(library), f"-Wl,-rpath,{library.parent}", "-o", str(output)]
    run_compiler([*command, *map(str, objects), *rest], ", ".join(path.name for path in objects))


def _types(output: Path) -> list[VertexType]:
    from snnc.backends.emulator.dwarf import vertex_types  # not needed if the cache has the table

    return vertex_types(output)


def _write_table(folder: Path, types: Sequence[VertexType]) -> None:
    rows: list[tuple[object, ...]] = [(f"{FIRST_WORD.decode()}1",), ("library", LIBRARY)]
    for vertex in types:
        rows.append(("vertex", vertex.name, vertex.kind, vertex.size, vertex.address, vertex.code_bytes))
        rows += [("code", name, size) for name, size in vertex.shared_code.items()]
        rows += [("field", f.name, f.offset, f.kind, f.direction, f.type, f.layout, f.alignment) for f in vertex.fields]
    (folder / TABLE).write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))


def _copy_out(table: Path, output: Path) -> Path:
    """Copy the table, its library and its object to the caller's path.

    The copied table contains the absolute path of the library, because some build files then copy only the table to another folder.
    """
    if output.is_dir() or not output.suffix:
        output = output / TABLE
    output.parent.mkdir(parents=True, exist_ok=True)
    library, object_file = (output.with_name(output.name + end) for end in (".so", ".o"))
    shutil.copy(table.with_name(LIBRARY), library)
    if table.with_name(OBJECT).is_file():
        shutil.copy(table.with_name(OBJECT), object_file)
    output.write_text(table.read_text().replace(f"library\t{LIBRARY}", f"library\t{library.name}\t{library.resolve()}", 1))
    return output


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="popc", description="Compile codelets for the emulator. Flags of the C++ compiler are passed on.", allow_abbrev=False
    )
    parser.add_argument("sources", type=Path, nargs="+", metavar="source", help="C++ file, or table (.gp) that popc wrote")
    parser.add_argument("-o", dest="output", type=Path, help="file for the table, or folder")
    parser.add_argument("--library", type=Path, help="libpoplar.so (default: the cached one, built if missing)")
    parser.add_argument("--flags", default="", help="flags for the C++ compiler, as one text")
    parser.add_argument("-I", dest="include", action="append", default=[], metavar="DIR")
    parser.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]")
    parser.add_argument("-S", "--S", dest="assembly", action="store_true", help="write assembly of this machine")
    parser.add_argument("--target", "-target", default="", help="accepted and ignored: codelets run on this machine")
    parser.add_argument("--list-targets", action="store_true", help="print the names of targets")
    parser.add_argument("-v", "--version", action="store_true", help="print the versions of the API and of the C++ compiler")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0 on success."""
    parser = _parser()
    words = set(sys.argv[1:] if arguments is None else arguments)
    if "--list-targets" in words:
        print(",".join(TARGETS))
        return 0
    if {"-v", "--version"} & words:
        print(f"POPLAR version {API_VERSION} (snnc emulator)\n{compiler_version(compiler()).splitlines()[0]}")
        return 0
    options, others = parser.parse_known_args(arguments)
    _forget_own_headers()
    flags = [*shlex.split(options.flags), *(f"-I{d}" for d in options.include), *(f"-D{d}" for d in options.define)]
    # The emulator chooses the level of optimisation: results must not depend on it.
    flags += [flag for flag in others if not flag.startswith(("-O", "-g", "-m"))]
    try:
        written = _run(options, flags)
    except SnncError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"table: {written.resolve()}")
    return 0


def _run(options: argparse.Namespace, flags: Sequence[str]) -> Path:
    """Compile and link as the options say; return the path of the table or, with ``-S``, of the assembly."""
    inputs, output = _codelets(options.sources, options.output is not None), options.output
    if options.assembly:
        assembly = inputs[0].with_suffix(".s") if output is None else output
        command = compiler()
        with temporary_folder("snnc-codelets-") as folder:
            copy = portable_copy(inputs[0], Path(folder))
            every = [*command, *_options(inputs[0], command, _chosen_flags(), flags)]
            run_compiler([*every, "-S", str(copy), "-o", str(assembly)], inputs[0].name)
        return assembly
    if options.library is None:
        from snnc.backends.emulator.build import library as built  # takes time

        library = built().resolve()
    else:
        library = options.library.resolve()
    if not inputs:
        with temporary_folder("snnc-codelets-") as folder:
            empty = Path(folder) / "assembly.cpp"
            empty.touch()
            return _copy_out(_compiled(empty, library, flags), output)
    if len(inputs) > 1 or _is_table(inputs[0]):
        objects = (_object(file, library, flags) for file in inputs)
        # Build files compile a source once for each target; here the objects are equal.
        table = _joined(list({path.read_bytes(): path for path in objects}.values()), library)
    else:
        table = _compiled(inputs[0], library, flags)
    if output is None:
        return _with_vertices(table, ", ".join(file.name for file in inputs))
    return _copy_out(table, output)  # also without vertices: the source may define functions that a later call links


def _codelets(sources: Sequence[Path], may_be_empty: bool) -> list[Path]:
    """Return the sources and tables except assembly, which cannot run here; print a note for each skipped file."""
    for source in sources:
        if not source.is_file():
            raise BuildError(f"{source}: no such file")
        if source.suffix.lower() == ".s":
            vertices = ", ".join(dict.fromkeys(ASSEMBLED_VERTEX.findall(source.read_text(errors="replace"))))
            which = f"; if the program uses {vertices}, the C++ version runs, which may be empty" if vertices else ""
            print(f"popc: {source.name} is IPU assembly and is skipped{which}", file=sys.stderr)
    inputs = [source for source in sources if source.suffix.lower() != ".s"]
    if not inputs and not may_be_empty:
        raise BuildError("assembly of an IPU cannot run on the emulator; give the C++ version of the codelets")
    return inputs


def _forget_own_headers() -> None:
    """Remove the emulator's headers, which ``enable.sh`` adds, from ``CPATH``; popc passes them to the compiler as system headers."""
    paths = os.environ.pop("CPATH", "").split(os.pathsep)
    others = [path for path in paths if path and not (Path(path) / "poplar" / "Vertex.hpp").exists()]
    if others:
        os.environ["CPATH"] = os.pathsep.join(others)


if __name__ == "__main__":
    sys.exit(main())
