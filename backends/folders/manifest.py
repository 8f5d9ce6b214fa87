"""Names of the files in folders that snnc writes, and the manifest ``snnc.json`` of a folder: its format, and a digest of each file."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path, PurePosixPath
from typing import Any, Final

from snnc.compiler.files.temporary import abandoned_files

MANIFEST: Final = "snnc.json"
FORMAT: Final = "snnc folder 1"
PROJECT_FORMAT: Final = "snnc project 1"
"""Format of an emitted project, in ``project.json``."""
PROFILE: Final = "model/profile.json"
"""Counters of the emulator's last run."""
RECORDING: Final = "model/recording.npz"
"""Spikes recorded for reports."""
TRAINED: Final = "model/trained.safetensors"
"""Weights of a project after training, by label, with the optimiser's state and the training position."""
LOCK: Final = ".snnc.lock"
"""Lock file of the process that trains in the folder or replaces it."""
PART: Final = "model/.trained.safetensors.part"
"""Temporary file of trained weights, renamed when complete."""
TRAINED_LOCK: Final = "model/.trained.safetensors.lock"
"""Lock file of the training run that writes the trained weights."""
BEST: Final = "model/best.safetensors"
"""Weights of the epoch with the best validation result, in the format of the trained weights."""
BEST_PART: Final = "model/.best.safetensors.part"
BY_PRODUCTS: Final = (PROFILE, RECORDING, LOCK, MANIFEST, PART, TRAINED_LOCK, BEST_PART)
"""Files of snnc that the manifest does not list; they are deleted when a new project replaces the folder."""
_MODEL: Final = ("model/graph.json", "model/arrays.npz", "model/options.json", "model/orders.json", "model/parts.npz")
"""Model files of a project without a manifest."""
_MAX_BYTES: Final = 1 << 24
"""Size of the largest JSON file that is read, so that a wrong file does not fill the memory: 16 MiB."""
_NUMBERED: Final = re.compile(r"snnc folder (\d{1,6})")
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def write_manifest(folder: Path) -> None:
    """Write the manifest of all files in the newly written `folder`."""
    manifest = folder / MANIFEST
    paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    files = {path.relative_to(folder).as_posix(): digest_of(path) for path in paths if path != manifest}
    manifest.write_text(json.dumps({"format": FORMAT, "files": files}, indent=1) + "\n", encoding="utf-8")
    manifest.chmod(manifest.stat().st_mode & 0o755)


def read_manifest(folder: Path) -> dict[str, str] | None:
    """Return the digests of the files in the manifest, by path relative to `folder`; None without a valid manifest."""
    return _files(_json(folder / MANIFEST), FORMAT)


def newer_format(folder: Path) -> str | None:
    """Return the format of a folder that a newer version of snnc wrote; None for any other folder."""
    data = _json(folder / MANIFEST)
    format = data.get("format") if isinstance(data, dict) else None
    number = _NUMBERED.fullmatch(format) if isinstance(format, str) else None
    return format if number and int(number[1]) > int(FORMAT.rpartition(" ")[2]) else None


def written_files(folder: Path) -> dict[str, str | None] | None:
    """Return the digests of the files that snnc may have written to `folder`, by relative path; None if snnc did not write the folder.

    A digest of None stands for any content. A project without a manifest is recognised by ``project.json`` or by the files of its model.
    """
    files: dict[str, str | None] = dict.fromkeys(BY_PRODUCTS)
    abandoned = (*abandoned_files(folder), *abandoned_files(folder / "model"))
    files |= {path.relative_to(folder).as_posix(): None for path in abandoned}
    listed = read_manifest(folder)
    if listed is not None:
        return files | listed
    emitted = _files(_json(folder / "project.json"), PROJECT_FORMAT)
    model = _is_model(folder)
    if emitted is None and not model:
        return None
    return files | ({"project.json": None, **emitted} if emitted is not None else {}) | (dict.fromkeys(_MODEL) if model else {})


def _is_model(folder: Path) -> bool:
    options, graph = _json(folder / "model" / "options.json"), _json(folder / "model" / "graph.json")
    known = isinstance(options, dict) and options.get("version") == 1 and isinstance(options.get("target"), str)
    nodes = isinstance(graph, dict) and "nodes" in graph and "edges" in graph
    return known and nodes and (folder / "model" / "arrays.npz").is_file()


def _json(path: Path) -> Any:
    """Return the contents of a small JSON file; None if it is missing, damaged or too large."""
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_BYTES:
            return None
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _files(data: Any, format: str) -> dict[str, str] | None:
    """Return the files that a manifest lists; None if it has another format, or lists invalid digests or paths outside the folder."""
    if not isinstance(data, dict) or data.get("format") != format or not isinstance(data.get("files"), dict):
        return None
    files: dict[str, str] = data["files"]
    valid = all(isinstance(digest, str) and _DIGEST.fullmatch(digest) and _is_inside(name) for name, digest in files.items())
    return files if valid else None


def _is_inside(name: str) -> bool:
    parts = PurePosixPath(name).parts
    return bool(parts) and parts[0] != "/" and ".." not in parts and "\0" not in name
