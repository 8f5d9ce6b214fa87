"""Guarantees of the CUDA program besides correct numbers: the same bits for any division into blocks and any order; refusals."""

import ctypes
import shutil
from dataclasses import replace

import numpy as np
import pytest
from cpu_projects import assert_same_records, data
from cuda_projects import opened, program_of, stacked, with_teams
from nets import delayed, dense
from wide import examples

import snnc
from snnc.backends.cuda import build as cuda_build
from snnc.backends.cuda import device
from snnc.backends.cuda.build import build_cuda, build_host_check, nvcc, resources
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import CudaEngine
from snnc.backends.cuda.errors import CHECK_ON_HOST, DeviceArrayError, GpuMissingError, NvccMissingError
from snnc.backends.native.library import NativeError
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.errors import MemoryNeededError, NotTrainableError
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower

STEPS, BATCH = 9, 5


def many_inputs(hidden=40):
    """A network with more inputs than a warp lists at a time."""
    return lower(dense(np.random.default_rng(3), 1040, hidden, kind="spikes"), loss=parse_loss("ce_rate"), optimizer=Adam(1e-2))


def train(engine, program, updates=3):
    for step in range(updates):
        inputs, target = data(program, STEPS, BATCH, seed=step)
        engine.train_batch(inputs, target, 1e-2)
    return engine.get_parameters()


def assert_equal_bits(found, wanted):
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


@pytest.mark.representative("recurrent")
@pytest.mark.parametrize("name", ["recurrent", "convolutional"])
def test_the_bits_do_not_depend_on_the_teams_nor_on_the_order_of_threads(name, monkeypatch):
    program = program_of(name)
    with opened(program, 1, 1) as engine:
        wanted = train(engine, program)
    ways = ((4, 1, "backwards"), (2, 8, "backwards"), (2, 8, "forwards"), (4, 1, "forwards"))
    for team_blocks, tile, order in examples(ways[:2], ways):
        monkeypatch.setenv("SNNC_HOST_ORDER", order)
        with opened(program, team_blocks, tile) as engine:
            assert_equal_bits(train(engine, program), wanted)
            assert engine.profile()["team_blocks"] == team_blocks


@pytest.mark.representative("core")
@pytest.mark.parametrize("kind", ["core", "convolutional", "feedback", "learnable", "sparse_recurrent"])
def test_the_bits_do_not_depend_on_the_number_of_multiprocessors(kind, tmp_path, monkeypatch):
    program = stacked(40, 48, optimizer=SGD(1e-2)) if kind == "core" else program_of(kind)
    folder, found = emit_cuda(program, tmp_path / "project"), []
    library = build_host_check(folder)
    for blocks in examples((1, 7), (1, 4, 7)):
        monkeypatch.setenv("SNNC_HOST_BLOCKS", str(blocks))
        # A new copy, because a library keeps what it knows about the device.
        engine = with_teams(CudaEngine(shutil.copy(library, tmp_path / f"{blocks}.so"), folder), 1, 8)
        found.append(train(engine, program, updates=2))
        engine.close()
    for parameters in found[1:]:
        assert_equal_bits(parameters, found[0])


def test_sizes_change_from_one_sequence_to_the_next():
    program = program_of("delayed")
    with opened(program) as engine:
        reference = ReferenceEngine(program)
        for steps, batch in ((9, 5), (3, 7), (1, 1), (4, 33)):
            inputs, target = data(program, steps, batch)
            assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
            assert engine.train_batch(inputs, target, 0.0) == pytest.approx(reference.train_batch(inputs, target, 0.0), rel=1e-5)
            for name, gradient in reference.gradients().items():
                np.testing.assert_allclose(engine.gradients()[name], gradient, atol=1e-4 * max(1e-3, np.abs(gradient).max()), err_msg=name)
            assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))


