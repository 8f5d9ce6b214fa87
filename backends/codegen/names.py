"""Names from model files, made safe for the comments and strings of emitted code, which contains them nowhere else."""

from __future__ import annotations

from typing import Final

MAX_COMMENT: Final = 80
"""Maximum number of characters of a name in a comment."""


def comment_text(text: str) -> str:
    """Return the start of `text` as printable ASCII that cannot end a comment, continue a line, or form a trigraph.

    Examples
    --------
    >>> comment_text('a*/b\\n#include "x"??/')
    "a.b.#include 'x'."
    """
    plain = "".join(c if " " <= c <= "~" else "." for c in text[: 4 * MAX_COMMENT])
    for hostile, harmless in (("*/", "."), ("/*", "."), ("??", "?."), ("\\", "."), ('"', "'"), ("{", "("), ("}", ")")):
        plain = plain.replace(hostile, harmless)
    return plain.replace("?./", ".")[:MAX_COMMENT].rstrip()


def c_string(text: str) -> str:
    """Return `text` as a C string literal; bytes other than ASCII letters, digits and ``_-.,:()[]`` or space become octal escapes.

    Examples
    --------
    >>> c_string('a"b??')
    '"a\\\\042b\\\\077\\\\077"'
    """
    return (
        '"'
        + "".join(chr(b) if chr(b).isascii() and (chr(b).isalnum() or chr(b) in " _-.,:()[]") else f"\\{b:03o}" for b in text.encode())
        + '"'
    )
