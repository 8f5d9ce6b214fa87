"""Copies of snnc with the additions of docs/extending.md: the added files are in a separate folder, all others are links."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "extending.md"
ROOMS = ("backends", "benchmarks", "compiler", "frontends", "templates")


@dataclass(frozen=True)
class Section:
    """The additions of one section of the page.

    Attributes
    ----------
    files
        Path -> complete text of a new or changed file.
    tried
        The code that tries it.
    """

    files: dict[str, str]
    tried: str


def section(title):
    """Return a section of the page, with its changes applied to their files."""
    (text,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE.read_text(), re.M | re.S)
    files = dict(re.findall(r"^`([^`\n]+)`, new:\n\n```\w+\n(.*?)^```", text, re.M | re.S))
    assert not any((ROOT / path).exists() for path in files)
    changes = re.findall(r"^`([^`\n]+)`, [^\n]*:\n\n```diff\n(.*?)^```", text, re.M | re.S)
    files |= {path: changed((ROOT / path).read_text(), change) for path, change in changes}
    (tried,) = re.findall(r"[Tt]ry it[^\n]*:\n\n```python\n(.*?)^```", text, re.M | re.S)
    return Section(files, tried)


def changed(text, change):
    """Return a text with a change applied: each line of the change is searched from the previous one on, and matches once or more often."""
    lines, place, found = text.splitlines(), 0, change.splitlines()
    for number, line in enumerate(found):
        kind, rest = line[:1], line[1:]
        if kind == "+":
            before = next((one[1:] for one in found[number:] if one[:1] == " "), None) if place == 0 else None
            place = lines.index(before) if before is not None else place
            lines.insert(place, rest)
            place += 1
        else:
            place = lines.index(rest, place)
            if kind == "-":
                del lines[place]
            else:
                place += 1
    return "\n".join(lines) + "\n"


def laid(source, target, files):
    """Make `target` a copy of the folder `source` with `files` (relative path -> text) in it; everything else is linked."""
    target.mkdir(parents=True)
    names = {child.name for child in source.iterdir()} if source.is_dir() else set()
    for name in sorted(names | {PurePosixPath(path).parts[0] for path in files}):
        own = {path[len(name) + 1 :]: text for path, text in files.items() if PurePosixPath(path).parts[0] == name}
        if not own:
            (target / name).symlink_to(source / name)
        elif "" in own:
            (target / name).write_text(own[""])
        else:
            laid(source / name, target / name, own)


def extended(folder, files):
    """Create a package snnc with `files` in `folder`; return its location for PYTHONPATH."""
    of_room = {room: {p.removeprefix(room + "/"): t for p, t in files.items() if p.startswith(room + "/")} for room in ("api", *ROOMS)}
    laid(ROOT / "api", folder / "snnc", of_room["api"])
    for room in ROOMS:
        laid(ROOT / room, folder / "snnc" / room, of_room[room])
    return folder


def tried(folder, code, *beside):
    """Run code on the copy in `folder`, and return its output; `beside` are further folders to import from."""
    path = os.pathsep.join(map(str, (folder, *beside)))
    work = folder / "work"
    work.mkdir(exist_ok=True)
    command, environment = [sys.executable, "-P", "-c", code], {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
