"""Each error of the ONNX frontend, from the smallest file that causes it."""

import contextlib
import inspect

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_files import File, leaky

from snnc.compiler.errors import SnncError
from snnc.frontends.load import load
from snnc.frontends.onnx import errors
from snnc.frontends.onnx.load import load_onnx
from snnc.frontends.onnx.reading import reader

F = np.float32


def refused(path, error, match=""):
    with pytest.raises(error, match=match) as caught:
        load(path)
    assert caught.value.code == error.code
    assert "\n" not in str(caught.value)


def saved(f, tmp_path, inputs=None, outputs=("y",), **options):
    f.nodes[-1].output[0] = outputs[0]
    return f.save(tmp_path / "m.onnx", inputs or {"x": [4, 2, 3]}, list(outputs), **options)


def test_every_error_has_its_own_code():
    kinds = [k for _, k in inspect.getmembers(errors, inspect.isclass) if k.__module__ == errors.__name__]
    assert len({k.code for k in kinds}) == len(kinds) == 26
    assert all(k.code.startswith("SNNC-E2") for k in kinds)


def test_a_missing_file(tmp_path):
    refused(tmp_path / "none.onnx", errors.UnreadableFileError, "No such file")


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / "m.onnx").write_text("hello")
    refused(tmp_path / "m.onnx", errors.UnreadableFileError, "not an ONNX model")


def test_an_old_opset(tmp_path):
    f = File()
    f("Relu", "x")
    refused(saved(f, tmp_path, opset=9), errors.OpsetError, "opset 9")


def test_a_foreign_operator(tmp_path):
    f = File()
    f("FancySpike", "x", domain="com.acme")
    refused(saved(f, tmp_path), errors.ForeignOperatorError, "com.acme")


@pytest.mark.parametrize("location", ["/etc/hostname", "../w.bin", "nowhere.bin"])
def test_external_data_that_is_not_in_the_folder(location, tmp_path):
    f = File()
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3, 3], data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value=location)
    f.constants.append(w)
    f("MatMul", "x", "w")
    refused(saved(f, tmp_path), errors.ExternalDataError, "'w'")


def test_a_link_out_of_the_folder(tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "w.bin").write_bytes(b"\0" * 36)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "w.bin").symlink_to(tmp_path / "outside" / "w.bin")
    f = File()
    w = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3, 3], data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value="w.bin")
    f.constants.append(w)
    f("MatMul", "x", "w")
    refused(saved(f, tmp_path / "model"), errors.ExternalDataError, "outside")


def test_a_tensor_of_the_wrong_size(tmp_path):
    f = File()
    f("MatMul", "x", np.eye(3))
    f.constants[-1].dims[0] = 300
    refused(saved(f, tmp_path), errors.TensorError, "needs 3,600 bytes but has 36")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite(value, tmp_path):
    f = File()
    f("Add", "x", value)
    refused(saved(f, tmp_path), errors.NotFiniteTensorError, "1 NaN or infinite")


def test_a_cycle(tmp_path):
    f = File()
    f.nodes.append(helper.make_node("Add", ["x", "b"], ["a"]))
    f.nodes.append(helper.make_node("Relu", ["a"], ["b"]))
    refused(f.save(tmp_path / "m.onnx", {"x": [4, 2, 3]}, ["b"]), errors.MalformedGraphError, "a cycle")


def test_two_initializers_of_one_name(tmp_path):
    f = File()
    f("MatMul", "x", np.eye(3))
    f.constants.append(f.constants[-1])
    refused(saved(f, tmp_path), errors.MalformedGraphError, "two initializers")


def test_an_operator_with_too_many_inputs(tmp_path):
    f = File()
    f("Relu", "x", "x")
    refused(saved(f, tmp_path), errors.MalformedGraphError, "Relu has 1 to 1")


