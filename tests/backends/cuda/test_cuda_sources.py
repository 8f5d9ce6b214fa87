"""Sources of an emitted CUDA project: those of a network are small, and compiled separately, because users wait for them."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from cuda_projects import program_of
from nets import dense

from snnc.backends.cuda.build import NETWORK_SOURCES, SOURCES, build_host_check, sources_in
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.toolchain import objects
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD
from snnc.compiler.lowering.lower import lower

LARGE = {"algorithm", "deque", "functional", "map", "memory", "numeric", "sstream", "string", "tuple", "vector"}
"""Headers of the C++ library that nvcc reads three times for each source, 0.1 s each."""


def headers_of(folder, name):
    """Return the headers of the C++ library that a source of the program for a device includes, directly or indirectly."""
    found, waiting, seen = set(), [name], set()
    while waiting:
        text = (folder / waiting.pop()).read_text()
        found |= set(re.findall(r"#include <(\w+)>", text))
        own = set(re.findall(r'#include "([^"]+)"', text)) - seen - {"cuda_on_host.hpp"}
        seen |= own
        waiting += own
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    return emit_cuda(program_of("recurrent"), tmp_path_factory.mktemp("sources") / "project")


def test_sources_of_kernels_include_no_large_headers(project):
    kernels = [name for name in sources_in(project, NETWORK_SOURCES) if name.endswith(".cu")]
    assert len(kernels) == 4
    assert {name: headers_of(project, name) & LARGE for name in kernels} == {name: set() for name in kernels}


def test_the_host_part_is_plain_cpp_without_code_of_kernels(project):
    text = (project / "network.cpp").read_text()
    assert not re.search(r"\b(KERNEL|DEVICE)\b", text)
    assert "<<<" not in text
    assert ".cuh" not in text


def test_a_network_without_recurrence_has_no_sources_for_it(tmp_path):
    program = lower(dense(np.random.default_rng(3), 12, 8), loss=parse_loss("ce_rate"), optimizer=SGD(1e-2))
    folder = emit_cuda(program, tmp_path / "project")
    assert sources_in(folder, NETWORK_SOURCES) == ["network_kernels.cu", "network.cpp"]
    listed = (folder / "CMakeLists.txt").read_text()
    assert all((name in listed) == (folder / name).exists() for name in SOURCES)


def test_only_the_source_that_differs_is_compiled_again(tmp_path, monkeypatch):
    """The default numbers of steps and samples are constants of the host part; no kernel depends on them."""
    keys = []
    monkeypatch.setattr(objects, "compiled", lambda source, key, command: keys.append((source.name, key)) or source)
    monkeypatch.setattr(objects, "precompiled", lambda *_: [])
    monkeypatch.setattr(objects, "cached_file", lambda name, file, build: build(tmp_path))
    monkeypatch.setattr(objects, "run_compiler", lambda *_: "")
    for steps in (5, 6):
        build_host_check(emit_cuda(program_of("recurrent"), tmp_path / str(steps), steps=steps))
    first, second = dict(keys[: len(keys) // 2]), dict(keys[len(keys) // 2 :])
    assert first.keys() == second.keys() >= set(NETWORK_SOURCES)
    assert {name for name in first if first[name] != second[name]} == {"network.cpp"}


@pytest.mark.skipif(shutil.which("nm") is None, reason="no nm")
def test_projects_of_a_process_share_nothing_that_depends_on_a_network(project):
    """A unique symbol (type u) is that of the first library that a process loads, even if networks have different data of the same name."""
    command = ["nm", "--dynamic", "--demangle", "--defined-only", build_host_check(project)]
    symbols = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(symbols) > 100
    assert [line for line in symbols if " u " in line and "network::" in line] == []
