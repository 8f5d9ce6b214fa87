"""Commands of snnc run in empty folders, with their output and files as digests that are the same on every machine."""

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points, version
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
import onnx
from golden_nets import NETS

import snnc

CORPUS = Path(__file__).parents[1] / "corpus"
HASHES = Path(__file__).with_name("hashes.json")
SURROUNDINGS = {"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
PARTITIONERS = ("pymetis", "mtkahypar")
"""Are hidden, as they change plans and not everybody has them."""
LIBRARIES = ("click", "h5py", "jinja2", "networkx", "nir", "numpy", "onnx", "rich", "scipy", "sympy", "typer")
"""What texts and files may come from beside snnc."""
_DIGEST = re.compile(rb"\b[0-9a-f]{64}\b")
_BORDERS = re.compile("[\u2500-\u257f]")
_SIZES = re.compile(rb'(?:[\d,]+(?= bytes))|(?<="bytes": )\d+')
_MODULES = re.compile(rb"(?<=from snnc\.)[\w.]+|(?<=python -m snnc\.)\w+|(?<=`snnc\.)[\w.]+|(?<=`~snnc\.)[\w.]+")
"""Names of modules in texts: they may move."""
_SECONDS = re.compile(rb'(?<="compile_s": )[\d.e-]+|(?<="point_s": )[\d.e-]+| +[\d.,]+ s$', re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """Commands that run one after the other in an empty folder; ``MODEL`` among their arguments stands for the model.

    `texts` gives what else is hashed, by name.
    """

    name: str
    model: str
    commands: tuple[tuple[str, ...], ...]
    texts: Callable[[], Mapping[str, str]] = dict


class Workplace:
    """A temporary folder with models and an empty folder a case; nothing of the user's home is read or written."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._models, self._cases = folder, folder / "models", folder / "cases"
        self._cases.mkdir()
        shutil.copytree(CORPUS, self._models)
        (script,) = entry_points(group="console_scripts", name="snnc")
        self._main = script.load()

    def hashes(self, case: Case) -> dict[str, str]:
        """Return the digest of every file that the commands wrote, and of what each printed."""
        model = f"../../models/{self._model(case.model)}"
        folder = Path(tempfile.mkdtemp(dir=self._cases))
        found = {name: digest(_same_everywhere(text.encode())) for name, text in case.texts().items()}
        try:
            with contextlib.chdir(folder):
                for number, command in enumerate(case.commands, 1):
                    printed = self._run([part.replace("MODEL", model) for part in command])
                    found |= {f"{number} {stream}": digest(text) for stream, text in printed.items() if text}
            for path in sorted(p for p in folder.rglob("*") if p.is_file()):
                found[path.relative_to(folder).as_posix()] = digest(normalised(path))
        finally:
            shutil.rmtree(folder)
        return found

    def _model(self, name: str) -> str:
        if name in NETS and not (self._models / name).exists():
            snnc.compile(NETS[name](), "reference", output=self._models / name).close()
        return name

    def _run(self, arguments: Sequence[str]) -> dict[str, bytes]:
        """Exit code and both streams of a command that runs in this process."""
        out, err = io.StringIO(), io.StringIO()
        signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
        code: object = "no exit"
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
                self._main(list(arguments))
        except SystemExit as ended:
            code = ended.code
        finally:
            for number, handler in signals.items():
                signal.signal(number, handler)
        text = out.getvalue()
        if "--help" in arguments:  # borders, and where lines break, are rich's
            text = " ".join(_BORDERS.sub(" ", text).split())
        result = _same_everywhere(text.encode())
        if "convert" in arguments:  # an archive is as large as its library makes it
            result = _SIZES.sub(b"N", result)
        texts = {"exit": str(code).encode(), "stdout": result, "stderr": _same_everywhere(err.getvalue().encode())}
        return {stream: given.replace(str(self._folder).encode(), b"FOLDER") for stream, given in texts.items()}


@contextlib.contextmanager
def _hidden(names: Sequence[str]) -> Iterator[None]:
    """Hide modules from imports; other modules that are imported meanwhile stay (`mock.patch.dict` would forget them)."""
    kept = {name: sys.modules[name] for name in names if name in sys.modules}
    sys.modules.update(dict.fromkeys(names))
    try:
        yield
    finally:
        for name in names:
            del sys.modules[name]
        sys.modules.update(kept)


@contextlib.contextmanager
def workplace() -> Iterator[Workplace]:
    """Make a workplace; the process has the surroundings of a bare machine until it goes."""
    with tempfile.TemporaryDirectory(prefix="snnc-golden-") as name:
        folder = Path(name).resolve()
        home = {key: str(folder / "home") for key in ("HOME", "SNNC_CACHE", "XDG_STATE_HOME", "XDG_CACHE_HOME")}
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SNNC_")}
        with (
            mock.patch.dict(os.environ, kept | SURROUNDINGS | home, clear=True),
            _hidden(PARTITIONERS),
        ):
            yield Workplace(folder)


def normalised(path: Path) -> bytes:
    """Return what counts of a file: no packing of archives, no seconds, no names of modules, no digest that is taken anyway."""
    match path.suffix:
        case ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return b"".join(_array(name, arrays[name]) for name in sorted(arrays.files))
        case ".nir":
            return _hdf5(path)
        case ".onnx":
            model = onnx.load(path)
            model.producer_version = ""
            return model.SerializeToString(deterministic=True)
        case ".json":
            return _DIGEST.sub(b"digest", _same_everywhere(path.read_bytes()))
        case ".safetensors" | ".bin":
            return path.read_bytes()
    return _same_everywhere(path.read_bytes())


def _same_everywhere(text: bytes) -> bytes:
    return _SECONDS.sub(b"N", _MODULES.sub(b"MODULE", text))


def _array(name: str, array: np.ndarray) -> bytes:
    return f"{name} {array.dtype.str} {array.shape}\n".encode() + np.ascontiguousarray(array).tobytes()


def _hdf5(path: Path) -> bytes:
    parts = []

    def visit(name: str, node: object) -> None:
        if isinstance(node, h5py.Dataset):
            value = node[()]
            parts.append(_array(name, value) if isinstance(value, np.ndarray) and value.dtype != object else f"{name} {value!r}\n".encode())
        else:
            parts.append(f"{name}/\n".encode())

    with h5py.File(path) as file:
        file.visititems(visit)
    return b"".join(part for part in parts if not part.startswith(b"version "))


def digest(data: bytes) -> str:
    """Return the SHA-256 of `data` as text."""
    return hashlib.sha256(data).hexdigest()


def libraries() -> dict[str, str]:
    """Return the versions of what may change texts and files without a change in snnc."""
    return {name: version(name) for name in LIBRARIES}


SHORT = 6
"""Hexadecimal digits kept of each file: enough to name it; whether a case is equal its whole SHA-256 says."""


def packed(cases: Mapping[str, Mapping[str, str]]) -> dict[str, object]:
    """Return digests as they are written: a SHA-256 a case, and short ones of its files, whose names many cases share."""
    lists, entries = {}, {}
    for name, files in sorted(cases.items()):
        names = sorted(files)
        key = digest("\n".join(names).encode())[:SHORT]
        lists[key] = names
        entries[name] = [total(files), key, " ".join(files[file][:SHORT] for file in names)]
    return {"libraries": libraries(), "files": lists, "cases": entries}


def total(files: Mapping[str, str]) -> str:
    """Return one digest of all files of a case and their names."""
    return digest(json.dumps(sorted(files.items())).encode())


def written(data: Mapping[str, Mapping[str, object]]) -> str:
    """Return `packed` digests as text, a line an entry."""
    parts = []
    for part, entries in data.items():
        lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(entries.items())]
        parts.append(f"{json.dumps(part)}: {{\n" + ",\n".join(lines) + "\n}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def difference(known: Mapping[str, Mapping[str, list]], name: str, found: Mapping[str, str]) -> str:
    """Return what differs of a case, empty where nothing does."""
    if name not in known["cases"]:
        return f"{name}: is new"
    whole, key, shorts = known["cases"][name]
    if whole == total(found):
        return ""
    before = dict(zip(known["files"][key], shorts.split(), strict=True))
    now = {file: text[:SHORT] for file, text in found.items()}
    kinds = (
        ("differ", sorted(f for f in before.keys() & now.keys() if before[f] != now[f])),
        ("are gone", sorted(before.keys() - now.keys())),
        ("are new", sorted(now.keys() - before.keys())),
    )
    return f"{name}: " + "; ".join(f"{', '.join(files)} {what}" for what, files in kinds if files)
