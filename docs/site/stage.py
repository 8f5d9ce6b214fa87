"""Prepare the pages of the site for Zensical: ``python docs/site/stage.py FOLDER`` writes FOLDER/pages and FOLDER/zensical.toml.

The repository's pages link to each other and to source files by relative paths. On the site their addresses have no `docs/`, so each link is
rewritten; linked files, such as recipes and pictures, are copied. The navigation is the list of pages in docs/index.md.
"""

from __future__ import annotations

import json
import os
import posixpath
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
FRONT, CONTENTS = "docs/front.md", "docs/index.md"
# Links of a page, its code blocks, and a heading or page in the list of pages.
LINK = re.compile(r'(\]\(|<img [^>]*?src="|<a [^>]*?href=")([^)"\s]+)')
FENCE = re.compile(r"^(```.*?^```[ ]*$)", re.S | re.M)
ENTRY = re.compile(r"^(?:(#{2,3}) (.+)|- \[(.+?)\]\(([^)]+)\).*)$")


@dataclass(frozen=True, slots=True)
class Entry:
    """A page of the navigation, or a heading with the entries below it."""

    title: str
    page: str = ""
    below: tuple[Entry, ...] = ()

    def toml(self) -> str:
        """Return the entry in the TOML form that Zensical reads."""
        value = json.dumps(self.page, ensure_ascii=False) if self.page else f"[{', '.join(e.toml() for e in self.below)}]"
        return f"{{ {json.dumps(self.title, ensure_ascii=False)} = {value} }}"


def address(path: str) -> str:
    """Return the path within the site's pages of a file, given by its path in the repository; both paths are relative."""
    if path == FRONT:
        return "index.md"
    if path == CONTENTS:
        return "contents.md"
    if path.count("/") == 0:
        return path.lower()
    return path.removeprefix("docs/").replace("README.md", "index.md").replace(".ipynb", ".md")


def navigation(contents: str) -> tuple[Entry, ...]:
    """Read the navigation from the list of pages: `##` and `###` headings, and `- [title](page)` below them."""
    sections: list[tuple[str, list[Entry], list[tuple[str, list[Entry]]]]] = []
    for line in contents.splitlines():
        entry = ENTRY.match(line)
        if entry is None:
            continue
        depth, heading, title, target = entry.groups()
        if depth == "##":
            sections.append((heading, [], []))
        elif depth == "###":
            sections[-1][2].append((heading, []))
        else:
            pages = sections[-1][2][-1][1] if sections[-1][2] else sections[-1][1]
            pages.append(Entry(title[0].upper() + title[1:], address(posixpath.normpath(posixpath.join("docs", target)))))
    return (
        Entry("snnc", "index.md"),
        *(Entry(title, below=(*pages, *(Entry(t, below=tuple(p)) for t, p in parts))) for title, pages, parts in sections),
        Entry("All pages", "contents.md"),
    )


def pages_of(entries: tuple[Entry, ...]) -> list[str]:
    return [page for entry in entries for page in ([entry.page] if entry.page else pages_of(entry.below))]


def sources() -> list[str]:
    """Return the paths of the repository's pages that the site shows."""
    paths = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.ipynb"), *ROOT.glob("examples/**/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    return sorted(p.relative_to(ROOT).as_posix() for p in paths if ".ipynb_checkpoints" not in p.parts)


def page_of(notebook: Path) -> str:
    """Return the cells of a notebook as a Markdown page; the printed text of a cell follows its code in a text block."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        printed = "".join(line for output in cell["outputs"] for line in output.get("text", ())).rstrip()
        if printed:
            parts.append(f"```text\n{printed}\n```")
    return "\n\n".join(parts) + "\n"


def rewrite_links(text: str, source: str) -> tuple[str, set[str]]:
    """Return a page's text with links rewritten for the site, and the linked repository files that are not pages."""
    files: set[str] = set()

    def link(match: re.Match[str]) -> str:
        target, hash_, anchor = match[2].partition("#")
        if not target or "://" in target:
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        if not (path.startswith(("docs/", "examples/")) and PurePosixPath(path).suffix in (".md", ".ipynb")):
            files.add(path)
        here = posixpath.dirname(address(source)) or "."
        return f"{match[1]}{posixpath.relpath(address(path), here)}{hash_}{anchor}"

    parts = FENCE.split(text)
    return "".join(part if n % 2 else LINK.sub(link, part) for n, part in enumerate(parts)), files - {"CONTRIBUTING.md", "CHANGELOG.md"}


def link_package(folder: Path) -> None:
    """Link the folders of the repository as the installed package `snnc`, for Griffe, which reads docstrings without importing the package."""
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "snnc").mkdir(parents=True)
    for part in [*(ROOT / "api").iterdir(), *(ROOT / name for name in ("compiler", "frontends", "backends"))]:
        if part.name != "__pycache__":
            (folder / "snnc" / part.name).symlink_to(part)


def write(folder: Path) -> None:
    """Write the pages, the files that they link, and the settings with the navigation."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    files: set[str] = set()
    for source in sources():
        text = page_of(ROOT / source) if source.endswith(".ipynb") else (ROOT / source).read_text(encoding="utf-8")
        text, linked = rewrite_links(text, source)
        files |= linked
        place = pages / address(source)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for file in files:
        if not (ROOT / file).is_file():
            raise SystemExit(f"a page links to {file}, which is not a file of the repository")
        place = pages / address(file)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, place)
    here = Path(__file__).parent
    shutil.copytree(here / "style", pages / "style")
    link_package(folder / "package")
    nav = navigation((ROOT / CONTENTS).read_text(encoding="utf-8"))
    outside = sorted({address(s) for s in sources()} - set(pages_of(nav)))
    if outside:
        raise SystemExit(f"pages that are not in the navigation (add them to {CONTENTS}): {', '.join(outside)}")
    settings = (here / "zensical.toml").read_text(encoding="utf-8")
    lines = ",\n".join(f"  {entry.toml()}" for entry in nav)
    (folder / "zensical.toml").write_text(settings.replace("nav = []", f"nav = [\n{lines},\n]").replace("docstrings.py", str(here / "docstrings.py")), encoding="utf-8")


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    write(Path(sys.argv[1]))