@pytest.mark.parametrize("trips", [10**6, 2**62])
def test_an_enormous_trip_count(trips, tmp_path):
    body = helper.make_graph(
        [helper.make_node("Relu", ["s"], ["s2"]), helper.make_node("Identity", ["c"], ["c2"])],
        "body",
        [
            helper.make_tensor_value_info("k", TensorProto.INT64, []),
            helper.make_tensor_value_info("c", TensorProto.BOOL, []),
            helper.make_tensor_value_info("s", TensorProto.FLOAT, None),
        ],
        [helper.make_tensor_value_info("c2", TensorProto.BOOL, []), helper.make_tensor_value_info("s2", TensorProto.FLOAT, None)],
    )
    f = File()
    f("Loop", np.array(trips), np.array(True), "x", body=body)
    refused(saved(f, tmp_path), errors.OnnxLimitError, "trip")


def test_shapes_that_do_not_fit(tmp_path):
    f = File()
    f("MatMul", "x", np.eye(5))
    refused(saved(f, tmp_path), errors.ShapeError, r"\[4, 2, 3\]")


def test_an_operator_that_is_not_read(tmp_path):
    f = File()
    f("Softmax", "x")
    refused(saved(f, tmp_path), errors.UnsupportedOperatorError, "Softmax")


def test_a_transposed_convolution_of_a_given_size_is_not_read_yet(tmp_path):
    f = File()
    f("ConvTranspose", "x", np.ones((2, 2, 1)), output_shape=[3])
    refused(saved(f, tmp_path), errors.NotYetError, "not supported yet")


@pytest.mark.parametrize(
    ("weight", "attributes", "error"),
    [
        ((2, 5, 1), {}, errors.ShapeError),
        ((2, 2, 9), {}, errors.ShapeError),
        ((2, 2, 1), {"group": 3}, errors.ShapeError),
        ((2, 2, 1), {"kernel_shape": [2]}, errors.ShapeError),
        ((2, 2, 1), {"strides": [0]}, errors.MalformedGraphError),
        ((2, 2, 1), {"pads": [1]}, errors.MalformedGraphError),
        ((2, 2, 1), {"auto_pad": "SAME"}, errors.MalformedGraphError),
        ((2, 2, 1, 1), {}, errors.ShapeError),
    ],
    ids=["channels", "kernel", "groups", "kernel_shape", "stride", "pads", "auto_pad", "dimensions"],
)
def test_convolutions_that_do_not_fit(weight, attributes, error, tmp_path):
    f = File()
    f("Conv", "x", np.ones(weight), **attributes)
    refused(saved(f, tmp_path), error, "Conv|convolution")


def test_batch_normalisation_in_training_mode(tmp_path):
    f = File()
    f("BatchNormalization", "x", *(np.ones(2) for _ in range(4)), training_mode=1)
    refused(saved(f, tmp_path), errors.UnsupportedOperatorError, "eval")


def test_a_switch_that_is_neither_on_nor_off(tmp_path):
    f = File()
    f("ReduceMean", "x", keepdims=4)
    refused(saved(f, tmp_path), errors.MalformedGraphError, "'keepdims' is 4; it must be 0 or 1")


def test_an_axis_that_is_named_twice(tmp_path):
    f = File()
    f("Unsqueeze", "x", np.array([0, 0]))
    refused(saved(f, tmp_path), errors.MalformedGraphError, "list an axis twice")


def test_an_index_that_depends_on_data(tmp_path):
    f = File()
    index = f("Cast", f("Greater", f("ReduceMax", "x", keepdims=0), 0.0), to=TensorProto.INT64)
    f("Gather", "x", index)
    refused(saved(f, tmp_path), errors.DataDependentError, "index")


def test_a_network_without_time(tmp_path):
    f = File()
    f("Relu", f("MatMul", "x", np.eye(3)))
    refused(saved(f, tmp_path, {"x": [2, 3]}), errors.NoTimeError, "stateless")


