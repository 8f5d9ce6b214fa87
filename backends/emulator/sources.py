"""Codelet sources as a compiler of this machine takes them."""

from __future__ import annotations

import re
from pathlib import Path

SUPERVISOR = re.compile(r"__attribute__\s*\(\(\s*target\s*\(\s*\"(?:supervisor|worker)\"\s*\)\s*\)\)")
LONG = re.compile(r"\blong\b(?:\s+(long|double)\b)?(\s+int\b)?")
# A comment, a string or a character stays as it is.
TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)


def portable(text: str) -> str:
    """Return codelets without what only an IPU's compiler knows, line by line where they were.

    `long` has 32 bits on an IPU, so it becomes `int`; attributes that choose between worker and supervisor code go.

    Examples
    --------
    >>> portable('unsigned long a; long long b; __attribute__((target("supervisor"))) void f(); // long')
    'unsigned int a; long long b;  void f(); // long'
    """
    text = SUPERVISOR.sub(_blank, text)
    made, at = [], 0
    for match in TEXT.finditer(text):
        made += [_shorten(text[at : match.start()]), match.group()]
        at = match.end()
    return "".join([*made, _shorten(text[at:])])


def _blank(match: re.Match[str]) -> str:
    return "\n" * match.group().count("\n")


def _shorten(code: str) -> str:
    return LONG.sub(lambda match: match.group() if match.group(1) else "int" + "\n" * match.group().count("\n"), code)


def portable_copy(source: Path, folder: Path) -> Path:
    """Return the source, or a copy in `folder` that names the source's lines, where it had to be changed."""
    text = source.read_text(errors="surrogateescape")
    changed = portable(text)
    if changed == text:
        return source
    copy = folder / source.name
    name = str(source.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    copy.write_text(f'#line 1 "{name}"\n{changed}', errors="surrogateescape")
    return copy


def is_codelet(text: str) -> bool:
    """Tell codelets from host code: they include ``poplar/Vertex.hpp`` and nothing that builds graphs.

    Examples
    --------
    >>> is_codelet('#include <poplar/Vertex.hpp>')
    True
    >>> is_codelet('#include <poplar/Vertex.hpp>\\n#include <poplar/Graph.hpp>')
    False
    """
    headers = set(re.findall(r"#\s*include\s*[<\"]poplar/(\w+)\.hpp", text))
    return "Vertex" in headers and not headers & {"Graph", "Engine", "Device", "DeviceManager", "IPUModel", "Program"}
