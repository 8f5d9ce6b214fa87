"""What nvcc makes of the kernels: no registers are spilled to memory, and sources that are compiled together."""

import pytest

from snnc.backends.cuda.build import NETWORK_SOURCES, SOURCES, build_cuda, nvcc, resources, source_groups
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.errors import NvccMissingError
from snnc.benchmarks.cuda.predicted import program_of
from snnc.benchmarks.cuda.workloads import CUDA_WORKLOADS

NETS = ("w1-5", "w1-ff-5", "w2-5", "conv-3", "open-512-5", "open-4096-5", "open-16384-5", "h3-a5-2")
"""One of each network of the benchmark: batch sizes and activities do not change the program."""


@pytest.mark.wide
@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("net", NETS)
def test_no_kernel_of_the_benchmark_spills(net, architecture, tmp_path):
    """Neither inside its loops nor outside; kernels that all networks share are compiled once for an architecture, in a minute."""
    try:
        nvcc()
    except NvccMissingError as error:
        pytest.skip(str(error))
    workload = next(w for w in CUDA_WORKLOADS if w.label == net)
    folder = emit_cuda(program_of(workload), tmp_path / "project", workload.steps, workload.batch)
    kernels = resources(build_cuda(folder, architecture))
    assert len(kernels) >= 90
    assert [k.name for k in kernels if k.spill_stores or k.spill_loads or k.stack] == []


@pytest.mark.parametrize(("processors", "groups"), [(1, 1), (2, 1), (3, 1), (4, 2), (6, 4), (64, 4)])
def test_kernels_of_a_network_share_compilations_on_few_processors(processors, groups):
    found = source_groups(SOURCES, processors)
    assert sorted(name for group in found for name in group) == sorted(SOURCES)
    shared = [group for group in found if group[0] in NETWORK_SOURCES and group[0].endswith(".cu")]
    assert len(shared) == groups
    assert all(len(group) == 1 for group in found if group not in shared)
    assert source_groups(("network.cpp", "memory.cpp"), processors) == [("network.cpp",), ("memory.cpp",)]
