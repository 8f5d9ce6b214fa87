"""Replace instructions that only an IPU has, in the sources of codelets: inline assembly, and compiler builtins that the emulator lacks.

Each of these (*refused*) instructions becomes a call that ends the run with an error, so that the other vertices of the file can be used.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

ABOUT_ASSEMBLY = re.compile(
    r"Assembler messages:|impossible constraint in .asm|inconsistent operand constraints in an .asm"
    r"|(?:unknown|invalid) register name|instruction mnemonic|undefined named operand|error in backend|invalid operand in inline asm"
)
"""Errors of GCC and Clang about inline assembly of another machine."""
UNKNOWN_BUILTIN = re.compile(r"error: [^\n]*[‘'](__builtin_ipu_\w+)[’']")
LINE_MARKER = re.compile(r'^# (\d+) "((?:\\.|[^"\\])*)"([ \d]*)$', re.MULTILINE)
SYSTEM = "3"
"""Flag of a line marker: the text comes from a system header."""
TOKEN = re.compile(
    r'^\# \d+ "(?:\\.|[^"\\])*"[ \d]*$'
    r'|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![\w])\'(?:\\.|[^\'\\\n])*\''
    r"|\b(?:asm|__asm__|__asm)\b|\b__builtin_ipu_\w+|[()]",
    re.MULTILINE | re.DOTALL,
)
"""Line markers, strings, characters, assembly, builtins of an IPU, and parentheses."""
QUALIFIERS = re.compile(r"(?:\s|\bvolatile\b|\b__volatile__\b|\b__volatile\b|\binline\b|\bgoto\b)*\(")
TEMPLATE = re.compile(r'\s*(?:R"([^(\s]*)\((.*?)\)\1"|"((?:\\.|[^"\\\n])*)")', re.DOTALL)
DECLARED = re.compile(r"(\w+)\s*$")
"""A name before ``asm``: a variable in a register, or one of :data:`STATEMENTS`."""
STATEMENTS = ("else", "do")
LONGEST_NAME = 200
"""Number of characters before ``asm`` that are searched for a name."""
LONGEST_QUOTE = 60
"""Number of characters of an instruction that a message quotes."""

DECLARATIONS = """# 1 "refused" 1 3
extern "C" [[noreturn]] void snnc_refuse(const char *instruction);
struct snnc_refused {
  const char *instruction;
  struct Result {
    template <class T> operator T() const { snnc_refuse(""); }
  };
  template <class... T> Result operator()(const T &...) const { snnc_refuse(instruction); }
};
"""


@dataclass
class _Rewriter:
    """A position in a preprocessed source, and the changed text so far.

    `changed` contains the changed text up to position `copied`. At position `line_at` begins line `line` of the author's `file`, or of a
    `system` header.
    """

    text: str
    changed: list[str] = field(default_factory=list)
    copied: int = 0
    file: str = ""
    line: int = 1
    line_at: int = 0
    system: bool = True

    def place(self, at: int) -> str:
        line = self.line + self.text.count("\n", self.line_at, at)
        return f"{self.file.rpartition('/')[2]}:{line}"

    def replace(self, begin: int, end: int, by: str) -> None:
        """Replace the text from `begin` to `end`; its line breaks stay."""
        self.changed += [self.text[self.copied : begin], by, "\n" * self.text.count("\n", begin, end)]
        self.copied = end

    def mark(self, match: re.Match[str]) -> None:
        """Read the file and line of the text after a line marker."""
        marker = LINE_MARKER.match(match.group())
        if marker is not None:
            self.line, self.line_at = int(marker.group(1)), match.end() + 1
            self.file, self.system = marker.group(2), SYSTEM in marker.group(3).split()


def without_refused(preprocessed: str, builtins: frozenset[str]) -> str:
    """Return a preprocessed source in which instructions of an IPU are calls of ``snnc_refuse``, which ends the run.

    Instructions of an IPU are assembly, and the `builtins` that the compiler does not know. System headers stay unchanged, and so does
    empty assembly, which is a barrier for the compiler. Names of registers in declarations of variables (``register int *x asm("$m2")``)
    are removed.

    Examples
    --------
    >>> text = '# 7 "a.cpp"\\nvoid f() { asm volatile("trap 0" : : "r"(g(1)) : "memory"); asm("" ::: "memory"); }\\n'
    >>> print(without_refused(text, frozenset()).removeprefix(DECLARATIONS))
    # 7 "a.cpp"
    void f() { snnc_refuse("a.cpp:7: assembly of an IPU (trap 0)"); asm("" ::: "memory"); }
    <BLANKLINE>
    """
    rewriter, at = _Rewriter(preprocessed), 0
    while (match := TOKEN.search(preprocessed, at)) is not None:
        at = match.end()
        if match.group().startswith("# "):
            rewriter.mark(match)
        elif not rewriter.system and match.group() in builtins:
            what = f"{rewriter.place(match.start())}: {match.group()}, which only an IPU has"
            rewriter.replace(match.start(), match.end(), f"snnc_refused{{{_quoted(what)}}}")
        elif not rewriter.system and match.group() in ("asm", "__asm__", "__asm"):
            at = _replace_assembly(rewriter, match)
    return DECLARATIONS + "".join([*rewriter.changed, preprocessed[rewriter.copied :]])


def _replace_assembly(rewriter: _Rewriter, match: re.Match[str]) -> int:
    """Replace an assembly statement, unless it is empty; return the position after it."""
    opening = QUALIFIERS.match(rewriter.text, match.end())
    if opening is None:
        return match.end()
    end = _closing(rewriter.text, opening.end())
    first = TEMPLATE.match(rewriter.text, opening.end())
    lines = [] if first is None else (first.group(2) or first.group(3) or "").replace("\\n", "\n").replace("\\t", " ").splitlines()
    instructions = [line.strip() for line in lines if line.strip(" \t{};")]
    if not instructions:
        return end
    before = DECLARED.search(rewriter.text, max(0, match.start() - LONGEST_NAME), match.start())
    if before is not None and before.group(1) not in STATEMENTS:
        rewriter.replace(match.start(), end, "")  # register int *x asm("$m2");
    else:
        what = f"{rewriter.place(match.start())}: assembly of an IPU ({instructions[0][:LONGEST_QUOTE]})"
        rewriter.replace(match.start(), end, f"snnc_refuse({_quoted(what)})")
    return end


def _closing(text: str, at: int) -> int:
    """Return the position after the parenthesis that closes the one before `at`."""
    depth = 1
    while depth and (match := TOKEN.search(text, at)) is not None:
        at = match.end()
        depth += {"(": 1, ")": -1}.get(match.group(), 0)
    return at


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
