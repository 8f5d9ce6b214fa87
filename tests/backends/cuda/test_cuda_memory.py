"""Histories kept one segment at a time, and inputs as events or in a device's memory."""

import numpy as np
import pytest
from checkpoints import assert_checkpoints_change_the_order_of_sums_only
from cpu_projects import assert_same_records, data
from cuda_projects import opened, program_of
from nets import delayed, dense
from wide import examples, sampled

import snnc
from snnc.backends.cuda.engine import CudaEngine
from snnc.backends.cuda.errors import DeviceArrayError
from snnc.backends.native.device_arrays import device_array
from snnc.backends.native.library import NativeError
from snnc.backends.native.memory import predicted_bytes
from snnc.backends.runtime.errors import MemoryNeededError
from snnc.backends.session import BackendSession
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower

STEPS, BATCH = 9, 5


@pytest.mark.representative("recurrent", "sparse_recurrent")
@pytest.mark.parametrize(
    "name", sampled(["recurrent", "delayed", "choosing", "convolutional", "SLSTM", "learnable", "sparse_recurrent"], 2)
)
def test_checkpoints_change_the_order_of_sums_only(name):
    program = program_of(name)
    inputs, labels = data(program, STEPS, BATCH)
    with opened(program, 2, 8) as engine:
        assert_checkpoints_change_the_order_of_sums_only(engine, inputs, labels, examples((0, 2, STEPS + 5), (0, 1, 2, 4, STEPS + 5)), 2e-6)


def test_a_bound_on_memory_is_kept_by_longer_or_shorter_segments():
    program = program_of("recurrent")
    inputs, labels = data(program, 40, BATCH)
    with opened(program) as engine:
        loss = engine.train_batch(inputs, labels, 0.0)
        most = engine.profile()["device_bytes"]
    with opened(program) as engine:
        sizes = {n: predicted_bytes(engine.description, 40, BATCH, n) for n in range(1, 41)}
        engine.memory = (min(sizes.values()) + sizes[40]) // 2
        assert engine.train_batch(inputs, labels, 0.0) == loss
        segment = int(engine.session.get("segment")[0])
        assert sizes[segment] <= engine.memory < sizes[segment + 1]
        spared = most - engine.profile()["device_bytes"]
        # Fewer rows may take one partial sum of the gradients less.
        expected = sizes[40] - sizes[segment]
        assert 0.8 * expected <= spared <= 1.2 * expected + partial_sum(program)
        engine.memory = 1000
        with pytest.raises(MemoryNeededError, match="predicted"):
            engine.train_batch(inputs, labels, 0.0)


def partial_sum(program):
    return 4 * sum(program.parameters[u.parameter].value.size for u in program.update)


@pytest.mark.wide
def test_a_past_of_16_bits_takes_the_bytes_that_are_predicted():
    program = program_of("recurrent")
    grown, predicted = {}, {}
    for precision in ("float32", "float16"):
        with opened(program, precision=precision) as engine:
            found = []
            for steps in (20, 60):
                engine.train_batch(*data(program, steps, BATCH), 0.0)
                found.append((engine.profile()["device_bytes"], predicted_bytes(engine.description, steps, BATCH, steps)))
            grown[precision], predicted[precision] = (last - first for first, last in zip(*found, strict=True))
            # More rows may take one partial sum of the gradients more.
            assert grown[precision] <= predicted[precision] + partial_sum(program) <= 1.2 * grown[precision] + partial_sum(program)
    # Of the hidden neurons' membranes, which the backward pass reads, and of all deltas half of the bytes are spared; sums of eight
    # neurons, which otherwise lie where deltas will be, take room of their own.
    assert grown["float32"] - grown["float16"] == predicted["float32"] - predicted["float16"] == 40 * BATCH * ((8 + 8 + 4) * 2 - 4 * 8)


def test_a_stepping_sequence_goes_on_behind_a_training_step_in_segments():
    program = program_of("delayed")
    inputs, labels = data(program, STEPS, BATCH)
    with opened(program) as engine:
        wanted = engine.forward(inputs, {})
        engine.segment = 2
        engine.train_batch(inputs, labels, 0.0)
        engine.reset(BATCH, {})
        for t in range(STEPS):
            found = engine.step({name: array[t] for name, array in inputs.items()})
            assert_same_records(found, {name: record[t] for name, record in wanted.items()})


def spiking():
    """A network with an input of spikes over more than one word."""
    return lower(dense(np.random.default_rng(3), 70, 20, kind="spikes"), loss=parse_loss("ce_rate"), optimizer=Adam(1e-2))