@pytest.mark.wide
def test_lists_longer_than_a_warp_holds_go_on_with_the_next_words():
    """More than 1024 inputs, and more than 1024 rows of steps and samples; activity that leaves whole words empty."""
    program = many_inputs(hidden=6)
    with opened(program) as engine:
        reference = ReferenceEngine(program)
        inputs, target = data(program, 65, 16, density=0.02)
        assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
        assert engine.train_batch(inputs, target, 0.0) == pytest.approx(reference.train_batch(inputs, target, 0.0), rel=1e-5)
        for name, gradient in reference.gradients().items():
            np.testing.assert_allclose(engine.gradients()[name], gradient, atol=1e-4 * np.abs(gradient).max(), err_msg=name)


@pytest.mark.wide
def test_rows_that_are_read_once_for_all_samples_are_the_bits_of_lists():
    """Nine of ten inputs fire in half of the samples: their tile of eight reads rows together, a tile of one by lists."""
    program = many_inputs()
    inputs, target = data(program, 3, 16, density=0.9)
    inputs["x0"][:, 8:] *= np.random.default_rng(5).random(inputs["x0"][:, 8:].shape) < 0.1
    found = []
    for tile in (1, 8):
        with opened(program, 1, tile) as engine:
            assert_same_records(engine.forward(inputs, {}), ReferenceEngine(program).forward(inputs, {}))
            found.append((engine.train_batch(inputs, target, 0.0), engine.gradients()))
    assert found[0][0] == found[1][0]
    assert_equal_bits(found[0][1], found[1][1])


def test_single_steps_are_those_of_the_whole_sequence():
    program = lower(delayed(np.random.default_rng(3)))
    inputs, _ = data(program, 8, 3)
    with opened(program) as engine:
        whole = engine.forward(inputs, {})
        for _ in range(2):
            engine.reset(3, {})
            for t in range(8):
                found = engine.step({id_: array[t] for id_, array in inputs.items()})
                assert_same_records(found, {id_: record[t] for id_, record in whole.items()})
        assert_same_records(engine.forward(inputs, {}), whole)
        with pytest.raises(NotTrainableError):
            engine.train_batch(*data(program), 0.1)


def test_the_program_refuses_what_does_not_fit():
    program = program_of("sparse_recurrent")
    with opened(program) as engine:
        inputs, _ = data(program, STEPS, BATCH)
        engine.forward(inputs, {})
        with pytest.raises(NativeError, match="classes"):
            engine.session.set("labels", np.full(BATCH, 99))
        with pytest.raises(NativeError, match="1 or more"):
            engine.session.set("steps", np.zeros(1))
        with pytest.raises(NativeError, match="cannot be set"):
            engine.session.set("loss", np.zeros(1))
        for info in program.inputs:
            if info.kind == "spikes":
                engine.session.set(info.id, np.full(engine.session.tensors[info.id].shape, 0.5))
                with pytest.raises(NativeError, match="0 or 1"):
                    engine.session.run()
        engine.session.set("batch", np.full(1, 3))
        with pytest.raises(NativeError, match="was not set"):
            engine.session.run()


@pytest.mark.representative("delayed-3")
@pytest.mark.parametrize(("name", "every"), [("recurrent", 4), ("delayed", 3), ("recurrent", 50)])
def test_gradients_are_cut_where_the_reference_cuts_them(name, every):
    program = replace(program_of(name), truncate=every)
    whole, reference = ReferenceEngine(program_of(name)), ReferenceEngine(program)
    inputs, labels = data(program, 10, BATCH)
    for segment in (0, 2):
        with opened(program) as engine:
            engine.segment = segment
            assert engine.train_batch(inputs, labels, 0.0) == pytest.approx(reference.train_batch(inputs, labels, 0.0), rel=1e-5)
            found = engine.gradients()
        for parameter, gradient in reference.gradients().items():
            assert np.linalg.norm(found[parameter] - gradient) <= 1e-4 * max(1e-3, np.linalg.norm(gradient)), parameter
    whole.train_batch(inputs, labels, 0.0)
    other = [not np.allclose(whole.gradients()[parameter], gradient) for parameter, gradient in reference.gradients().items()]
    assert any(other) == (every < 10)


