"""On a CUDA device: the numbers of the reference, and reproducible bits. Skipped without a device or nvcc."""

from contextlib import nullcontext

import numpy as np
import pytest
from cpu_projects import assert_same_records, assert_same_training, data
from cuda_projects import SPLIT, with_teams
from indexed_nets import choosing, convolutional, sparse_recurrent
from nets import delayed, dense, feedback, learnable, recurrent, skip

import snnc
from snnc.backends.cuda.build import build_cuda, build_host_check, nvcc
from snnc.backends.cuda.device import first_device
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import CudaEngine
from snnc.backends.cuda.errors import GpuMissingError, NvccMissingError
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.events import Events
from snnc.backends.training.updates.ranks import Ranks
from snnc.compiler.errors import SnncError
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.driver.loading import as_graph

SIZES = ((256, 64), (300, 9), (1000, 20), (1500, 40))
"""Neurons of a recurrence and samples: clusters of 8 blocks, and of 16; teams of 47 blocks over memory, with several groups of samples."""
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
    # A recurrence on chip (clusters = 1) adds in another order than one whose teams go through the steps.
    trained: dict[int, list[dict[str, np.ndarray]]] = {0: [], 1: []}
    for team_blocks, tile, clusters, near in (
        (None, None, 1, 1024),
        (1, 1, 1, 1024),
        (1, 1, 1, 0),
        (2, 8, 1, 1024),
        (2, 8, 0, 0),
        (8, 1, 1, 1024),
        (16, 8, 1, 0),
        (16, 8, 0, 1024),
    ):
        engine = with_teams(CudaEngine(library, folder), team_blocks, tile)
        engine._setting("clusters", clusters)
        engine._setting("near", near)
        inputs, _ = data(program, 20, 37)
        assert_same_records(engine.forward(inputs, {}), ReferenceEngine(program).forward(inputs, {}))
        assert_same_training(engine, program, tolerance=SPLIT)
        trained[clusters].append(engine.get_parameters())
        engine.close()
    for first, *others in trained.values():
        for other in others:
            for name, value in first.items():
                np.testing.assert_array_equal(other[name], value, err_msg=name)


@pytest.mark.parametrize(("neurons", "batch"), SIZES)
def test_recurrences_on_chip_agree_with_those_of_teams(neurons, batch, architecture, tmp_path):
    net = snnc.Network("recurrent", seed=1)
    x, hidden = net.input(50), net.population(neurons, snnc.LIF(0.9), name="hidden")
    readout = net.population(5, snnc.LI(0.9), name="readout")
    for before, after, delay in ((x, hidden, 0), (hidden, hidden, 1), (hidden, readout, 0)):
        net.connect(before, after, snnc.Dense(), delay=delay)
    program = lower(as_graph(net), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-2))
    folder = emit_cuda(program, tmp_path / "project")
    inputs, labels = data(program, 20, batch)
    found = []
    for clusters in (1, 0):
        engine = CudaEngine(build_cuda(folder, architecture), folder)
        engine._setting("clusters", clusters)
        # The second and later steps are replayed.
        losses = [engine.train_batch(inputs, labels, 0.0) for _ in range(4)]
        assert len(set(losses)) == 1
        found.append((losses[0], engine.gradients(), engine.profile()))
        engine.close()
    assert "teams of blocks" not in found[0][2].values()
    if architecture == "sm_90":
        # A trial on the device has found that they are right.
        assert found[0][2]["products"] == "warpgroups"
    assert "teams of blocks" in found[1][2].values()
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for name, gradient in found[1][1].items():
        assert np.linalg.norm(found[0][1][name] - gradient) <= 1e-4 * np.linalg.norm(gradient), name


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


def test_checkpoints_events_and_rounded_factors_are_those_of_the_check_on_the_processor(architecture, tmp_path):
    """What the fibers show of segments, events and fragments holds on a device; tensor cores may add in another order."""
    program = lower(recurrent(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-2), loss_output="y")
    inputs, labels = data(program, 20, 37)
    for precision, tolerance in (("float32", 1e-5), ("bfloat16", 1e-3), ("float16", 1e-3)):
        folder = emit_cuda(program, tmp_path / precision, precision=precision)
        found = []
        for library in (build_cuda(folder, architecture), build_host_check(folder)):
            for segment in (0, 6):
                engine = with_teams(CudaEngine(library, folder), 2, 8)
                engine.segment = segment
                engine.train_batch(inputs, labels, 0.0)
                found.append(engine.gradients())
                engine.close()
        for name, gradient in found[-1].items():
            for other in found[:-1]:
                assert np.linalg.norm(other[name] - gradient) <= tolerance * np.linalg.norm(gradient), (precision, name)


