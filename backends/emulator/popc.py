"""Compile a file of codelets to a shared library and a table of its vertex types.

``python -m snnc.backends.emulator.popc codelets.cpp -o folder`` (or ``-o codelets.gp``) writes the library and the table;
without ``-o`` both go to the cache. The last line printed is ``table: <path>``.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from snnc.backends.emulator.toolchain import (
    EMULATOR,
    cache_dir,
    common_flags,
    compiler,
    compiler_version,
    digest,
    is_clang,
    machine_id,
    publish,
    run_compiler,
    scratch_beside,
)

# Products and sums are rounded one by one, as the instructions that the cost model counts do, whatever the host fuses.
DEFAULT_FLAGS = "-O2 -march=native -fno-math-errno -fno-trapping-math -ffp-contract=off"
# The names by which discovery finds and calls compute() whether or not the file itself calls it.
KEEP_COMPUTE = "-Dcompute=__attribute__((used)) compute"


def compile_codelets(source: Path, library: Path, flags: Sequence[str] = ()) -> Path:
    """Compile codelets, or find them in the cache, and return the path of their table.

    Parameters
    ----------
    source
        C++ file.
    library
        ``libpoplar.so`` to link against.
    flags
        Flags of the program (``-D``, ``-I``, …), behind the default ones and ``$SNNC_CODELET_FLAGS``.

    Raises
    ------
    BuildError
        When the file does not compile, or holds no vertex that can be run.
    """
    command = compiler()
    chosen = shlex.split(os.environ.get("SNNC_CODELET_FLAGS", DEFAULT_FLAGS))
    kept = [*common_flags(command), *chosen, "-D__POPC__", KEEP_COMPUTE, *flags]
    options = [*kept, "-isystem", str(EMULATOR / "include"), "-I", str(source.resolve().parent)]
    text = run_compiler([*command, *options, "-E", "-P", str(source)], source.name)
    key = digest([text, *command, compiler_version(command), *kept, machine_id(), str(library), _own_text()])
    target = cache_dir() / "codelets" / key
    table = target / "codelets.gp"
    if not table.exists():
        scratch = scratch_beside(target)
        try:
            _build(source, scratch, [*command, *options], library, is_clang(command))
            publish(scratch, target)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return table


def _own_text() -> bytes:
    """Return the text of the discovery, a change of which makes cached tables stale."""
    return (EMULATOR / "popc.py").read_bytes() + (EMULATOR / "dwarf.py").read_bytes()


def _build(source: Path, folder: Path, command: Sequence[str], library: Path, clang: bool) -> None:
    output = folder / "codelets.so"
    debug = ["-gdwarf-4", "-fno-eliminate-unused-debug-types", "-fno-semantic-interposition"]
    debug += ["-fstandalone-debug"] if clang else []
    link = ["-shared", str(library), f"-Wl,-rpath,{library.parent}"]
    run_compiler([*command, *debug, str(source), "-o", str(output), *link], source.name)
    from snnc.backends.emulator.dwarf import vertex_types  # not needed when the cache has the table

    types = vertex_types(output)
    if not types:
        from snnc.compiler.errors import BuildError

        raise BuildError(f"{source.name} holds no class derived from poplar::Vertex or poplar::MultiVertex")
    lines = ["popc\t1", "library\tcodelets.so"]
    for vertex in types:
        lines.append("\t".join(map(str, ("vertex", vertex.name, vertex.kind, vertex.size, vertex.address, vertex.code_bytes))))
        lines += [f"code\t{name}\t{size}" for name, size in vertex.shared_code.items()]
        lines += [
            "\t".join(map(str, ("field", f.name, f.offset, f.kind, f.direction, f.type, f.layout, f.alignment))) for f in vertex.fields
        ]
    (folder / "codelets.gp").write_text("\n".join(lines) + "\n")


def _copy_out(table: Path, output: Path) -> Path:
    """Copy a table and its library to where the caller wants them."""
    if output.suffix == ".gp":
        output.parent.mkdir(parents=True, exist_ok=True)
        compiled = output.with_suffix(".gp.so")
    else:
        output.mkdir(parents=True, exist_ok=True)
        compiled, output = output / "codelets.so", output / "codelets.gp"
    shutil.copy(table.with_name("codelets.so"), compiled)
    output.write_text(table.read_text().replace("library\tcodelets.so", f"library\t{compiled.name}"))
    return output


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 when all went well."""
    parser = argparse.ArgumentParser(prog="popc", description="Compile codelets for the emulator.")
    parser.add_argument("source", type=Path)
    parser.add_argument("-o", dest="output", type=Path, help="folder, or file ending in .gp")
    parser.add_argument("--library", type=Path, help="libpoplar.so (default: the cached one, built when missing)")
    parser.add_argument("--flags", default="", help="flags for the C++ compiler, as one text")
    options = parser.parse_args(arguments)
    from snnc.compiler.errors import SnncError

    try:
        library = options.library
        if library is None:
            from snnc.backends.emulator.build import library as built

            library = built()
        table = compile_codelets(options.source, library.resolve(), shlex.split(options.flags))
    except SnncError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"table: {table if options.output is None else _copy_out(table, options.output).resolve()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