def test_zero_steps(tmp_path):
    f = File()
    f("Relu", "x")
    refused(saved(f, tmp_path, {"x": [0, 2, 3]}), errors.NoTimeError, r"\[0, 2, 3\]")


def test_lost_state(tmp_path):
    f = File()
    f("Cast", f("Greater", f("MatMul", "x", np.eye(3)), 1.0), to=1)
    refused(saved(f, tmp_path, {"x": [2, 3]}), errors.StateLossError, "init_hidden")


def unrolled(f, read, change=lambda t, m: m):
    mem, spikes = f.const(np.zeros((2, 3), F)), []
    for t in range(4):
        spike, mem = leaky(f, f("Gather", "x", np.array(read(t)), axis=0), mem)
        mem = change(t, mem)
        spikes.append(spike)
    f.stack(spikes, "y")


def test_steps_that_differ(tmp_path):
    f = File()
    mem, spikes = f.const(np.zeros((2, 3), F)), []
    for t in range(4):
        spike, mem = leaky(f, f("Gather", "x", np.array(t), axis=0), mem, beta=0.5 + 0.1 * t)
        spikes.append(spike)
    f.stack(spikes, "y")
    refused(saved(f, tmp_path), errors.TimeVaryingError, "parameter")


def test_a_sequence_out_of_order(tmp_path):
    f = File()
    unrolled(f, lambda t: 3 - t)
    refused(saved(f, tmp_path), errors.TimeMixingError, "in order")


def test_a_first_step_that_nothing_explains(tmp_path):
    f = File()
    unrolled(f, lambda t: t, lambda t, m: f("Add", f("Mul", m, 3.0), 0.123) if t == 0 else m)
    refused(saved(f, tmp_path), errors.InitialStateError, "first step|initial state")


def test_a_readout_that_is_no_summary(tmp_path):
    f = File()
    unrolled(f, lambda t: t)
    f.nodes[-1].output[0] = "stack"
    f("Relu", f("ReduceMax", "stack", axes=[0], keepdims=0))
    refused(saved(f, tmp_path), errors.ReadoutError, "applies further operations to the max over the steps")


def test_a_readout_over_the_samples_of_a_batch(tmp_path):
    f = File()
    unrolled(f, lambda t: t)
    f.nodes[-1].output[0] = "stack"
    f("ReduceSum", "stack", np.array([0, 1]), keepdims=0)
    refused(saved(f, tmp_path), errors.StepGraphError, "over the samples of a batch")


def test_states_that_cannot_be_paired(tmp_path):
    f = File()
    f("Add", "x", "a")
    f("Add", "x", "b")
    f.nodes[-2].output[0] = "p"
    inputs = {"x": [2, 3], "a": [2, 3], "b": [2, 3]}
    f.nodes[-1].output[0] = "y"
    f("Mul", "p", "y")
    refused(saved(f, tmp_path, inputs, ("z",)), errors.StatePairError, "a, b")


def test_samples_that_are_mixed(tmp_path):
    f = File()
    rows = [f("ReduceSum", f("Gather", "x", np.array(t), axis=0), np.array([0]), keepdims=1) for t in range(4)]
    f.stack(rows, "y")
    refused(saved(f, tmp_path), errors.StepGraphError, "samples of a batch")


def test_a_size_that_is_not_as_dynamic_as_declared(tmp_path):
    f = File()
    size = f("Gather", f("Shape", "x"), np.array(1), axis=0)
    mem, values = f.const(np.zeros((1, 3), F)), []
    for t in range(4):
        mem = f("Add", f("Mul", mem, f("Cast", size, to=1)), f("Gather", "x", np.array(t), axis=0))
        values.append(mem)
    f.stack(values, "y")
    refused(saved(f, tmp_path, {"x": [4, "batch", 3]}), errors.NotGenericError, "'batch'")


