"""Text with parts that apply to layers: ``"5 %; hidden=20"``. A name with special characters is written in quotes: ``'"a;b"=20'``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Final

_PART: Final = re.compile(r'\s*(?:("(?:[^"\\]|\\.)*")\s*=)?([^;]*)(?:;|$)')
_SPECIAL: Final = frozenset(';="\\:')


def named_parts(text: str) -> Iterator[tuple[str | None, str]]:
    r"""Yield (name, rest) for each part of a text; empty parts are skipped.

    The name is the one in quotes before an equals sign, or None if the part has no quoted name; callers split ``hidden=20``.
    The rest has no spaces around it.

    Examples
    --------
    >>> list(named_parts('5 %; hidden=20; "a;b" = 3'))
    [(None, '5 %'), (None, 'hidden=20'), ('a;b', '3')]
    """
    position = 0
    while position < len(text):
        part = _PART.match(text, position)
        assert part is not None, "the last alternative matches any text"
        quoted, rest = part.groups()
        name = None if quoted is None else _unquoted(quoted)
        if name is not None or rest.strip():
            yield name, rest.strip()
        position = part.end()


def quoted(name: str) -> str:
    """Return `name` as it is written before an equals sign in a text for :func:`named_parts`; most names need no quotes.

    A name with special or unprintable characters, or with spaces around it, is written in quotes, as a JSON string.

    Examples
    --------
    >>> quoted("hidden"), quoted("a;b")
    ('hidden', '"a;b"')
    """
    return json.dumps(name, ensure_ascii=False) if set(name) & _SPECIAL or name != name.strip() or not name.isprintable() else name


def _unquoted(text: str) -> str:
    try:
        return str(json.loads(text))
    except json.JSONDecodeError:
        return text[1:-1]
