"""On a CUDA device: the same numbers as the reference, the same bits again. Skipped where there is no device or no nvcc."""

import numpy as np
import pytest
from cpu_projects import assert_same_records, assert_same_training, data
from indexed_nets import choosing, convolutional, sparse_recurrent
from nets import delayed, feedback, learnable, recurrent, skip

from snnc.backends.cuda.build import build_cuda, nvcc
from snnc.backends.cuda.device import first_device
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import CudaEngine
from snnc.backends.cuda.errors import GpuMissingError, NvccMissingError
from snnc.backends.reference.engine import ReferenceEngine
from snnc.compiler.losses import parse_loss
from snnc.compiler.lower import lower
from snnc.compiler.optimizers import Adam

NETS = (recurrent, delayed, feedback, learnable, skip, convolutional, sparse_recurrent, choosing)


@pytest.fixture(scope="module")
def architecture():
    try:
        nvcc()
        return first_device().architecture
    except (GpuMissingError, NvccMissingError) as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("make", NETS)
def test_records_and_training_steps_equal_those_of_the_reference(make, architecture, tmp_path):
    program = lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-2), loss_output="y")
    folder = emit_cuda(program, tmp_path / "project")
    library = build_cuda(folder, architecture)
    trained = []
    for team_blocks, tile in ((None, None), (1, 1), (2, 8), (16, 8)):
        engine = CudaEngine(library, folder, team_blocks, tile)
        inputs, _ = data(program, 20, 37)
        assert_same_records(engine.forward(inputs, {}), ReferenceEngine(program).forward(inputs, {}))
        assert_same_training(engine, program)
        trained.append(engine.get_parameters())
        engine.close()
    for other in trained[1:]:
        for name, value in trained[0].items():
            np.testing.assert_array_equal(other[name], value, err_msg=name)


def test_arrays_of_torch_on_the_device_are_read_where_they_are(architecture, tmp_path):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    program = lower(recurrent(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-2), loss_output="y")
    folder = emit_cuda(program, tmp_path / "project")
    engine = CudaEngine(build_cuda(folder, architecture), folder)
    inputs, _ = data(program, 20, 37)
    wanted = engine.forward(inputs, {})
    found = engine.forward({name: torch.from_numpy(array).cuda() for name, array in inputs.items()}, {})
    for name, record in wanted.items():
        np.testing.assert_array_equal(found[name], record)
