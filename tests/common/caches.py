"""Caches for a single test that already contain the compiled sources that all processor projects share."""

import os
import shutil
from pathlib import Path

import pytest

import snnc
from snnc.backends.cpu.build import build_cpu
from snnc.backends.toolchain import objects
from snnc.compiler.files.cache import cache_dir
from snnc.compiler.files.temporary import temporary_folder
from snnc.driver.compiling import compile_to_folder
from snnc.options.compile_options import options


def lend_objects(cache: Path) -> None:
    """Put objects and precompiled headers of the usual cache into `cache`, as hard links; everything else in it is built by the test.

    Those not yet in the usual cache are compiled there, where other tests find them.
    """
    usual = cache_dir()
    cache.mkdir(mode=0o700, exist_ok=True)
    for name in _shared():
        shutil.copytree(usual / name, cache / name, copy_function=_linked, dirs_exist_ok=True)
        (cache / name).chmod(0o700)


def _shared() -> set[str]:
    """Return the folders of the cache that the build of a CPU project uses."""
    found, kept = set(), objects.cached_file

    def noted(name, file, fill):
        if name.startswith("cpu-"):
            return fill(above)
        found.add(name)
        return kept(name, file, fill)

    with temporary_folder("snnc-lent-") as above, pytest.MonkeyPatch.context() as patch:
        patch.setattr(objects, "cached_file", noted)
        net = snnc.Sequential(2, snnc.Dense(2), snnc.LIF(), snnc.Dense(2), snnc.LI(), name="lent")
        compile_to_folder(net.graph(), options("cpu"), above / "project")
        build_cpu(above / "project")
    return found


def _linked(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another file system
        shutil.copy2(source, target)
    return target