def test_events_are_the_dense_array_that_they_stand_for():
    program = spiking()
    inputs, labels = data(program, STEPS, BATCH)
    events = {name: snnc.Events.from_dense(array) for name, array in inputs.items()}
    with opened(program) as engine:
        wanted, loss = engine.forward(inputs, {}), engine.train_batch(inputs, labels, 0.0)
        engine.forward({name: 1 - array for name, array in inputs.items()}, {})
        for name, record in engine.forward(events, {}).items():
            np.testing.assert_array_equal(record, wanted[name])
        assert engine.train_batch(events, labels, 0.0) == loss
        none = snnc.Events.from_dense(np.zeros((STEPS, BATCH, 70)))
        silent = engine.forward({"x0": none}, {})
        for name, record in engine.forward({"x0": none.dense()}, {}).items():
            np.testing.assert_array_equal(record, silent[name])
        with pytest.raises(NativeError, match="ascending"):
            engine.session.set_events("x0", np.arange(STEPS * BATCH + 1), np.full(STEPS * BATCH, 70))


def test_events_of_an_input_of_values_are_ones():
    program = lower(delayed(np.random.default_rng(3)))
    (info, *_) = program.inputs
    rng = np.random.default_rng(0)
    dense_inputs = {i.id: (rng.random((STEPS, BATCH, *i.shape)) < 0.3).astype(np.float32) for i in program.inputs}
    events = dense_inputs | {info.id: snnc.Events.from_dense(dense_inputs[info.id])}
    with opened(program) as engine:
        assert_same_records(engine.forward(events, {}), engine.forward(dense_inputs, {}))


class _OnDevice:
    """An array that says of itself by DLPack that it lies on a CUDA device; in a check that is the host."""

    def __init__(self, values, device=2):
        self.values, self.device, self.streams = values, device, []

    @property
    def shape(self):
        return self.values.shape

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, stream=None):
        self.streams.append(stream)
        return self.values.__dlpack__()


def test_arrays_behind_dlpack_are_read_where_they_are():
    program = spiking()
    inputs, _ = data(program, STEPS, BATCH)
    with opened(program) as engine:
        wanted = engine.forward(inputs, {})
        there = {name: _OnDevice(array) for name, array in inputs.items()}
        for name, record in engine.forward(there, {}).items():
            np.testing.assert_array_equal(record, wanted[name])
        assert there["x0"].streams == [1]
        x = inputs["x0"]
        for wrong, told in ((x.astype(np.float64), "64 bits"), (x[..., :-1].copy(), "shape"), (np.asfortranarray(x), "not contiguous")):
            with pytest.raises(DeviceArrayError, match=told):
                engine.forward({"x0": _OnDevice(wrong)}, {})


@pytest.mark.representative("spikes")
@pytest.mark.parametrize("kind", ["spikes", "values"])
def test_batches_that_are_sent_ahead_are_those_that_are_set(kind):
    """Three batches, one after the other; a batch in between that was not offered; another size; a batch that is refused."""
    program = spiking() if kind == "spikes" else program_of("recurrent")
    batches = [data(program, STEPS, BATCH, seed=seed) for seed in range(4)]
    small = data(program, STEPS, 2)
    bad = data(program, STEPS, BATCH)[0], np.full(BATCH, 99)
    order = [*batches[:3], small, batches[3], bad, batches[0], batches[1]]

    def losses(engine, ahead):
        found = []
        for now, following in zip(order, [*order[1:], None], strict=True):
            if ahead and following is not None:
                engine.offer(*(batches[2] if following is batches[3] else following))
            if now is bad:
                with pytest.raises(NativeError, match="classes"):
                    engine.train_batch(*now, 0.0)
            else:
                found.append(engine.train_batch(*now, 0.0))
                found.append(float(next(iter(engine.forward(now[0], {}).values())).sum()) if now is batches[2] else 0.0)
        return found, engine.profile()["sent_ahead"]

    with opened(program) as engine:
        wanted, none = losses(engine, ahead=False)
    with opened(program) as engine:
        assert engine.accepts_next
        found, sent = losses(engine, ahead=True)
    assert found == wanted
    assert (none, sent) == (0, 4)


def test_a_session_sends_batches_ahead_and_learns_the_same(monkeypatch):
    program = spiking()
    rng = np.random.default_rng(0)
    x, y = (rng.random((12, STEPS, 70)) < 0.3).astype(np.float32), rng.integers(0, 4, 12)
    found = []
    for ahead in (True, False):
        monkeypatch.setattr(CudaEngine, "accepts_next", ahead)
        with opened(program) as engine:
            session = BackendSession(engine, program)
            session.fit(x, y, epochs=2, batch=4)
            found.append(session.state_dict())
            # Two epochs of three batches; what follows an epoch is not known before its end, which may be that of the training.
            assert engine.profile()["sent_ahead"] == (4 if ahead else 0)
    for name, value in found[0].items():
        np.testing.assert_array_equal(found[1][name], value)


def test_what_lies_on_the_host_or_is_no_array_is_no_device_array():
    assert device_array(np.zeros(3)) is None
    assert device_array(_OnDevice(np.zeros(3, np.float32), device=1)) is None
    assert device_array([1.0]) is None
    part = device_array(_OnDevice(np.arange(12, dtype=np.float32).reshape(3, 1, 4)[:, :, 1:]))
    assert (part.shape, part.contiguous, part.kind) == ((3, 1, 3), False, "float32")
    assert device_array(_OnDevice(np.zeros((2, 1, 3), np.float32)[:, ::-1])).contiguous
