"""Where compilers and linkers are looked for."""

import importlib
import os
import shutil

import pytest

from snnc.backends.toolchain.compilers import cuda_compiler, linker_flags


def executable(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def nothing_else(monkeypatch, tmp_path):
    """No nvcc on the PATH, in the usual place or in a package of this environment."""
    which = shutil.which
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CUDACXX", raising=False)
    monkeypatch.setattr(shutil, "which", lambda name: None if name.startswith("/usr/local/cuda") else which(name))


def install(site):
    """Lay out NVIDIA's wheel in a folder of packages, as pip installs it."""
    nvcc = executable(site / "nvidia" / "cu13" / "bin" / "nvcc")
    info = site / "nvidia_cuda_nvcc-13.5.37.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nvidia-cuda-nvcc\nVersion: 13.5.37\n")
    (info / "RECORD").write_text("nvidia/cu13/bin/nvcc,,\nnvidia/cu13/bin/nvcc.profile,,\n")
    return nvcc


@pytest.mark.usefixtures("nothing_else")
def test_the_nvcc_of_the_wheel_is_found_after_all_others(monkeypatch, tmp_path):
    site = tmp_path / "site-packages"
    monkeypatch.setattr("sys.path", [str(site)])
    assert cuda_compiler() is None
    of_the_wheel = install(site)
    importlib.invalidate_caches()
    assert cuda_compiler() == [str(of_the_wheel)]
    on_the_path = executable(tmp_path / "bin" / "nvcc")
    assert cuda_compiler() == [str(on_the_path)]
    monkeypatch.setenv("CUDACXX", f"{of_the_wheel} -O0")
    assert cuda_compiler() == [str(of_the_wheel), "-O0"]
    monkeypatch.setenv("CUDACXX", os.devnull + "/nvcc")
    assert cuda_compiler() is None


def test_only_a_compiler_for_this_machine_links_with_gold_and_only_if_gold_is_there(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert linker_flags(["/usr/bin/g++"]) == []
    executable(tmp_path / "ld.gold")
    assert linker_flags(["/usr/bin/g++"]) == linker_flags(["clang++"]) == ["-fuse-ld=gold"]
    assert linker_flags(["/usr/bin/aarch64-linux-gnu-g++"]) == linker_flags(["python", "-m", "ziglang", "c++"]) == []