@pytest.mark.parametrize("kind", ["spikes", "values"])
def test_batches_that_are_sent_ahead_are_those_that_are_set(kind, architecture, tmp_path):
    """Copies of 6 MB beside kernels, the same bits however often: a copy that came too late or too early would change them."""
    program = lower(dense(np.random.default_rng(3), 700, 64, kind=kind), loss=parse_loss("ce_rate"), optimizer=Adam(1e-2))
    folder = emit_cuda(program, tmp_path / "project")
    batches = [data(program, 50, 43, seed=seed) for seed in range(3)]
    order = [batches[i % 3] for i in range(30)]
    found = []
    for ahead in (True, False):
        engine = CudaEngine(build_cuda(folder, architecture), folder)
        losses = []
        for now, following in zip(order, [*order[1:], None], strict=True):
            if ahead and following is not None:
                engine.offer(*following)
            losses.append(engine.train_batch(*now, 1e-3))
        assert engine.profile()["sent_ahead"] == (29 if ahead else 0)
        found.append((losses, engine.get_parameters()))
        engine.close()
    assert found[0][0] == found[1][0]
    for name, value in found[0][1].items():
        np.testing.assert_array_equal(found[1][1][name], value, err_msg=name)


def test_a_step_has_the_same_bits_a_hundred_times(architecture, tmp_path):
    program = lower(recurrent(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-2), loss_output="y")
    folder = emit_cuda(program, tmp_path / "project")
    inputs, labels = data(program, 50, 64)
    engine = with_teams(CudaEngine(build_cuda(folder, architecture), folder), 4, 8)
    wanted = None
    for _ in range(100):
        engine.train_batch(inputs, labels, 0.0)
        found = engine.gradients()
        wanted = wanted or found
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[name], value, err_msg=name)
    engine.close()


def test_events_on_the_device_are_the_dense_array(architecture, tmp_path):
    program = lower(dense(np.random.default_rng(3), 70, 20, kind="spikes"), loss=parse_loss("ce_rate"), optimizer=Adam(1e-2))
    folder = emit_cuda(program, tmp_path / "project")
    engine = CudaEngine(build_cuda(folder, architecture), folder)
    inputs, _ = data(program, 20, 37)
    wanted = engine.forward(inputs, {})
    found = engine.forward({name: Events.from_dense(array) for name, array in inputs.items()}, {})
    for name, record in wanted.items():
        np.testing.assert_array_equal(found[name], record)


def test_gradients_that_nccl_sums_on_the_device_make_the_same_update(architecture, tmp_path):
    """One process is a group too: what is shown is that gradients go to torch's buffer and back on the device."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or not torch.distributed.is_nccl_available():
        pytest.skip("torch sees no CUDA device, or has no NCCL")
    program = lower(learnable(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=Adam(1e-2), loss_output="y")
    folder = emit_cuda(program, tmp_path / "project")
    torch.distributed.init_process_group("nccl", init_method=f"file://{tmp_path / 'store'}", rank=0, world_size=1)
    found = []
    try:
        for shared in (True, False):
            engine = CudaEngine(build_cuda(folder, architecture), folder, device=first_device().number)
            ranks = Ranks(engine) if shared else None
            inputs, labels = data(program, 20, 37)
            for _ in range(5):
                if ranks is None:
                    engine.train_batch(inputs, labels, 1e-2)
                else:
                    assert ranks._flat.is_cuda
                    ranks.update(engine.gather_parts([(inputs, labels)], 37), True, 1e-2)
            found.append(engine.get_parameters())
            engine.close()
    finally:
        torch.distributed.destroy_process_group()
    for name, value in found[1].items():
        np.testing.assert_array_equal(found[0][name], value, err_msg=name)


def test_a_torch_module_on_the_device_has_the_gradients_of_the_processors(architecture):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    from snnc.torch import Module

    net = snnc.Sequential(6, snnc.Dense(12, seed=1), snnc.LIF(), snnc.Dense(3, seed=2), snnc.LI())
    x = torch.from_numpy((np.random.default_rng(0).random((7, 5, 6)) < 0.5).astype(np.float32))
    found = []
    for target, device in (("cpu", "cpu"), ("cuda", "cuda")):
        layer = Module(net, target=target, surrogate="fast_sigmoid:25")
        with torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else nullcontext():
            layer(x.to(device)).square().mean().backward()
        torch.cuda.synchronize()
        found.append({name: p.grad.cpu() for name, p in layer.named_parameters()})
    for name, gradient in found[0].items():
        assert (found[1][name] - gradient).norm() <= 1e-4 * gradient.norm(), name


def test_a_bad_input_of_a_torch_module_gives_nan_and_is_told_by_the_next_pass(architecture):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA device")
    from snnc.torch import Module

    layer = Module(snnc.Sequential(6, snnc.Dense(12), snnc.LIF(), snnc.Dense(3), snnc.LI()), target="cuda")
    x = torch.ones(7, 5, 6, device="cuda")
    with torch.no_grad():
        wanted = layer(x)
        found = layer(x * 0.5)
        torch.cuda.synchronize()
        assert found.isnan().all()
        with pytest.raises(SnncError, match="another number was given in a call before"):
            layer(x)
        torch.testing.assert_close(layer(x), wanted, rtol=0, atol=0)
