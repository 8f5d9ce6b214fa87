"""Change the text of C++ sources so that this machine's compiler accepts them, and recognise codelets and sources that compile alike."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

EMULATOR = Path(__file__).resolve().parent
"""Folder of the emulator: its headers, sources and scripts."""
KEEP_COMPUTE = "-Dcompute=__attribute__((used)) compute"
"""Flag that keeps the method ``compute`` of every vertex in the library, although nothing in the file calls it."""
HALF_CLASSES, ALL_CLASSES = "-DSNNC_HALF_VECTOR_CLASSES", "-DSNNC_VECTOR_CLASSES"
"""Flags that define vectors of halves, or all vectors, as classes. GCC compiles classes of halves to faster code than its own vectors."""
TARGET_ATTRIBUTE = re.compile(r"__attribute__\s*\(\(\s*target\s*\(\s*\"(?:supervisor|worker)\"\s*\)\s*\)\)")
EXT_VECTOR = re.compile(
    r"typedef\s+([\w ]+?)\s+(\w+)\s+__attribute__\s*\(\(\s*(?:__)?ext_vector_type(?:__)?\s*\(\s*(\w+)\s*\)\s*\)\)\s*;"
    r"|using\s+(\w+)\s*=\s*([\w ]+?)\s+__attribute__\s*\(\(\s*(?:__)?ext_vector_type(?:__)?\s*\(\s*(\w+)\s*\)\s*\)\)\s*;"
)
LONG = re.compile(r"\blong\b(?:\s+(long|double)\b)?(\s+int\b)?")
CAPTURE_DEFAULT = re.compile(r"\[\s*[=&]\s*(?:,\s*|(?=\]))")
LINE_MARKER = re.compile(r'# (\d+) "((?:\\.|[^"\\])*)"')
NOT_LOCAL = re.compile(r"^(.+?):(\d+):(?:\d+:)? error: non-local lambda expression cannot have a capture-default", re.MULTILINE)
DESIGNATOR = re.compile(r"^(.+?):(\d+):(\d+): error: designator order for field .(?:\w+::)*(\w+). does not match", re.MULTILINE)
# Comments, strings and characters.
TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.DOTALL)
INCLUDE = re.compile(r"#\s*include\b[ \t]*(?:<([^>\n]*)>)?")
NEEDS_PREPROCESSOR = re.compile(
    r"""\bR"|%:|\?\?[=/]|\d'[\da-fA-F]|#\s*(?:include_next|import)|\b(?:_Pragma|assert|__has_include|__LINE__|__FILE__|__COUNTER__|__DATE__|__TIME__)\b"""
)
"""Constructs whose meaning depends on line numbers or on other files, or that `TEXT` cannot parse, such as raw strings."""


def portable(text: str) -> str:
    """Return the text of codelets without constructs that only an IPU's compiler accepts; line numbers do not change.

    ``long``, which has 32 bits on an IPU, becomes ``int``; attributes that choose between worker and supervisor code are removed; Clang's
    vector types become classes.

    Examples
    --------
    >>> portable('unsigned long a; long long b; __attribute__((target("supervisor"))) void f(); // long')
    'unsigned int a; long long b;  void f(); // long'
    >>> portable("typedef float f2 __attribute__((ext_vector_type(2)));")
    'using f2 = snnc_vector<float, 2>;'
    """
    text = EXT_VECTOR.sub(_as_class, TARGET_ATTRIBUTE.sub(_blank, text))
    parts, at = [], 0
    for match in TEXT.finditer(text):
        parts += [_shorten(text[at : match.start()]), match.group()]
        at = match.end()
    return "".join([*parts, _shorten(text[at:])])


def _blank(match: re.Match[str]) -> str:
    """Return the line breaks of a match, so that line numbers do not change."""
    return "\n" * match.group().count("\n")


def _as_class(match: re.Match[str]) -> str:
    element, name, size, other_name, other_element, other_size = match.groups()
    return f"using {name or other_name} = snnc_vector<{element or other_element}, {size or other_size}>;" + _blank(match)


def _shorten(code: str) -> str:
    """Return code, without strings and comments, in which ``long`` is ``int``; ``long long`` and ``long double`` stay."""
    return LONG.sub(lambda match: match.group() if match.group(1) else "int" + "\n" * match.group().count("\n"), code)


def portable_copy(source: Path, folder: Path) -> Path:
    """Return the source or, if :func:`portable` changes it, a changed copy in `folder` with the source's name and line numbers."""
    text = source.read_text(errors="surrogateescape")
    changed = portable(text)
    if changed == text:
        return source
    copy = folder / source.name
    name = str(source.resolve()).replace("\\", "\\\\").replace('"', '\\"')
    copy.write_text(f'#line 1 "{name}"\n{changed}', errors="surrogateescape")
    return copy


def without_comments(text: str, headers: Path, folder: Path) -> str | None:
    """Return the text of codelets without comments and empty lines; sources with equal results compile to equal code.

    The result is None if the source includes headers other than those of C++ and of the emulator (in the folder `headers`), if its own
    `folder` contains a header of such a name, which would be included instead, or if it contains :data:`NEEDS_PREPROCESSOR`.

    Examples
    --------
    >>> nowhere = Path("/nowhere")
    >>> without_comments("#include <cmath> // for sin\\n\\nfloat f(); /* two\\nlines */ int g;\\n", nowhere, nowhere)
    '#include <cmath>\\nfloat f();   int g;'
    >>> without_comments('#include "own.hpp"', nowhere, nowhere) is None
    True
    """
    code = TEXT.sub(lambda match: " " if match.group().startswith("/") else match.group(), text.replace("\\\n", ""))
    names = INCLUDE.findall(code)
    if NEEDS_PREPROCESSOR.search(code) or not all(_is_known(name, headers, folder) for name in names):
        return None
    return "\n".join(line.rstrip() for line in code.splitlines() if line.strip() and not line.startswith("#line "))


