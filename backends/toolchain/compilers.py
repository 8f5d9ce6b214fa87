"""The C++ compiler and the cache folder, and builds with the one into the other."""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path

from snnc.backends.toolchain.sealed import is_sealed, seal
from snnc.backends.toolchain.trim import put_away, trim
from snnc.compiler.files.cache import cache_dir, keeping


def compiler() -> list[str]:
    """Return the command of a C++17 compiler: ``$CXX``, g++, clang++, c++ or the ziglang wheel.

    Raises
    ------
    ToolMissingError
        There is none.
    """
    chosen = os.environ.get("CXX")
    if chosen:
        command = shlex.split(chosen)
        if shutil.which(command[0]) is None:
            from snnc.compiler.errors import ToolMissingError

            raise ToolMissingError(f"the C++ compiler named by CXX is not on this machine: {chosen!r}")
        return command
    for name in ("g++", "clang++", "c++"):
        found = shutil.which(name)
        if found:
            return [found]
    if importlib.util.find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", "c++"]
    from snnc.compiler.errors import ToolMissingError

    raise ToolMissingError(
        "no C++ compiler on this machine: the emulator looked for $CXX, g++, clang++, c++ and the ziglang wheel. "
        "Install one of them (`pip install 'snnc[compiler]'` brings ziglang), or set CXX"
    )


def compiler_version(command: Sequence[str]) -> str:
    """Return the compiler's version text."""
    return _version(tuple(command))


@lru_cache(maxsize=8)
def _version(command: tuple[str, ...]) -> str:
    return subprocess.run([*command, "--version"], capture_output=True, text=True, check=False).stdout


def is_clang(command: Sequence[str]) -> bool:
    """Return whether the compiler accepts clang's options."""
    return "clang" in compiler_version(command).lower()


def common_flags(command: Sequence[str]) -> list[str]:
    """Return flags that every compilation gets."""
    flags = ["-std=c++17", "-fPIC", "-pthread"]
    if is_clang(command):
        flags += ["-fno-sanitize=all"]
    return flags


def machine_id() -> str:
    """Return a text that differs between processors that cannot run each other's machine code."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return os.uname().machine + next((line for line in lines if line.startswith(("flags", "Features"))), "")


def digest(parts: Iterable[str | bytes]) -> str:
    """Return a short hash of texts."""
    total = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        total.update(str(len(data)).encode() + b":" + data)
    return total.hexdigest()[:20]


def run_compiler(command: Sequence[str], what: str) -> str:
    """Run a compiler and return its output.

    Raises
    ------
    BuildError
        With the first errors of the compiler.
    """
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        from snnc.compiler.errors import BuildError

        raise BuildError(f"{what} does not compile:\n{first_errors(result.stderr)}")
    return result.stdout


def first_errors(output: str, limit: int = 20) -> str:
    """Return the lines of a compiler's output from the first error on, at most `limit`."""
    lines = output.splitlines()
    signs = ("error:", "undefined reference", "cannot find")
    start = next((i for i, line in enumerate(lines) if any(sign in line for sign in signs)), 0)
    return "\n".join(lines[start : start + limit])


def publish(scratch: Path, target: Path) -> None:
    """Rename a finished folder to its place; if another process was first, drop this one."""
    try:
        scratch.rename(target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def alone(target: Path) -> Iterator[None]:
    """Hold the lock of `target`: of processes that need the same result at the same time, one builds it and the others wait."""
    target.parent.mkdir(mode=0o700, exist_ok=True)
    path = target.parent / f".{target.name}.lock"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            path.unlink(missing_ok=True)  # whoever waits for it finds what was built


def kept(name: str, file: str, build: Callable[[Path], None]) -> Path:
    """Return `file` of the folder `name` in the cache, which `build` fills if it is missing, or differs from what was built.

    Parameters
    ----------
    name
        Holds a digest of everything that the file depends on.
    file
        Path of the wanted file in that folder; `build` may leave other files there too.
    build
        Gets an empty folder.
    """
    cache = cache_dir()
    target = cache / name
    if (target / file).exists() and is_sealed(target):
        with suppress(OSError):  # the cache may be one that is only read
            os.utime(target)
        return target / file
    with keeping(cache), alone(target):
        if not ((target / file).exists() and is_sealed(target)):
            if os.path.lexists(target):
                put_away(target)
            _fill(target, build)
    trim(cache)
    return target / file


def _fill(target: Path, build: Callable[[Path], None]) -> None:
    scratch = scratch_beside(target)
    try:
        build(scratch)
        seal(scratch)
        publish(scratch, target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def scratch_beside(target: Path) -> Path:
    """Return a new folder from which `publish` can rename to `target`."""
    with keeping(target.parent):
        target.parent.mkdir(mode=0o700, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
