"""Emitted Poplar programs use only documented interfaces: docs/reference/poplar-api.md lists each name with its page."""

import importlib.resources
import re
from pathlib import Path

import pytest
from poplar_projects import project

from snnc.backends.emulator.build import include_dir

PAGE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "poplar-api.md"
LISTED = re.compile(r"^\| \[[^\]]+\]\(https://docs\.graphcore\.ai/[\w./-]+\) \| (.+) \|$", re.M)
COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
FOR_THE_EMULATOR = re.compile(
    r"^#ifndef SNNC_POPLAR_SDK\n.*?^#endif\n|^#if __has_include\(<poplar/EmulatorProfile\.hpp>\)\n.*?^#endif\n", re.S | re.M
)
"""Parts that a build against the SDK leaves out."""
EMULATOR_HEADERS = {"EmulatorModel.hpp", "EmulatorProfile.hpp", "StandardIncludes.hpp", "Builtins.hpp", "ShortVectors.hpp"}
FUNCTION = re.compile(r"\b(\w+)\s*\(")
TYPE = re.compile(r"\b(?:class|struct|enum class|enum)\s+(\w+)|\busing (\w+) =|\bSNNC_TYPE (\w+)|\bSNNC_POPLAR_ERROR\((\w+)\)")
ENUMERATION = re.compile(r"\benum (?:class )?\w+ (?:: \w+ )?\{([^}]*)\}")
FIELD = re.compile(r"(\w+)(?: = [^;,(){}]*)?[;,]")
QUALIFIED = re.compile(r"(?<![\w:])(?:poplar|program|poputil|popops|poplin|poprand|popnn|gcl)((?:::[A-Za-z_]\w*)+)")
CALLED = re.compile(r"(?:\.|->)\s*(?:template\s+)?(\w+)\s*(?:<[\w:, ]*>)?\(")
TAKEN = re.compile(r"(?:\.|->)(\w+)\b(?!\s*\()")
CAPITAL = re.compile(r"(?<![\w.>:])([A-Z]\w+)\b")
DEVICE = re.compile(r"\b(__builtin_ipu_\w+|half|quarter|(?:float|half|short|ushort|int|uint|char|uchar|quarter)[248])\b|\bipu::(\w+)")
INCLUDE = re.compile(r"#include <((?:poplar|pop\w+|gcl|ipu\w*)[/\w.]*)>")
STANDARD = {
    "at", "back", "begin", "count", "data", "empty", "end", "epsilon", "find", "front", "insert", "lock", "push_back", "reset", "resize",
    "size", "str", "substr", "what", "write",
}  # fmt: skip
"""Members of the standard library's classes too."""


def code_of(text):
    """C++ without the emulator's parts, comments and texts; of a template, without what Jinja fills in."""
    text = re.sub(r"\{%.*?%\}|\{#.*?#\}", " ", text, flags=re.S)
    text = re.sub(r"\{\{.*?\}\}", "filled", text, flags=re.S)
    return COMMENT_OR_TEXT.sub(" ", FOR_THE_EMULATOR.sub("", text))


OWN = re.compile(r"\b(?:class|struct|enum class|enum|using) (\w+)|^  [\w:<>*& ]+ [*&]?(\w+)\(", re.M)


def own_names(codes):
    """Return the types that sources define, and the functions of their own classes."""
    return {name for code in codes for found in OWN.findall(code) for name in found if name}


class Interface:
    """What the emulator's Poplar headers declare: types and constants, functions, and the fields of a model."""

    def __init__(self):
        folder = include_dir() / "poplar"
        codes = {h.name: code_of(h.read_text()) for h in folder.glob("*.hpp") if h.name not in EMULATOR_HEADERS}
        self.functions = {name for code in codes.values() for name in FUNCTION.findall(code)}
        self.types = {name for code in codes.values() for found in TYPE.findall(code) for name in found if name}
        self.types |= set(re.findall(r"\w+", " ".join(e for code in codes.values() for e in ENUMERATION.findall(code))))
        self.fields = {name for line in codes["IPUModel.hpp"].splitlines() if "(" not in line for name in FIELD.findall(line)}

    def used(self, text, own=frozenset()):
        """Return the names of Poplar's interface in a source, and its headers."""
        code = code_of(text)
        names = {part for path in QUALIFIED.findall(code) for part in path.split("::") if part}
        names |= {name for name in CALLED.findall(code) if name in self.functions and name not in own | STANDARD}
        names |= {name for name in TAKEN.findall(code) if name in self.fields and name not in own}
        names |= {name for name in CAPITAL.findall(code) if name in self.types and name not in own}
        if "poplar/Vertex.hpp" in text or text.lstrip().startswith("{%") or "SNNC_COUNT_CYCLES" in text:
            names |= {name for found in DEVICE.findall(code) for name in found if name}
        return names, set(INCLUDE.findall(code))


@pytest.fixture(scope="module")
def listed():
    """Return the last part of each listed name."""
    return {name.split("::")[-1] for names in LISTED.findall(PAGE.read_text()) for name in re.findall(r"[\w:]+", names)}


def sources():
    folder = Path(str(importlib.resources.files("snnc.templates"))) / "poplar"
    kinds = (".jinja", ".cpp", ".hpp")
    files = [p for p in sorted(folder.rglob("*")) if p.suffix in kinds and ".txt" not in p.suffixes]
    for name in ("exact", "recurrent", "hostile"):
        files += [p for p in sorted(project(name).folder.iterdir()) if p.suffix in kinds]
    return files


def test_every_name_that_emitted_sources_use_is_documented(listed):
    interface, unknown = Interface(), {}
    texts = {file: file.read_text() for file in sources()}
    own = own_names(map(code_of, texts.values()))
    for file, text in texts.items():
        names, headers = interface.used(text, own)
        missing = sorted(names - listed) + sorted(h for h in headers if f"`{h}`" not in PAGE.read_text())
        if missing:
            unknown[file.name] = missing
    assert not unknown


def test_a_name_that_is_not_listed_is_found(listed):
    interface = Interface()
    text = 'void f(poplar::Graph &g) { g.getSortedContiguousRegions(t, {}); poplar::program::CrossReplicaCopy(a, b, {}); } // g.cloneN(t)\n'
    names, _ = interface.used(text)
    assert names - listed == {"getSortedContiguousRegions", "CrossReplicaCopy"}
    emulated = "#ifndef SNNC_POPLAR_SDK\nmodel.emulator = poplar::EmulatorModel();\n#endif\n"
    assert interface.used(emulated)[0] == set()
    assert interface.used("poplar::EmulatorModel m;")[0] == {"EmulatorModel"}


