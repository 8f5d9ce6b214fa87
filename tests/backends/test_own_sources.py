"""Sources of a network: what all networks need is compiled once for all of them, so that users wait only for what differs."""

import shutil
import subprocess

import numpy as np
import pytest
from nets import learnable

from snnc.backends.cpu.emit import emit_cpu
from snnc.backends.cuda.build import HOST_FLAGS
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.toolchain.compilers import common_flags, compiler, is_clang
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower

FLAGS = {"cpu": ("-march=native",), "cuda": HOST_FLAGS}
INSTANTIATED = {"cpu": 30, "cuda": 200}
"""Maximum number of functions that the host part of a small network may instantiate from headers; there were 508 and 1,445 of them once."""


@pytest.mark.skipif(shutil.which("nm") is None or is_clang(compiler()), reason="other compilers instantiate other functions")
@pytest.mark.representative("cpu")
@pytest.mark.parametrize(("target", "emit"), [("cpu", emit_cpu), ("cuda", emit_cuda)], ids=["cpu", "cuda"])
def test_a_network_instantiates_little_from_headers_and_compiles_without_a_warning(target, emit, tmp_path):
    program = lower(learnable(np.random.default_rng(3)), loss=parse_loss("ce_rate"), optimizer=Adam(1e-2))
    folder, made = emit(program, tmp_path / "project"), tmp_path / "network.o"
    command = [*compiler(), *common_flags(compiler()), *FLAGS[target], "-O0", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([*command, "-c", str(folder / "network.cpp"), "-o", str(made)], check=True)
    symbols = subprocess.run(["nm", str(made)], check=True, capture_output=True, text=True).stdout.splitlines()
    assert 0 < sum(" W " in line for line in symbols) <= INSTANTIATED[target]