def test_damage_anywhere_gives_a_coded_error_or_a_graph(tmp_path):
    f = File()
    unrolled(f, lambda t: t)
    data = saved(f, tmp_path).read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(60):
        broken = bytearray(data)
        for at in rng.integers(0, len(data), 3):
            broken[at] = rng.integers(256)
        (tmp_path / "b.onnx").write_bytes(bytes(broken))
        with contextlib.suppress(SnncError):
            load_onnx(tmp_path / "b.onnx")


def test_weights_beside_the_model_are_read(tmp_path):
    f = File()
    unrolled(f, lambda t: t)
    model = onnx.load(saved(f, tmp_path))
    onnx.save(model, tmp_path / "e.onnx", save_as_external_data=True, size_threshold=0, location="e.bin")
    assert load_onnx(tmp_path / "e.onnx").steps == 4


@pytest.mark.parametrize("read", [True, False])
def test_weights_that_no_node_reads_are_not_loaded(read, tmp_path, monkeypatch):
    f = File()
    unrolled(f, lambda t: t)
    model = onnx.load(saved(f, tmp_path))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.zeros((64, 64), F), "unused"))
    if read:
        model.graph.node.append(helper.make_node("Identity", ["unused"], ["seen"]))
        model.graph.output.append(helper.make_tensor_value_info("seen", TensorProto.FLOAT, [64, 64]))
    onnx.save(model, tmp_path / "e.onnx", save_as_external_data=True, size_threshold=0, location="e.bin")
    loaded = []
    load_external = reader._load_external
    monkeypatch.setattr(reader, "_load_external", lambda tensor, name, path: (loaded.append(name), load_external(tensor, name, path)))
    with contextlib.suppress(SnncError):
        load_onnx(tmp_path / "e.onnx")
    assert ("unused" in loaded) is read
    assert len(loaded) > 1


@pytest.mark.parametrize("steps", [20_001, 10**6, 10**9, 2**62])
def test_a_time_axis_of_more_steps_than_are_unrolled(steps, tmp_path):
    f = File()
    unrolled(f, lambda t: t)
    refused(saved(f, tmp_path, {"x": [steps, 2, 3]}), errors.OnnxLimitError, f"{steps:,} time steps|elements")


def test_a_step_of_more_values_than_are_compared(tmp_path):
    f, mem, spikes = File(), np.array(0, F), []
    for t in range(4):
        mem = f("Add", f("Mul", 0.9, mem), f("Gather", "x", np.array(t), axis=0))
        spikes.append(f("Cast", f("Greater", mem, np.array(1, F)), to=1))
    f.stack(spikes, "y")
    refused(f.save(tmp_path / "m.onnx", {"x": [4, 10**8, 3]}, ["y"]), errors.OnnxLimitError, "elements")


def late_recurrence(path, steps):
    """Currents reach the membrane a step late, spikes their neurons another step late, and the readout reads the spike before."""
    f, zero = File(), np.zeros((2, 3), F)
    current, mem, spike, read, values = zero, zero, zero, zero, []
    for t in range(steps):
        incoming = f("MatMul", f("Gather", "x", np.array(t), axis=0), np.eye(4, 3, dtype=F))
        incoming = f("Add", incoming, f("MatMul", spike, 0.5 * np.ones((3, 3), F)))
        spike = f("Cast", f("Greater", mem, np.array(0.5, F)), to=1)
        mem, current = f("Add", f("Mul", 0.9, mem), current), f("Add", f("Mul", 0.8, current), incoming)
        read = f("Add", f("Mul", 0.9, read), spike)
        values.append(read)
    f.stack(values, "y")
    return f.save(path / f"{steps}.onnx", {"x": [steps, 2, 4]}, ["y"])


def test_too_few_steps_for_a_signal_to_come_around_twice(tmp_path):
    with pytest.raises(errors.TimeVaryingError, match="export more steps"):
        load_onnx(late_recurrence(tmp_path, 6))
    assert load_onnx(late_recurrence(tmp_path, 12)).steps == 12
