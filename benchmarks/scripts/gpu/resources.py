"""Registers and spills of every kernel of the benchmark's networks, by nvcc: ``python resources.py [ARCHITECTURE…]``; needs no GPU.

Prints a line of Markdown for each network and architecture, then the kernels that spill.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from snnc.backends.cuda.build import KernelResources, build_cuda, resources
from snnc.backends.cuda.emit import emit_cuda
from snnc.benchmarks.cpu.oracle import program_of
from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS
from snnc.compiler.errors import SnncError

ARCHITECTURES: Final = ("sm_80", "sm_90", "sm_100")
NETS: Final = ("w1-5", "w1-ff-5", "w2-5", "conv-3", "open-512-5", "open-4096-5", "open-16384-5", "h3-a5-2")
"""One workload of each network. Batch sizes and activities do not change the kernels, so W3, which is W1 with one sample, is omitted."""


def kernel_resources(net: str, architecture: str) -> list[KernelResources]:
    workload = next(w for w in CUDA_WORKLOADS if w.label == net)
    with tempfile.TemporaryDirectory() as folder:
        project = emit_cuda(program_of(workload), Path(folder) / "project", workload.steps, workload.batch)
        return resources(build_cuda(project, architecture))


def main(architectures: Sequence[str]) -> int:
    print("| network | architecture | kernels | most registers | kernels that spill | most bytes spilled |")
    print("|---|---|---|---|---|---|", flush=True)
    spilled: dict[str, KernelResources] = {}
    failed = False
    for architecture in architectures:
        for net in NETS:
            begin = time.monotonic()
            try:
                kernels = kernel_resources(net, architecture)
            except SnncError as error:
                print(f"| {net} | {architecture} | does not compile: {error} | | | |", flush=True)
                failed = True
                continue
            spilling = [k for k in kernels if k.spill_stores or k.spill_loads]
            spilled |= {f"{architecture} {k.name}": k for k in spilling}
            registers = max(k.registers for k in kernels)
            spilled_bytes = max((k.spill_stores for k in spilling), default=0)
            print(f"| {net} | {architecture} | {len(kernels)} | {registers} | {len(spilling)} | {spilled_bytes} |", flush=True)
            print(f"{net} {architecture}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    for name, kernel in spilled.items():
        print(f"{name}: {kernel.registers} registers, {kernel.spill_stores} bytes stored, {kernel.spill_loads} loaded")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or ARCHITECTURES))
