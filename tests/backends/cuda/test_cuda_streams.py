"""Calls in a stream of the caller: all work is queued in that stream, nothing blocks, an invalid input is reported later."""

import ctypes
import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from cpu_projects import data
from cuda_projects import opened
from nets import dense, recurrent

from snnc.backends.cuda.build import build_cuda, nvcc
from snnc.backends.cuda.emit import emit_cuda
from snnc.backends.cuda.engine import CudaEngine
from snnc.backends.cuda.errors import NvccMissingError
from snnc.backends.native.library import NativeError
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.external import ExternalLoss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower

STEPS, BATCH = 9, 5
LOG = "SNNC_HOST_STREAMS"


class There:
    """An array of a device, by the CUDA array interface; in a check that is the host's."""

    def __init__(self, values):
        self.shape = values.shape
        self.__cuda_array_interface__ = {"shape": values.shape, "typestr": "<f4", "data": (values.ctypes.data, True), "version": 3}


def read(path):
    """What was asked of which stream since this was last called."""
    lines = path.read_text().splitlines() if path.exists() else []
    path.unlink(missing_ok=True)
    return [(what, int(stream)) for what, _, stream in (line.rpartition(" ") for line in lines)]


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A function that returns what was asked of which stream since it was last called."""
    monkeypatch.setenv(LOG, str(tmp_path / "streams.txt"))
    return lambda: read(tmp_path / "streams.txt")


def under_autograd():
    return lower(recurrent(np.random.default_rng(3)), loss=ExternalLoss(()), loss_output="y", optimizer=SGD(0.0))


def there_and_back(engine, program, x, empty=np.empty):
    """Output and gradients as :class:`snnc.torch.Module` has them: all of it in memory of the device, which `empty` takes."""
    record = next(o.record for o in program.outputs if o.id == program.loss_output)
    engine.run_forward({"x0": There(x)})
    output = empty(engine.session.tensors[record].shape, np.float32)
    engine.session.get_into(record, output.ctypes.data, output.size)
    engine.session.set_from(f"d_{record}", output.ctypes.data, output.size)
    engine.run_backward()
    found = {record: output}
    for update in program.update:
        found[update.parameter] = empty(program.parameters[update.parameter].value.shape, np.float32)
        engine.session.get_into(f"d_{update.parameter}", found[update.parameter].ctypes.data, max(1, found[update.parameter].size))
    return found


@pytest.mark.representative("4")
@pytest.mark.parametrize("segment", [0, 4])
def test_a_pass_forward_and_back_is_asked_of_the_callers_stream_alone_and_waits_for_nothing(segment, asked):
    program = under_autograd()
    x = data(program, STEPS, BATCH)[0]["x0"]
    with opened(program, 2, 8) as engine:
        engine.segment = segment
        wanted = there_and_back(engine, program, x)
        usual = asked()
        assert {stream for _, stream in usual} == {0}
        assert ("wait", 0) in usual
        engine.use_stream(77)
        assert asked() == [("record", 0), ("hold", 77)]
        for _ in range(2):
            found = there_and_back(engine, program, x)
            calls = asked()
            assert {stream for _, stream in calls} == {77}
            assert {what for what, _ in calls} <= {"launch", "copy", "clear"}
            for name, value in wanted.items():
                np.testing.assert_array_equal(found[name], value, err_msg=name)
        engine.use_stream(77)
        assert asked() == []
        engine.use_stream(78)
        assert asked() == [("record", 77), ("hold", 78)]
        there_and_back(engine, program, x)
        assert {stream for _, stream in asked()} == {78}


@pytest.mark.wide
def test_batches_that_are_sent_ahead_are_ordered_with_the_callers_stream(asked):
    program = lower(dense(np.random.default_rng(3), 70, 20, kind="spikes"), loss=parse_loss("ce_rate"), optimizer=SGD(1e-2))
    batches = [data(program, STEPS, BATCH, seed=seed) for seed in range(2)]
    with opened(program) as engine:
        wanted = [engine.train_batch(*batch, 0.0) for batch in batches]
    with opened(program) as engine:
        engine.use_stream(77)
        engine.offer(*batches[1])
        found = [engine.train_batch(*batches[0], 0.0)]
        asked()
        found.append(engine.train_batch(*batches[1], 0.0))
        calls = asked()
        assert found == wanted
        (own,) = {stream for _, stream in calls} - {77}
        assert [call for call in calls if call[0] in ("record", "hold")] == [("record", own), ("hold", 77), ("record", 77)]
        # The parameters would not survive a bad input: a step with an update waits for what was found.
        assert ("wait", 77) in calls


def test_what_comes_of_a_bad_input_is_nan_and_is_told_when_the_next_one_is_set():
    program = lower(dense(np.random.default_rng(3), 70, 20, kind="spikes"), loss=parse_loss("ce_rate"), optimizer=Adam(1e-2))
    inputs, labels = data(program, STEPS, BATCH)
    bad = inputs["x0"].copy()
    bad[3, 2, 1] = 0.5
    with opened(program) as engine:
        wanted = engine.forward(inputs, {})
        before = engine.get_parameters()
        engine.use_stream(77)
        assert all(np.isnan(record).all() for record in engine.forward({"x0": There(bad)}, {}).values())
        with pytest.raises(NativeError, match="x0 takes spikes, 0 or 1; another number was given in a call before"):
            engine.forward(inputs, {})
        for name, record in engine.forward(inputs, {}).items():
            np.testing.assert_array_equal(record, wanted[name])
        engine.session.set("labels", labels)
        engine.session.set("x0", bad)
        with pytest.raises(NativeError, match="x0 takes spikes"):
            engine.session.train_step()
        for name, value in engine.get_parameters().items():
            np.testing.assert_array_equal(value, before[name])


def calls_of_the_device_code(library, folder, runtime, log):
    """What the code for a device asks of a runtime that counts, in the second of two passes: in the default stream, then in another."""
    cudart = ctypes.CDLL(runtime)

    def empty(shape, dtype):
        place = ctypes.c_void_p()
        cudart.cudaMalloc(ctypes.byref(place), ctypes.c_size_t(max(4, 4 * int(np.prod(shape)))))
        return np.frombuffer((ctypes.c_char * max(4, 4 * int(np.prod(shape)))).from_address(place.value), dtype).reshape(-1)

    program = under_autograd()
    (info,) = program.inputs
    x = empty((STEPS, BATCH, *info.shape), np.float32).reshape(STEPS, BATCH, *info.shape)
    engine = CudaEngine(Path(library), Path(folder))
    found = []
    for stream in (None, 77):
        if stream:
            engine.use_stream(stream)
        kept = functools.cache(empty)
        there_and_back(engine, program, x, kept)
        read(Path(log))
        there_and_back(engine, program, x, kept)
        found.append(read(Path(log)))
    return found


SCRIPT = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from test_cuda_streams import calls_of_the_device_code
print(json.dumps(calls_of_the_device_code(*sys.argv[2:])))
"""