def test_a_bad_input_is_refused_and_leaves_the_parameters_as_they_were():
    program = many_inputs()
    inputs, labels = data(program, 3, 2)
    with opened(program) as engine, opened(program) as other:
        for one in (engine, other):
            one.train_batch(inputs, labels, 1e-2)
        with pytest.raises(NativeError, match="0 or 1"):
            engine.train_batch({name: 0.5 * x for name, x in inputs.items()}, labels, 1e-2)
        assert_equal_bits(engine.get_parameters(), other.get_parameters())
        for one in (engine, other):
            one.train_batch(inputs, labels, 1e-2)
        assert_equal_bits(engine.get_parameters(), other.get_parameters())


class _OnDevice:
    """An array as torch, CuPy and JAX show one in device memory; in a check that is the host's."""

    def __init__(self, values, typestr="<f4", strides=None):
        self.values, self.shape = values, values.shape
        self.__cuda_array_interface__ = {
            "shape": values.shape,
            "typestr": typestr,
            "data": (values.ctypes.data, True),
            "strides": strides,
            "version": 3,
        }


@pytest.mark.representative("values")
@pytest.mark.parametrize("kind", ["spikes", "values"])
def test_inputs_in_device_memory_are_read_where_they_are(kind):
    program = many_inputs() if kind == "spikes" else program_of("recurrent")
    assert program.inputs[0].kind == kind
    inputs, target = data(program, STEPS, BATCH)
    with opened(program) as engine:
        wanted = engine.forward(inputs, {})
        loss = engine.train_batch(inputs, target, 0.0)
        there = {name: _OnDevice(array) for name, array in inputs.items()}
        assert_equal_bits(engine.forward(there, {}), wanted)
        assert engine.train_batch(there, target, 0.0) == loss
        x = inputs["x0"]
        for wrong in (_OnDevice(x, typestr="<f8"), _OnDevice(x[..., :-1].copy()), _OnDevice(x, strides=x.strides[::-1])):
            with pytest.raises(DeviceArrayError, match="x0"):
                engine.forward({"x0": wrong}, {})
        assert_equal_bits(engine.forward(there, {}), wanted)


def test_a_sequence_that_the_device_cannot_hold_is_refused_before_it_is_taken(tmp_path):
    folder = emit_cuda(program_of("recurrent"), tmp_path / "project")
    engine = CudaEngine(build_host_check(folder), folder, device_memory=1 << 20)
    much = np.broadcast_to(np.zeros(1, np.float32), (1 << 12, 1 << 10, 6))
    with pytest.raises(MemoryNeededError, match=r"the device has 0\.0 GiB"):
        engine.forward({"x0": much}, {})


def test_weights_are_saved_in_the_models_order(tmp_path):
    from safetensors.numpy import load_file

    program = program_of("recurrent")
    with opened(program) as engine:
        train(engine, program)
        engine.session.save(tmp_path / "saved.safetensors")
        saved = load_file(tmp_path / "saved.safetensors")
        for name, value in engine.get_parameters().items():
            np.testing.assert_array_equal(saved[name].reshape(value.shape), value)


def test_a_session_on_the_processor_is_asked_for_by_name(monkeypatch, tmp_path):
    monkeypatch.setenv(CHECK_ON_HOST, "1")
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF(), snnc.Dense(2), snnc.LI())
    x = np.random.default_rng(0).random((5, 2, 4)) < 0.5
    with snnc.compile(net, target="cuda", output=tmp_path / "project") as session, snnc.compile(net) as reference:
        np.testing.assert_allclose(session.run(x)["output"], reference.run(x)["output"], atol=1e-5)
    assert "__global__" in (tmp_path / "project" / "device.hpp").read_text()


def test_without_a_device_the_message_says_what_can_be_done(monkeypatch):
    monkeypatch.delenv(CHECK_ON_HOST, raising=False)

    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    with pytest.raises(GpuMissingError, match=f"{CHECK_ON_HOST}=1"):
        device.first_device()


class _Driver:
    """A driver whose device is too old, or absent."""

    def __init__(self, count, numbers):
        self.count, self.numbers = count, numbers

    def cuInit(self, flags):
        return 0

    def cuDeviceGetCount(self, place):
        place._obj.value = self.count
        return 0

    def cuDeviceGet(self, place, index):
        place._obj.value = index
        return 0

    def cuDeviceGetAttribute(self, place, attribute, index):
        place._obj.value = self.numbers[attribute - 75]
        return 0

    def cuDeviceTotalMem_v2(self, place, index):
        place._obj.value = 1 << 30
        return 0


