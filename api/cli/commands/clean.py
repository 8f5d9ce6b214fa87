"""``snnc clean``: delete the cache, and leftovers of ended processes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from snnc.cli.common import JsonOption
from snnc.cli.console import result, result_json


def clean(
    folders: Annotated[list[Path] | None, typer.Argument(help="Output folders to search for leftovers as well.", metavar="[DIR]…")] = None,
    cache: Annotated[bool, typer.Option("--cache", help="Only the cache.")] = False,
    leftovers: Annotated[bool, typer.Option("--leftovers", help="Only leftovers of ended processes.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List what would be deleted, and delete nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete the contents of snnc's cache, which snnc can build again, and temporary files and folders left by killed processes.

    Only files and folders that you own and that snnc named are deleted. Those in use by a running process stay.
    Projects and their weights are never touched.

    Example: snnc clean --dry-run
    """
    from snnc.compiler.files.cache import cache_dir
    from snnc.errors import CleanFolderError
    from snnc.project.cleaning import Waste, in_cache, left_over, remove

    places = tuple(folders or ())
    for place in places:
        if not place.is_dir():
            raise CleanFolderError(f"{str(place)!r} is not a folder; name folders to which snnc wrote, or none.")
    both = cache == leftovers
    cached, busy = in_cache() if cache or both else ([], 0)
    waste: list[Waste] = [*cached, *(left_over(places) if leftovers or both else [])]
    deleted = waste if dry_run else remove(waste)
    total = sum(one.bytes for one in deleted)
    if as_json:
        removed = [{"what": one.what, "path": str(one.path), "bytes": one.bytes} for one in deleted]
        result_json({"dry_run": dry_run, "bytes": total, "in_use": busy, "stayed": len(waste) - len(deleted), "removed": removed})
        return
    for what, where in (("cache", f" in {cache_dir()}"), ("leftover", "")):
        chosen = [one for one in deleted if one.what == what]
        if chosen:
            result(f"{what:9} {_things(len(chosen))}{where}, {_bytes(sum(one.bytes for one in chosen))}")
    if dry_run or len(deleted) <= 5:
        for one in (one for one in deleted if one.what == "leftover"):
            result(f"          {one.path}")
    if busy:
        result(f"{_things(busy)} stayed: a process is building there")
    if len(deleted) < len(waste):
        result(f"{_things(len(waste) - len(deleted))} could not be deleted")
    result(f"{_bytes(total)} {'would be freed; nothing was deleted' if dry_run else 'freed'}")


def _things(count: int) -> str:
    return f"{count:,} {'item' if count == 1 else 'items'}"


def _bytes(count: int) -> str:
    return f"{count:,} bytes" if count < 10_000 else f"{count:,} bytes ({count / 2**20:,.1f} MiB)"