@pytest.mark.wide
def test_the_code_for_a_device_asks_everything_of_the_callers_stream(tmp_path):
    """Compiled by nvcc, run with a runtime that has no device and counts."""
    try:
        nvcc()
    except NvccMissingError as error:
        pytest.skip(str(error))
    runtime = tmp_path / "libcudart.so.13"
    versions = tmp_path / "versions"
    versions.write_text(f"{runtime.name} {{ *; }};")
    link = f"-Xlinker=-soname,{runtime.name},--version-script,{versions}"
    source = str(Path(__file__).with_name("counted_cudart.cpp"))
    subprocess.run([*nvcc(), "-shared", "-cudart=none", "-Xcompiler=-fPIC", link, source, "-o", str(runtime)], check=True)
    folder = emit_cuda(under_autograd(), tmp_path / "project")
    library = build_cuda(folder, "sm_90", ("-cudart=shared",))
    log = tmp_path / "streams.txt"
    command = [
        sys.executable,
        "-c",
        SCRIPT,
        json.dumps([str(Path(__file__).parent), *sys.path]),
        str(library),
        str(folder),
        str(runtime),
        str(log),
    ]
    environment = os.environ | {LOG: str(log), "LD_LIBRARY_PATH": str(tmp_path)}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    usual, named = ([tuple(call) for call in calls] for calls in json.loads(result.stdout))
    assert {stream for _, stream in usual} == {0}
    assert ("wait", 0) in usual
    assert {stream for _, stream in named} == {77}
    assert {what for what, _ in named} == {"launch", "copy"}