@pytest.mark.parametrize(("count", "numbers", "said"), [(0, (9, 0), "no device"), (1, (7, 0), "7.0; 7.5 or newer")])
def test_a_device_that_cannot_be_used_is_refused(monkeypatch, count, numbers, said):
    monkeypatch.delenv(device.DEVICE, raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: _Driver(count, numbers))
    with pytest.raises(GpuMissingError, match=said):
        device.first_device()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: _Driver(1, (9, 0)))
    assert device.first_device() == device.Device((9, 0), 1 << 30)
    assert device.first_device().architecture == "sm_90"
    monkeypatch.setenv(device.DEVICE, "1")
    with pytest.raises(GpuMissingError, match="finds 1 devices, from 0"):
        device.first_device()


def test_processes_of_torchrun_open_on_devices_of_their_own(monkeypatch):
    monkeypatch.delenv(device.DEVICE, raising=False)
    monkeypatch.setenv(device.LOCAL_RANK, "2")
    for count, wanted in ((4, 2), (1, 0)):
        monkeypatch.setattr(ctypes, "CDLL", lambda name, count=count: _Driver(count, (9, 0)))
        assert device.first_device().number == wanted
    monkeypatch.setattr(ctypes, "CDLL", lambda name: _Driver(2, (9, 0)))
    with pytest.raises(GpuMissingError, match=r"LOCAL_RANK is '2'; .* 2 devices"):
        device.first_device()
    monkeypatch.setenv(device.DEVICE, "1")
    assert device.first_device().number == 1


def test_without_nvcc_the_message_says_what_was_looked_for(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.delenv("CUDACXX", raising=False)
    with pytest.raises(NvccMissingError, match=r"/usr/local/cuda, and in the package nvidia-cuda-nvcc\. .*snnc\[cuda\]"):
        nvcc()
    monkeypatch.setenv("CUDACXX", "my-nvcc -O0")
    with pytest.raises(NvccMissingError, match="my-nvcc"):
        nvcc()


def test_what_the_assembler_says_is_read(tmp_path):
    (tmp_path / cuda_build.RESOURCES).write_text(
        "ptxas info    : Compiling entry function '_Zk' for 'sm_90'\nptxas info    : Function properties for _Zk\n"
        "    24 bytes stack frame, 20 bytes spill stores, 48 bytes spill loads\nptxas info    : Used 40 registers, used 1 barriers\n"
    )
    found = resources(tmp_path / cuda_build.LIBRARY)
    assert [(k.name, k.registers, k.spill_stores, k.spill_loads, k.stack) for k in found] == [("_Zk", 40, 20, 48, 24)]


@pytest.mark.wide
@pytest.mark.parametrize("architecture", ["sm_90", "sm_75", "sm_80", "sm_100"])
def test_nvcc_compiles_the_program_without_spills(tmp_path, architecture, monkeypatch):
    """Unless all cases run, only the sources of the network are compiled: the others are the same in every project, and take a minute."""
    try:
        nvcc()
    except NvccMissingError as error:
        pytest.skip(str(error))
    monkeypatch.setattr(cuda_build, "SOURCES", examples(cuda_build.NETWORK_SOURCES, cuda_build.SOURCES))
    folder = emit_cuda(program_of("recurrent"), tmp_path / "project")
    kernels = resources(build_cuda(folder, architecture))
    names = " ".join(k.name for k in kernels)
    assert all(
        name in names
        for name in (
            "walk_forward",
            "walk_backward",
            "feedback0_forward",
            "feedback0_backward",
            "gradient_kernel",
            "update_kernel",
            "loss_kernel",
        )
    )
    # Convolutions hold a few addresses in memory besides their sums.
    spilled = {k.name: k.spill_stores for k in kernels if k.spill_stores or k.spill_loads}
    assert all("field_kernel" in name or "gradient_kernel" in name for name in spilled)
    assert max(spilled.values(), default=0) <= 128
    # Blocks of 512 threads have 128 for each.
    assert max(k.registers for k in kernels if "feedback" in k.name or "recurrent" in k.name) <= 128
