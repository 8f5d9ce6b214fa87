"""Files under ``templates/<target>/runtime`` are no templates: plain sources that compile by themselves, for any network."""

import re
from functools import partial
from pathlib import Path

import pytest
from wide import examples

from snnc.backends.codegen.constants import file_names
from snnc.backends.codegen.source_templates import source_of, source_templates
from snnc.backends.cpu import emit as cpu
from snnc.backends.cuda import emit as cuda
from snnc.backends.cuda.build import HOST_FLAGS
from snnc.backends.emulator.build import include_dir
from snnc.backends.emulator.projects import LEAN_HEADERS
from snnc.backends.native.project_files import TABLES, training_context
from snnc.backends.poplar import emit as poplar
from snnc.backends.poptorch.build import OPERATION_FLAGS
from snnc.backends.poptorch.build import include_dir as popart_include_dir
from snnc.backends.toolchain.cache import cached_file
from snnc.backends.toolchain.compilers import common_flags, compiler, compiler_version, run_compiler
from snnc.backends.toolchain.objects import all_of, source_key
from snnc.compiler.losses import MeanSquaredCount
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.tiles.vertices.cost import EVENT_SWEEP, SAMPLE_SWEEP, SUMMANDS, VALUE_SWEEP

TEMPLATES = Path(__file__).parents[2] / "templates"
CPP = (".h", ".hpp", ".cpp", ".cu", ".cuh")
EMULATOR = (LEAN_HEADERS, "-isystem", str(include_dir()))
POPART = ("-isystem", str(popart_include_dir()), *OPERATION_FLAGS)
TARGETS = {
    "common": ((), ()),
    "native": (("common",), ()),
    "cpu": (("native", "common"), ("-march=native",)),
    "cuda": (("native", "common"), HOST_FLAGS),
    "poplar": (("common",), EMULATOR),
    "poptorch": (("poplar", "common"), (*EMULATOR, *POPART)),
}
"""Targets whose files those of a target include, and flags. Sources for a GPU are checked as the CPU runs them."""
CONSTANTS = {
    "native": file_names(TABLES)[:1],
    "cpu": cpu.CONSTANTS,
    "cuda": cuda.CONSTANTS,
    "poplar": poplar.CONSTANTS,
    "poptorch": poplar.CONSTANTS,
}
SETTINGS = {
    one.name: one
    for loss, optimizer in ((MeanSquaredCount(), SGD(0.1)), (None, Adam(0.1)))
    for one in training_context(loss, optimizer)["settings"]
}
"""Those of all losses and optimisers."""
HALVES = ("halves", "half_states", "half_weights", "half_updates")


def runtime(target):
    return TEMPLATES / target / "runtime"


def sources(target):
    """Files of a target, less those that another one includes before all else: they are compiled by themselves there."""
    found = [f for f in sorted(runtime(target).glob("*")) if f.suffix in CPP]
    firsts = {re.search(r"^#include .*$|\Z", f.read_text(), re.M).group() for f in found}
    return [f for f in found if f'#include "{f.name}"' not in firsts]


def write_generated(target, folder):
    """The headers of constants that the sources of a target include."""
    context = {"constants": CONSTANTS.get(target, ()), "settings": list(SETTINGS.values())}
    for name in ("constants.hpp", "settings.hpp"):
        (folder / name).write_text(source_of(source_templates(), f"common/{name}", context))


@pytest.mark.representative("cpu", "cuda", "poplar")
@pytest.mark.parametrize("target", TARGETS)
def test_a_plain_source_compiles_by_itself_without_a_warning(target, tmp_path):
    """One of each target, unless all cases run: reading headers over and over takes half a minute."""
    write_generated(target, tmp_path)
    others, flags = TARGETS[target]
    folders = [*(runtime(t) for t in (target, *others)), tmp_path]
    command = [*compiler(), *common_flags(compiler()), *flags, "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
    identity = [*command, compiler_version(compiler())]
    command += [f"-I{folder}" for folder in folders]
    headers = {f.name: f.read_bytes() for folder in reversed(folders) for f in folder.glob("*") if f.suffix in CPP}

    def check(source):
        def compile_to(folder):
            run_compiler([*command, "-x", "c++", str(source)], source.name)
            (folder / "compiles").touch()

        return cached_file(f"object-syntax-{source_key(source, headers, identity)}", "compiles", compile_to)

    assert all_of([partial(check, f) for f in sources(target)[: examples(1, None)]])


def test_the_parts_that_all_codelets_share_compile_without_a_codelet(tmp_path):
    """They are printed into one file, in this order, after the numbers of the plan."""
    text = (TEMPLATES / "poplar" / "codelets.cpp.jinja").read_text().partition('{% include "poplar/codelets/')[0]
    sweeps = {"events": EVENT_SWEEP, "values": VALUE_SWEEP, "samples": SAMPLE_SWEEP}
    source = tmp_path / "parts.cpp"
    shared = (
        source_templates()
        .from_string(text)
        .render(title="none", plan={"target": {"workers": 6}}, sweep=sweeps, summands=SUMMANDS, **dict.fromkeys(HALVES, True))
    )
    optional = [(runtime("poplar") / "codelets" / f"{name}.hpp").read_text() for name in ("gradient_helpers", "indexed_runs")]
    source.write_text("\n".join([shared, *optional]))
    command = [*compiler(), *common_flags(compiler()), *EMULATOR, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(source)]
    run_compiler(command, source.name)
    parts = sorted(f.read_text() for f in (runtime("poplar") / "codelets").glob("*"))
    assert [part for part in parts if part not in source.read_text()] == []


@pytest.mark.parametrize("target", CONSTANTS)
def test_a_constant_that_python_prints_is_used_and_defined_nowhere_else(target):
    folders = [TEMPLATES / t for t in (target, *TARGETS[target][0])]
    texts = [f.read_text() for folder in folders for f in folder.rglob("*") if f.is_file()]
    for constant in CONSTANTS[target]:
        assert any(re.search(rf"\b{constant.name}\b", text) for text in texts), constant.name
        assert not any(re.search(rf"\b{constant.name} = ", text) for text in texts), constant.name


@pytest.mark.parametrize("target", CONSTANTS)
def test_sources_name_the_files_of_a_project_by_their_constants(target):
    names = [c.value for c in CONSTANTS[target] if c.name.endswith("_FILE")]
    texts = [f.read_text() for f in runtime(target).glob("*") if f.suffix in CPP]
    assert names
    assert not any(f'{name}"' in text for name in names for text in texts)


def test_every_template_holds_jinja():
    plain = [f for f in TEMPLATES.rglob("*.jinja") if not any(mark in f.read_text() for mark in ("{{", "{%", "{#"))]
    assert [f.relative_to(TEMPLATES).as_posix() for f in plain] == []
