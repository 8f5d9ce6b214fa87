"""ReLU networks become integrate-and-fire neurons: accepted networks, results of the neurons, and refusals."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from onnx_files import F, File
from relu_files import cnn, drawn, mlp, named, runtime
from wide import examples

import snnc
from snnc.compiler.ir.graph import FileLayout, Graph, Input, Linear, Output, Population, Reduce, Scale
from snnc.compiler.ir.shapes import port_map
from snnc.frontends.ann2snn.conversion import convert_file
from snnc.frontends.ann2snn.convert import convert, spiking
from snnc.frontends.ann2snn.errors import (
    AlreadySpikingError,
    BatchAxisError,
    CalibrationMissingError,
    CalibrationShapeError,
    CalibrationValueError,
    ConversionOptionError,
    LabelError,
    NoSpikingFormError,
    SilentLayerError,
)
from snnc.frontends.ann2snn.measuring import scales
from snnc.frontends.ann2snn.read import read_relu_network, recognise
from snnc.frontends.ann2snn.samples import check_samples, split
from snnc.frontends.onnx.errors import MalformedGraphError, OnnxLimitError

pytest.importorskip("onnxruntime")
STATIC = FileLayout(None, 0)
CORPUS = ("ann_cnn_bn_max_dyn", "ann_mlp_relu6_clip_ts", "ann_mlp_relu_dyn", "ann_mlp_relu_ts", "ann_resblock_dyn")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def run(graph, x, output="y", steps=None, **others):
    with snnc.compile(graph) as session:
        return session.run({"x": x, **others}, steps=steps)[output]


def twice(x):
    """Samples of which those that balance are those that measure."""
    return np.repeat(x, 2, axis=0)


# ---- what is read ----------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 2**31), blocks=st.integers(0, 4), batch=st.sampled_from(["batch", 2]))
@settings(max_examples=examples(8, 25), deadline=None)
def test_a_network_that_is_read_computes_what_the_file_does(tmp_path_factory, seed, blocks, batch):
    rng = np.random.default_rng(seed)
    path = cnn(rng, tmp_path_factory.mktemp("net") / "net.onnx", blocks, batch)
    x = drawn(rng, 4, 2, 5, 5, scale=1)
    wanted = runtime(path, x)
    np.testing.assert_allclose(run(recognise(path).graph, x, steps=1), wanted, atol=1e-4 * np.abs(wanted).max())


@pytest.mark.parametrize("matmul", [False, True])
@pytest.mark.parametrize("batch", ["batch", 1, 3])
def test_products_with_their_biases_are_one_layer(tmp_path, rng, matmul, batch):
    network = recognise(mlp(rng, tmp_path / "m.onnx", (6, 8, 5), batch, matmul=matmul))
    operations = [type(network.graph.operation(n)) for n in network.graph.names]
    assert operations == [Input, Linear, Population, Linear, Output]
    assert all(layer.bias is not None for _, layer in network.graph.of_type(Linear))


@pytest.mark.parametrize("name", CORPUS)
def test_exports_of_pytorch_are_read_exactly(root, name):
    with np.load(root / "tests" / "corpus" / f"{name}.npz") as z:
        x, wanted = z["in_x"], z["out_logits"]
    found = run(recognise(root / "tests" / "corpus" / f"{name}.onnx").graph, x, "logits", steps=1)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_a_softmax_at_the_end_is_left_out_and_said(root):
    path = root / "tests" / "corpus" / "ann_mlp_softmax_ts.onnx"
    with np.load(path.with_suffix(".npz")) as z:
        x, wanted = z["in_x"], z["out_logits"]
    network = recognise(path)
    logits = np.asarray(run(network.graph, x, "logits", steps=1), np.float64)
    np.testing.assert_allclose(np.exp(logits) / np.exp(logits).sum(1, keepdims=True), wanted, atol=1e-6)
    (said,) = network.notes
    assert "Softmax node '/5/Softmax'" in said


def test_poolings_and_shapes_before_the_first_weight_are_read(tmp_path, rng):
    f = File()
    x = f("MaxPool", f("Transpose", "x", perm=[0, 3, 1, 2]), kernel_shape=[2, 2], strides=[2, 2])
    x = f("Gemm", f("Flatten", f("Relu", f("Neg", f("Div", x, np.array(2, F))))), drawn(rng, 3, 4), transB=1)
    named(f, f("Sub", np.ones(3, F), x))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 4, 4, 1]}, ["y"])
    x = drawn(rng, 5, 4, 4, 1, scale=1)
    np.testing.assert_allclose(run(recognise(path).graph, x, steps=1), runtime(path, x), atol=1e-6)


def test_several_inputs_slices_and_a_difference(tmp_path, rng):
    f = File()
    a, b = f("Split", f("Relu", f("Gemm", "x", drawn(rng, 8, 4), transB=1)), outputs=2, axis=1, num_outputs=2)
    both = f("Sub", f("Add", a, f("Mul", b, np.array(3, F))), f("Relu", "z"))
    named(f, f("Gemm", f("Relu", both), drawn(rng, 3, 4), transB=1))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 4], "z": ["n", 4]}, ["y"], opset=18)
    x, z = drawn(rng, 6, 4, scale=1), drawn(rng, 6, 4, scale=1)
    import onnxruntime

    (wanted,) = onnxruntime.InferenceSession(str(path)).run(None, {"x": x, "z": z})
    np.testing.assert_allclose(run(recognise(path).graph, x, steps=1, z=z), wanted, atol=1e-5)
    found = convert_file(path, {"x": twice(x), "z": twice(z)}, steps=1000, percentile=100)
    np.testing.assert_allclose(run(found.graph, x, z=z), wanted, atol=0.01 * np.abs(wanted).max())


# ---- the neuron ------------------------------------------------------------------------------------------------------


@given(current=st.floats(-2, 3, width=32), steps=st.integers(1, 60))
@settings(max_examples=examples(20, 60), deadline=None)
def test_a_neuron_rounds_its_constant_current_to_the_nearest_rate(current, steps):
    graph = Graph("one", steps)
    graph.add("x", Input((1,), "values", STATIC))
    graph.add("n", spiking((1,)))
    graph.add("y", Output("sum", STATIC))
    graph.connect("x", "n")
    graph.connect("n", "y")
    (count,) = run(graph, np.array([[current]], F))[0]
    v, wanted = np.float32(0.5), 0
    for _ in range(steps):
        v += np.float32(current)
        wanted += v >= 1
        v -= v >= 1
    assert count == wanted
    assert abs(count / steps - np.clip(current, 0, 1)) <= 0.5 / steps + 1e-4


# ---- laws ------------------------------------------------------------------------------------------------------------


def bound(graph):
    """Largest distance, over all steps, of the sum of the outputs from steps times the network's stationary output.

    A neuron whose input sum strays from a straight line by at most e fires within e + 1/2 of the clipped line; weights of absolute row
    sum w hand on w times the distance of their source.
    """
    distance = 0.0
    for name, layer in graph.of_type(Linear):
        distance *= np.abs(layer.weight).sum(axis=1).max()
        (after,) = graph.outgoing(name)
        if isinstance(graph.operation(after.target), Population):
            distance += 0.5
    return distance


@given(seed=st.integers(0, 2**31), hidden=st.lists(st.integers(1, 12), min_size=1, max_size=3), steps=st.sampled_from([3, 16, 100]))
@settings(max_examples=examples(10, 30), deadline=None)
def test_the_error_of_an_mlp_falls_with_one_over_the_steps(tmp_path_factory, seed, hidden, steps):
    rng = np.random.default_rng(seed)
    path = mlp(rng, tmp_path_factory.mktemp("net") / "net.onnx", (5, *hidden, 4))
    x = drawn(rng, 12, 5, scale=1)
    try:
        found = convert_file(path, {"x": twice(x)}, steps=steps, percentile=100)
    except SilentLayerError:
        reject()
    wanted = runtime(path, x)
    error = np.abs(run(found.graph, x) - wanted).max()
    assert error <= bound(found.graph) / steps + 1e-4 * np.abs(wanted).max()


@given(seed=st.integers(0, 2**31), blocks=st.integers(0, 3))
@settings(max_examples=examples(3, 6), deadline=None)
def test_convolutions_poolings_and_residual_sums_converge(tmp_path_factory, seed, blocks):
    rng = np.random.default_rng(seed)
    path = cnn(rng, tmp_path_factory.mktemp("net") / "net.onnx", blocks, size=4)
    x = drawn(rng, 4, 2, 4, 4, scale=1)
    try:
        found = convert_file(path, {"x": twice(x)}, steps=400, percentile=100)
    except SilentLayerError:
        reject()
    few, *_, many = found.report.points
    assert (few.steps, many.steps) == (50, 400)
    assert many.error <= 0.02
    assert many.error <= few.error / 3 + 1e-3


def test_maximum_pooling_is_exact_for_rates(tmp_path, rng):
    """The largest number of spikes of a window, not the spikes of the neuron that happens to lead."""
    f = File()
    named(f, f("GlobalMaxPool", f("Relu", "x")))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 2, 3, 3]}, ["y"])
    x = rng.uniform(0.2, 1, (8, 2, 3, 3)).astype(F)
    graph = convert_file(path, {"x": twice(x)}, steps=20, percentile=100).graph
    counts = np.minimum(np.floor(0.5 + 20 * x.astype(float) / x.max()), 20)
    np.testing.assert_allclose(run(graph, x).reshape(8, 2) / x.max() * 20, counts.max(axis=(2, 3)), atol=1e-4)
    (increments,) = (n for n, p in graph.of_type(Population) if p.model.name == "Increment")
    assert port_map(graph)[increments, "s"].kind == "spikes"


def test_the_maximum_of_sums_of_rates_is_exact_too(tmp_path, rng):
    f = File()
    mean = f("AveragePool", f("Relu", "x"), kernel_shape=[2, 2], strides=[1, 1])
    named(f, f("GlobalMaxPool", mean))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 2, 4, 4]}, ["y"])
    x = drawn(rng, 8, 2, 4, 4, scale=1)
    graph = convert_file(path, {"x": twice(x)}, steps=400, percentile=100).graph
    np.testing.assert_allclose(run(graph, x), runtime(path, x), atol=x.max() * 0.75 / 400)


def test_edges_behind_neurons_carry_spikes_and_thresholds_are_one(tmp_path, rng):
    graph = convert_file(mlp(rng, tmp_path / "m.onnx", (6, 20, 20, 5)), {"x": drawn(rng, 50, 6, scale=1)}).graph
    ports = port_map(graph)
    populations = [name for name, _ in graph.of_type(Population)]
    assert len(populations) == 2
    for name in populations:
        assert ports[name, "s"].kind == "spikes"
        assert graph.operation(name).model.parameters["threshold"] == 1
    assert graph.steps == 64


def test_a_branch_of_another_scale_passes_a_factor_on_its_way_to_a_sum(tmp_path, rng):
    f = File()
    a = f("Relu", f("Gemm", "x", 50 * drawn(rng, 8, 8), transB=1))
    b = f("Relu", f("Gemm", a, 1e-3 * drawn(rng, 8, 8), transB=1))
    named(f, f("Gemm", f("Concat", f("Add", a, b), b, axis=1), drawn(rng, 3, 16), transB=1))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 8]}, ["y"])
    x = drawn(rng, 20, 8, scale=1)
    found = convert_file(path, {"x": twice(x)}, steps=1000, percentile=100)
    wanted = runtime(path, x)
    np.testing.assert_allclose(run(found.graph, x), wanted, atol=0.01 * np.abs(wanted).max())


def test_a_network_that_ends_in_a_relu_gives_values_of_the_file(tmp_path, rng):
    f = File()
    named(f, f("Relu", f("Gemm", "x", 10 * drawn(rng, 4, 6), transB=1)))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 6]}, ["y"])
    x = drawn(rng, 20, 6, scale=1)
    found = run(convert_file(path, {"x": twice(x)}, steps=500, percentile=100).graph, x)
    wanted = runtime(path, x)
    np.testing.assert_allclose(found, wanted, atol=wanted.max() / 2 / 500 * 1.01)


# ---- balance and measures --------------------------------------------------------------------------------------------


def test_a_percentile_is_not_moved_by_one_wild_sample(tmp_path, rng):
    network = recognise(mlp(rng, tmp_path / "m.onnx", (6, 20, 5)))
    x = drawn(rng, 400, 6, scale=1)
    x[0] *= 100
    layer = network.graph.operation("linear1")
    activations = np.maximum(x.astype(float) @ layer.weight.T + layer.bias, 0)
    for percentile in (50, 99, 100):
        found, used = scales(network.graph, check_samples(network.graph, {"x": x}), percentile, network.origins)
        assert used == 400
        assert found["relu1"] == pytest.approx(np.percentile(activations[activations > 0], percentile), rel=1e-5)
    assert found["relu1"] > 10 * np.percentile(activations[activations > 0], 99)


def test_a_ceiling_is_the_rate_of_one(tmp_path, rng):
    path = mlp(rng, tmp_path / "m.onnx", (6, 20, 5), ceiling=0.3)
    x = drawn(rng, 40, 6, scale=2)
    found = convert_file(path, {"x": twice(x)}, steps=800)
    assert found.report.layers[0].threshold == pytest.approx(0.3)
    wanted = runtime(path, x)
    np.testing.assert_allclose(run(found.graph, x), wanted, atol=bound(found.graph) / 800 + 1e-5)


def test_what_is_reported_is_what_the_reference_gives(tmp_path, rng):
    path = mlp(rng, tmp_path / "m.onnx", (6, 30, 30, 5))
    x = drawn(rng, 61, 6, scale=1)
    wanted = runtime(path, x)
    labels = np.where(np.arange(61) % 3, wanted.argmax(1), 0)
    found = convert_file(path, {"x": x, "y": labels}, steps=40)
    report, half = found.report, slice(1, None, 2)
    assert report.balanced_on == (31, "samples 0, 2, 4, …")
    assert report.measured_on == (30, "samples 1, 3, 5, …")
    assert report.accuracy == pytest.approx((wanted.argmax(1) == labels)[half].mean())
    assert [p.steps for p in report.points] == [5, 10, 20, 40]
    for point in report.points:
        graph = found.graph.copy()
        graph.steps = point.steps
        ours = run(graph, x[half])
        error = np.linalg.norm(ours - wanted[half], axis=1) / np.linalg.norm(wanted[half], axis=1)
        assert point.accuracy == pytest.approx((ours.argmax(1) == labels[half]).mean())
        assert point.agreement == pytest.approx((ours.argmax(1) == wanted[half].argmax(1)).mean())
        assert point.error == pytest.approx(error.mean(), rel=1e-3)
        assert point.error_95 == pytest.approx(np.percentile(error, 95), rel=1e-3)
    assert report.loss == pytest.approx(report.accuracy - report.points[-1].accuracy)
    said = "\n".join(found.graph.assumptions)
    assert f"{100 * report.accuracy:.2f} % of the ReLU network" in said
    assert "Gemm" not in said
    assert "samples 1, 3, 5, …) to measure the results" in said


def test_firing_rates_are_those_of_the_spikes(tmp_path, rng):
    path = mlp(rng, tmp_path / "m.onnx", (6, 30, 5))
    x = drawn(rng, 10, 6, scale=1)
    found = convert_file(path, {"x": x}, steps=50)
    graph = found.graph.copy()
    graph.add("spikes", Output("mean", STATIC))
    graph.connect("relu1", "spikes")
    assert found.report.layers[0].rate == pytest.approx(run(graph, x[1::2], "spikes").mean(), rel=1e-6)


def test_a_single_sample_balances_and_measures_and_it_is_said(tmp_path, rng):
    found = convert_file(mlp(rng, tmp_path / "m.onnx"), {"x": drawn(rng, 1, 6, scale=1)})
    assert any("the numbers below are optimistic" in text for text in found.graph.assumptions)


def test_large_data_are_thinned_out_evenly(tmp_path, rng):
    graph = recognise(mlp(rng, tmp_path / "m.onnx")).graph
    samples = check_samples(graph, {"x": np.repeat(np.arange(5000, dtype=F)[:, None], 6, axis=1), "y": np.arange(5000) // 1000})
    assert len(samples) == 2048
    assert samples.inputs["x"][-1, 0] == 4999
    assert all(set(part.labels.tolist()) == set(range(5)) for part in split(samples))
    assert "2048 of 5,000" in samples.described


def test_weights_are_the_files_times_ratios_of_thresholds(tmp_path, rng):
    network = recognise(mlp(rng, tmp_path / "m.onnx", (6, 8, 5)))
    made = convert(network.graph, {"relu1": 4.0}, 10)
    first, second = (network.graph.operation(n) for n in ("linear1", "linear2"))
    np.testing.assert_allclose(made.operation("linear1").weight, first.weight / 4, rtol=1e-6)
    np.testing.assert_allclose(made.operation("linear1").bias, first.bias / 4, rtol=1e-6)
    np.testing.assert_allclose(made.operation("linear2").weight, second.weight * 4, rtol=1e-6)
    np.testing.assert_allclose(made.operation("linear2").bias, second.bias, rtol=1e-6)


# ---- what is refused -------------------------------------------------------------------------------------------------


def behind_a_layer(tmp_path, rng, op, *inputs, outputs=1, opset=17, **attributes):
    f = File()
    x = f("Relu", f("Gemm", "x", drawn(rng, 6, 6), transB=1))
    f(op, x, *inputs, outputs=outputs, **attributes)
    first = f.nodes[-1].output[0]
    named(f, f("Gemm", first, drawn(rng, 3, 6), transB=1))
    return f.save(tmp_path / "m.onnx", {"x": ["n", 6]}, ["y"], opset)


@pytest.mark.parametrize(
    ("op", "inputs", "reason"),
    [
        ("LeakyRelu", (), "rates start at 0"),
        ("PRelu", (np.full(6, 0.1, F),), "rates start at 0"),
        ("Sigmoid", (), "follows ReLU or ReLU6"),
        ("Tanh", (), "follows ReLU or ReLU6"),
        ("Softmax", (), "only be left out at the end"),
        ("LayerNormalization", (np.ones(6, F),), "batch normalisation"),
        ("Greater", (np.zeros(6, F),), "compares or selects"),
        ("CumSum", (np.array(1),), "it has no spiking form"),
        ("Clip", (np.array(-1, F), np.array(1, F)), "limits values to -1.0 … 1.0"),
        ("Clip", (np.array(0, F), np.array(0, F)), "limits values"),
        ("Max", (np.array(1, F),), "limits values"),
        ("Div", (np.zeros(6, F),), "divides"),
        ("Dropout", (np.array(0.5, F), np.array(True)), "training mode"),
    ],
)
def test_a_layer_without_a_spiking_form_is_refused_by_name(tmp_path, rng, op, inputs, reason):
    path = behind_a_layer(tmp_path, rng, op, *inputs)
    with pytest.raises(NoSpikingFormError, match=reason) as caught:
        read_relu_network(path)
    assert f"{op} node 'v" in str(caught.value)


def test_a_product_of_values_is_refused(tmp_path, rng):
    f = File()
    x = f("Relu", "x")
    named(f, f("Gemm", f("Mul", x, f("Neg", x)), drawn(rng, 3, 6), transB=1))
    with pytest.raises(NoSpikingFormError, match="multiplies or divides values"):
        read_relu_network(f.save(tmp_path / "m.onnx", {"x": ["n", 6]}, ["y"]))


def test_a_matrix_for_each_row_of_a_sample_is_refused(tmp_path, rng):
    f = File()
    named(f, f("MatMul", f("Relu", "x"), drawn(rng, 6, 3)))
    with pytest.raises(NoSpikingFormError, match="kernel of 1"):
        read_relu_network(f.save(tmp_path / "m.onnx", {"x": ["n", 4, 6]}, ["y"]))


def test_a_network_without_relu_is_refused(tmp_path, rng):
    with pytest.raises(NoSpikingFormError, match="contains no ReLU"):
        read_relu_network(mlp(rng, tmp_path / "m.onnx", (6, 5)))


def test_recurrent_networks_are_refused(root):
    with pytest.raises(NoSpikingFormError, match="only feed-forward networks"):
        read_relu_network(root / "tests" / "corpus" / "bad_lstm_ts.onnx")


@pytest.mark.parametrize(
    "name", ["snntorch_leaky_sub_ts.onnx", "sj14_ann2snn_converted_ts.onnx", "norse_scan_lif.onnx", "hand_nir_lif.nir"]
)
def test_a_spiking_network_is_said_to_be_one(root, name):
    with pytest.raises(AlreadySpikingError, match="leave --ann2snn out"):
        read_relu_network(root / "tests" / "corpus" / name)


@pytest.mark.parametrize("shape", [[6], ["n", "length"], [4, None]])
def test_open_sizes_besides_the_samples_are_refused(tmp_path, rng, shape):
    f = File()
    named(f, f("Relu", f("Mul", "x", np.array(2, F))))
    with pytest.raises(BatchAxisError, match="samples on the first axis"):
        read_relu_network(f.save(tmp_path / "m.onnx", {"x": shape}, ["y"]))


@pytest.mark.parametrize(
    "make",
    [
        lambda f, x: f("Reshape", x, np.array([6, 4])),
        lambda f, x: f("Transpose", x, perm=[1, 0]),
        lambda f, x: f("ReduceMean", x, axes=[0], keepdims=1),
        lambda f, x: f("Add", x, np.arange(24, dtype=F).reshape(4, 6)),
    ],
)
def test_samples_that_are_mixed_are_refused(tmp_path, make):
    f = File()
    named(f, make(f, f("Relu", "x")))
    with pytest.raises(BatchAxisError):
        read_relu_network(f.save(tmp_path / "m.onnx", {"x": [4, 6]}, ["y"]))


def test_an_output_without_the_input_is_refused(tmp_path):
    f = File()
    named(f, f("Relu", np.ones((1, 3), F)))
    with pytest.raises(NoSpikingFormError, match="does not depend on the inputs"):
        read_relu_network(f.save(tmp_path / "m.onnx", {"x": ["n", 6]}, ["y"]))


def test_a_network_too_large_to_be_run_is_refused_before_it_takes_memory(tmp_path, rng):
    f = File()
    x = f("Conv", "x", drawn(rng, 64, 1, 7, 7), pads=[3, 3, 3, 3])
    named(f, f("GlobalAveragePool", f("Relu", f("Conv", x, drawn(rng, 1, 64, 7, 7)))))
    with pytest.raises(OnnxLimitError, match="values at a time"):
        read_relu_network(f.save(tmp_path / "m.onnx", {"x": ["n", 1, 900, 900]}, ["y"]))


def test_bad_files_keep_their_own_errors(tmp_path, root):
    f = File()
    named(f, f("Relu", "nowhere"))
    with pytest.raises(MalformedGraphError):
        read_relu_network(f.save(tmp_path / "m.onnx", {"x": ["n", 6]}, ["y"]))


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        (lambda a: {}, CalibrationMissingError, "lack 'x'"),
        (lambda a: {"z": a}, CalibrationMissingError, "contain 'z'"),
        (lambda a: {"x": a[:, :5]}, CalibrationShapeError, r"\[10, 5\]; give \[samples, 6\]"),
        (lambda a: {"x": a[:0]}, CalibrationShapeError, "at least one sample"),
        (lambda a: {"x": a[0]}, CalibrationShapeError, "samples, 6"),
        (lambda a: {"x": np.where(a == a[3, 2], np.nan, a)}, CalibrationValueError, r"nan at index \[3, 2\]; 1 of 60"),
        (lambda a: {"x": np.full((10, 6), "one")}, CalibrationValueError, "real numbers"),
        (lambda a: {"x": 0 * a}, SilentLayerError, "'relu1' .Relu node"),
        (lambda a: {"x": a, "y": np.arange(10)}, LabelError, "label of sample 5 is 5.*0 and 4"),
        (lambda a: {"x": a, "y": np.full(10, -1)}, LabelError, "is -1"),
        (lambda a: {"x": a, "y": np.zeros(9, int)}, LabelError, "10 integers"),
        (lambda a: {"x": a, "y": np.zeros(10)}, LabelError, "float64"),
    ],
)
def test_sample_data_that_do_not_fit_are_refused(tmp_path, rng, change, error, said):
    f = File()
    hidden = f("Relu", f("Gemm", "x", drawn(rng, 8, 6), transB=1))
    named(f, f("Gemm", hidden, drawn(rng, 5, 8), transB=1))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 6]}, ["y"])
    with pytest.raises(error, match=said):
        convert_file(path, change(drawn(rng, 10, 6, scale=1)))


def test_inputs_need_as_many_samples_each(tmp_path):
    f = File()
    named(f, f("Relu", f("Add", "x", "z")))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 2], "z": ["n", 2]}, ["y"])
    with pytest.raises(CalibrationShapeError, match="3 samples of 'x', 4 samples of 'z'"):
        convert_file(path, {"x": np.ones((3, 2)), "z": np.ones((4, 2))})


@pytest.mark.parametrize(
    "chosen", [{"percentile": 0}, {"percentile": 101}, {"percentile": np.nan}, {"steps": 0}, {"steps": 2**40}, {"steps": 2.5}]
)
def test_options_out_of_range_are_refused(tmp_path, rng, chosen):
    with pytest.raises(ConversionOptionError, match=next(iter(chosen))):
        convert_file(mlp(rng, tmp_path / "m.onnx"), {"x": drawn(rng, 4, 6)}, **chosen)


def test_reductions_and_single_rows_keep_their_shapes(tmp_path, rng):
    f = File()
    rows = f("Relu", f("MatMul", f("Unsqueeze", "x", np.array([1])), drawn(rng, 6, 8)))
    total = f("ReduceSum", f("Reshape", rows, np.array([0, 4, 2])), np.array([2]), keepdims=0)
    named(f, f("Mean", total, f("ReduceMax", f("Reshape", rows, np.array([0, 4, 2])), axes=[2], keepdims=0)))
    path = f.save(tmp_path / "m.onnx", {"x": ["n", 6]}, ["y"])
    graph, x = recognise(path).graph, drawn(rng, 5, 6, scale=1)
    assert any(True for _ in graph.of_type(Reduce))
    assert not any(o.bias is not None for _, o in graph.of_type(Scale))
    np.testing.assert_allclose(run(graph, x, steps=1), runtime(path, x), atol=1e-5)
    found = convert_file(path, {"x": twice(x)}, steps=1000, percentile=100)
    np.testing.assert_allclose(run(found.graph, x), runtime(path, x), atol=0.02)
