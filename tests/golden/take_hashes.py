"""Compare files and output of snnc with ``hashes.json``: ``python tests/golden/take_hashes.py [--write] [--only PATTERN] [--jobs N]``.

Nothing is built or run: projects are emitted, and their files hashed. Exits with 1 if a case differs. ``--write`` replaces the hashes of
the selected cases and, if all are selected, removes hashes of cases that no longer exist.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

for folder in (Path(__file__).parent, Path(__file__).parents[1] / "common"):
    sys.path.insert(0, str(folder))

from golden_cases import cases, chosen  # noqa: E402
from hashing import HASHES, SHORT, Case, difference, packed, workplace, written  # noqa: E402


def take(given: Sequence[Case]) -> dict[str, dict[str, str]]:
    """Return the digests of the files of each case."""
    with workplace() as place:
        return {case.name: place.hashes(case) for case in given}


def take_with(jobs: int, given: Sequence[Case]) -> dict[str, dict[str, str]]:
    """Return the same from several processes."""
    if jobs == 1:
        return take(given)
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        return {name: files for part in pool.map(take, [given[k::jobs] for k in range(jobs)]) for name, files in part.items()}


def replaced(known: dict, found: dict[str, dict[str, str]], keep: bool) -> dict:
    """Put `found` in the place of its cases; the others stay where `keep` says so."""
    fresh = packed(found)
    if keep:
        fresh["cases"] = known["cases"] | fresh["cases"]
        used = {key for _, key, _ in fresh["cases"].values()}
        fresh["files"] = {key: names for key, names in (known["files"] | fresh["files"]).items() if key in used}
    return fresh


def main() -> int:
    parser = argparse.ArgumentParser(description="Hash what snnc emits and prints, and compare it with hashes.json.")
    parser.add_argument("--write", action="store_true", help="write the hashes instead of comparing them")
    parser.add_argument("--only", metavar="PATTERN", default="", help="cases whose name holds this, or matches it as a file name would")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--show", action="store_true", help="print the digest of every file of the chosen cases")
    asked = parser.parse_args()
    start = time.perf_counter()
    wanted = chosen(asked.only) if asked.only else cases()
    known = json.loads(HASHES.read_text()) if HASHES.exists() else {"files": {}, "cases": {}}
    found = take_with(asked.jobs, wanted)
    if asked.show:
        for name, files in found.items():
            for file, text in files.items():
                print(f"{name}: {file} {text[:SHORT]}")
    differences = [text for name, files in found.items() if (text := difference(known, name, files))]
    gone = [] if asked.only else sorted(known["cases"].keys() - found.keys())
    differences += [f"{name}: is gone" for name in gone]
    print("\n".join(differences) or "no difference")
    print(f"{len(found)} cases, {len(differences)} differ, {time.perf_counter() - start:.0f} s")
    if asked.write:
        HASHES.write_text(written(replaced(known, found, keep=bool(asked.only))))
        return 0
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
