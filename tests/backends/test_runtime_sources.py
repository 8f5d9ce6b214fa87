"""What lies under ``templates/<target>/runtime`` is no template: plain sources that compile by themselves, whatever the network."""

from functools import partial
from pathlib import Path

import pytest

from snnc.backends.cuda.build import HOST_FLAGS
from snnc.backends.emulator.build import include_dir
from snnc.backends.poptorch.build import OPERATION_FLAGS
from snnc.backends.poptorch.build import include_dir as popart_include_dir
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, kept, run_compiler
from snnc.backends.toolchain.objects import all_of, source_key

TEMPLATES = Path(__file__).parents[2] / "templates"
CPP = (".h", ".hpp", ".cpp", ".cu", ".cuh")
EMULATOR = ("-isystem", str(include_dir()))
POPART = ("-isystem", str(popart_include_dir()), *OPERATION_FLAGS)
TARGETS = {
    "common": ((), ()),
    "cpu": (("common",), ("-march=native",)),
    "cuda": (("common",), HOST_FLAGS),
    "poplar": (("common",), EMULATOR),
    "poptorch": (("poplar", "common"), (*EMULATOR, *POPART)),
}
"""Targets whose files those of a target include, and flags. Sources for a GPU are checked as the processor runs them."""


def runtime(target):
    return TEMPLATES / target / "runtime"


def sources(target):
    """Files of a target; a header that its own source includes first is compiled there."""
    found = [f for f in sorted(runtime(target).glob("*")) if f.suffix in CPP]
    firsts = {next((line for line in f.read_text().splitlines() if line.startswith("#include")), "") for f in found if f.suffix == ".cpp"}
    return [f for f in found if f'#include "{f.name}"' not in firsts]


@pytest.mark.parametrize("target", TARGETS)
def test_a_plain_source_compiles_by_itself_without_a_warning(target):
    others, flags = TARGETS[target]
    folders = [runtime(t) for t in (target, *others)]
    command = [*compiler(), *common_flags(compiler()), *flags, *(f"-I{f}" for f in folders), "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    identity = [*command, compiler_version(compiler())]
    headers = {f.name: f.read_bytes() for folder in reversed(folders) for f in folder.glob("*") if f.suffix in CPP}

    def check(source):
        def compile_to(folder):
            run_compiler([*command, "-x", "c++", str(source)], source.name)
            (folder / "compiles").touch()

        return kept(f"object-syntax-{source_key(source, headers, identity)}", "compiles", compile_to)

    assert len(all_of([partial(check, f) for f in sources(target)])) > 2


def test_every_template_holds_jinja():
    plain = [f for f in TEMPLATES.rglob("*.jinja") if not any(mark in f.read_text() for mark in ("{{", "{%", "{#"))]
    assert [f.relative_to(TEMPLATES).as_posix() for f in plain] == []