def _is_known(name: str, headers: Path, folder: Path) -> bool:
    return bool(name) and not (folder / name).exists() and (re.fullmatch(r"[a-z_]+", name) is not None or (headers / name).is_file())


def without_capture_defaults(preprocessed: str, errors: str) -> str:
    """Return a preprocessed source without default captures of lambdas outside of functions, which only older compilers accepted.

    `errors` contains the compiler's messages with the positions of these lambdas.

    Examples
    --------
    >>> errors = "a.hpp:7:10: error: non-local lambda expression cannot have a capture-default"
    >>> without_capture_defaults('# 7 "a.hpp"\\nauto f = [=](int x) { return x; };\\nauto g = [=] {};\\n', errors)
    '# 7 "a.hpp"\\nauto f = [](int x) { return x; };\\nauto g = [=] {};\\n'
    """
    refused = {(file, int(line)) for file, line in NOT_LOCAL.findall(errors)}
    file, line, lines = "", 0, []
    for text in preprocessed.splitlines(keepends=True):
        marker = LINE_MARKER.match(text)
        if marker:
            file, line = marker.group(2), int(marker.group(1))
        else:
            text = CAPTURE_DEFAULT.sub("[", text, count=1) if (file, line) in refused else text  # noqa: PLW2901
            line += 1
        lines.append(text)
    return "".join(lines)


def accepted_copy(command: Sequence[str], source: Path, folder: Path | str) -> Path | None:
    """Return a copy of a source in `folder`, changed by :func:`without_capture_defaults`; None if the compiler refuses no lambda."""
    errors = subprocess.run([*command, "-w", "-fsyntax-only", str(source)], capture_output=True, text=True, check=False).stderr
    if not NOT_LOCAL.search(errors):
        return None
    text = subprocess.run([*command, "-E", str(source)], capture_output=True, text=True, check=False).stdout
    copy = Path(tempfile.mkdtemp(dir=folder)) / f"{source.stem}.ii"
    copy.write_text(without_capture_defaults(text, errors))
    return copy


def in_declared_order(source: Path, folder: Path, errors: str) -> Path | None:
    """Return a copy, in `folder`, of a source in which each designated initialiser that GCC refuses is moved to the front.

    `errors` contains the compiler's messages, each with a field and the place where its braces close. The result is None if no message is
    about this source. Repeated calls with the next messages bring all initialisers into the declared order. Clang accepts any order.
    """
    text = source.read_text(errors="surrogateescape")
    line_directive = re.match(r'#line 1 "((?:\\.|[^"\\])*)"\n', text)
    if line_directive:
        name = line_directive.group(1).replace("\\\\", "\\")
    else:
        name = str(source.resolve())
        text = f'#line 1 "{name}"\n{text}'
    lines = text.splitlines(keepends=True)
    changed = text
    # From the last to the first, so that earlier positions stay valid. The directive is lines[0], so lines[n] is line n.
    for file, line, column, field in reversed(DESIGNATOR.findall(errors)):
        if Path(file).name != Path(name).name or int(line) >= len(lines):
            continue
        end = sum(len(part) for part in lines[: int(line)]) + int(column) - 1
        changed = _field_first(changed, end, field)
    if changed == text:
        return None
    copy = folder / f"ordered_{source.name.removeprefix('ordered_')}"
    copy.write_text(changed, errors="surrogateescape")
    return copy


def _field_first(text: str, end: int, field: str) -> str:
    """Return a text in which ``.field = value`` is the first entry of the braces that close at `end`.

    Examples
    --------
    >>> _field_first("S s{.b = f(1, 2), .a = {3}};", 26, "a")
    'S s{.a = {3},.b = f(1, 2)};'
    """
    depth, begin, commas = 0, end, []
    if text[end : end + 1] != "}":
        return text
    while begin > 0:
        begin -= 1
        if text[begin] in ")]}":
            depth += 1
        elif text[begin] in "([{" and depth:
            depth -= 1
        elif text[begin] in "([{":
            break
        elif text[begin] == "," and not depth:
            commas.append(begin)
    edges = [begin, *reversed(commas), end]
    parts = [text[a + 1 : b] for a, b in pairwise(edges)]
    number = next((i for i, part in enumerate(parts) if re.match(rf"\s*\.{field}\b", part)), 0)
    if number == 0:
        return text
    moved = [parts[number].strip(), *parts[:number], *parts[number + 1 :]]
    return text[: begin + 1] + ",".join(moved) + text[end:]


def is_codelet(text: str) -> bool:
    """Return whether a source contains codelets: it includes ``poplar/Vertex.hpp``, but no header for building graphs.

    Examples
    --------
    >>> is_codelet('#include <poplar/Vertex.hpp>')
    True
    >>> is_codelet('#include <poplar/Vertex.hpp>\\n#include <poplar/Graph.hpp>')
    False
    """
    headers = set(re.findall(r"#\s*include\s*[<\"]poplar/(\w+)\.hpp", text))
    return "Vertex" in headers and not headers & {"Graph", "Engine", "Device", "DeviceManager", "IPUModel", "Program"}
