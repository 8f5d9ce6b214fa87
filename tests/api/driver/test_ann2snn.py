"""ReLU networks from PyTorch and from files, with commands and in Python: trained classifiers, fine-tuning, ONNX Runtime."""

import json
import re
import warnings

import numpy as np
import pytest
from wide import examples

import snnc
from snnc.checks.trial import run_once
from snnc.cli import main as cli
from snnc.compiler.ir.graph import FileLayout, Output, Population
from snnc.frontends.ann2snn.errors import AlreadySpikingError, CalibrationMissingError
from snnc.frontends.onnx.errors import NoTimeError, OnnxError
from snnc.frontends.onnx.writer.errors import TorchModuleError

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")
F = np.float32


@pytest.fixture(scope="session")
def digits(root):
    """Images of 8 x 8, from 0 to 1, and their classes; the spikes of the shipped file are the earlier the brighter."""
    with np.load(root / "examples" / "digits" / "digits.npz") as z:
        parts = [(z[f"{part}x"], z[f"{part}y"]) for part in ("", "test_")]
    found = []
    for spikes, labels in parts:
        when = spikes.argmax(axis=1)
        images = np.where(spikes.any(axis=1), np.rint(16 - when * 15 / (spikes.shape[1] - 1)), 0) / 16
        found += [images.reshape(-1, 1, 8, 8).astype(F), labels.astype(np.int64)]
    return found


class Residual(torch.nn.Module):
    def __init__(self):
        super().__init__()
        conv, norm = torch.nn.Conv2d, torch.nn.BatchNorm2d
        self.a, self.na = conv(1, 8, 3, padding=1), norm(8)
        self.b, self.nb = conv(8, 8, 3, padding=1), norm(8)
        self.c = conv(8, 16, 3)
        self.dropout, self.fc = torch.nn.Dropout(0.1), torch.nn.Linear(64, 10)

    def forward(self, image):
        x = torch.relu(self.na(self.a(image)))
        x = torch.nn.functional.max_pool2d(torch.relu(x + self.nb(self.b(x))), 2)
        x = torch.relu(self.c(x))
        return self.fc(self.dropout(x.flatten(1)))


def trained(module, x, y, epochs):
    torch.manual_seed(0)
    optimizer = torch.optim.Adam(module.parameters(), 3e-3)
    x, y = torch.as_tensor(x), torch.as_tensor(y)
    for _ in range(epochs):
        for part in torch.randperm(len(x)).split(64):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(module(x[part]), y[part]).backward()
            optimizer.step()
    return module


def mlp():
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU6(), nn.Linear(64, 10))


@pytest.fixture(scope="session")
def classifiers(digits):
    """Trained modules; the accuracy of the residual network is compared only with ``--wide``."""
    torch.set_num_threads(1)
    x, y, *_ = digits
    torch.manual_seed(0)
    return {"mlp": trained(mlp(), x, y, 12), "residual": trained(Residual(), x, y, examples(1, 4))}


@pytest.fixture(scope="session")
def file(tmp_path_factory, classifiers, digits):
    """The trained MLP as a file of an open batch, beside its test images."""
    path = tmp_path_factory.mktemp("file") / "mlp.onnx"
    axes = {"image": {0: "batch"}, "logits": {0: "batch"}}
    names = {"input_names": ["image"], "output_names": ["logits"], "dynamic_axes": axes}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(classifiers["mlp"].eval(), (torch.zeros(1, 1, 8, 8),), str(path), dynamo=False, **names)
    np.savez(path.with_name("samples.npz"), x=digits[2], y=digits[3])
    np.savez(path.with_name("x.npz"), image=digits[2])
    return path


def test_the_digits_are_those_that_were_encoded(digits):
    x, y, test_x, test_y = digits
    assert x.shape == (1437, 1, 8, 8)
    assert set(np.unique(x * 16)) == set(range(17))
    assert len(test_x) == len(test_y) == 360
    assert set(y) == set(range(10))


@pytest.mark.representative("mlp")
@pytest.mark.parametrize("kind", ["mlp", "residual"])
def test_a_trained_classifier_loses_little_accuracy(kind, classifiers, digits):
    module = classifiers[kind]
    training = module.training
    found = snnc.ann2snn(module, {"x": digits[2]}, labels=digits[3], steps=64)
    assert module.training == training
    report = found.report
    with torch.no_grad():
        wanted = module.eval()(torch.as_tensor(digits[2][1::2])).numpy()
    module.train(training)
    assert report.accuracy == pytest.approx((wanted.argmax(1) == digits[3][1::2]).mean())
    assert report.accuracy > 0.93
    assert abs(report.loss) <= 0.012
    assert report.points[-1].agreement > 0.97
    errors = [p.error for p in report.points]
    assert errors == sorted(errors, reverse=True)
    with snnc.compile(found.graph) as session:
        logits = session.run(digits[2][1::2])["output"]
    assert (logits.argmax(1) == digits[3][1::2]).mean() == pytest.approx(report.points[-1].accuracy, abs=0.006)
    error = np.linalg.norm(logits - wanted, axis=1) / np.linalg.norm(wanted, axis=1)
    assert error.mean() == pytest.approx(report.points[-1].error, rel=0.02)


def test_onnx_runtime_sees_the_same_spikes(tmp_path, classifiers, digits):
    graph = snnc.ann2snn(classifiers["residual"], digits[2][:100], steps=20).graph
    names = [name for name, p in graph.of_type(Population) if p.model.name != "I"]
    assert len(names) == 4
    for name in names:
        graph.add(f"spikes.{name}", Output("all", FileLayout(0, 1)))
        graph.connect(name, f"spikes.{name}")
    snnc.write_onnx(graph, tmp_path / "snn.onnx")
    x = digits[2][:16]
    runtime = onnxruntime.InferenceSession(str(tmp_path / "snn.onnx"), providers=["CPUExecutionProvider"])
    theirs = dict(zip([o.name for o in runtime.get_outputs()], runtime.run(None, {runtime.get_inputs()[0].name: x}), strict=True))
    with snnc.compile(graph) as session:
        ours = session.run(x)
    for name in names:
        assert 0 < ours[f"spikes.{name}"].mean() < 1
        np.testing.assert_array_equal(theirs[f"spikes.{name}"], ours[f"spikes.{name}"])
    np.testing.assert_allclose(theirs["output"], ours["output"], atol=1e-5)


@pytest.mark.representative("mlp-512")
@pytest.mark.parametrize(("kind", "samples"), [("mlp", 512), ("residual", 320)])
def test_training_goes_on_after_the_conversion(kind, samples, classifiers, digits):
    """A single step costs accuracy, and backpropagation through time wins much of it back."""
    x, y = digits[0][:samples], digits[1][:samples]
    graph = snnc.ann2snn(classifiers[kind], x, steps=1).graph
    with snnc.compile(graph, loss="ce_mean_membrane", optimizer="adam:0.001", batch=32) as session:
        before = (session.run(digits[2])["output"].argmax(1) == digits[3]).mean()
        history = session.fit(x, y, epochs=3)
        after = (session.run(digits[2])["output"].argmax(1) == digits[3]).mean()
    assert history.losses[-1] < 0.85 * history.losses[0]
    assert after > before + 0.1


def test_the_answer_to_a_relu_network_points_at_the_conversion(root):
    for name in ("ann_mlp_relu_ts", "ann_mlp_softmax_ts", "ann_cnn_bn_max_dyn", "ann_mlp_relu6_clip_ts", "ann_resblock_dyn"):
        with pytest.raises(NoTimeError, match=r"no spiking neuron.* is a ReLU network.*--ann2snn --calibration"):
            snnc.load(root / "tests" / "corpus" / f"{name}.onnx")
    with pytest.raises(OnnxError, match="Softmax") as caught:
        snnc.load(root / "tests" / "corpus" / "bad_softmax_middle_ts.onnx")
    assert "ann2snn" not in str(caught.value)


def test_a_converted_file_is_compiled_trained_and_run(file, tmp_path, capsys, digits):
    chosen = ["--ann2snn", "--calibration", file.with_name("samples.npz"), "--steps", 8]
    assert call("compile", file, *chosen, "--target", "reference", "--loss", "ce_mean_membrane", "-o", tmp_path / "p") == 0
    said = capsys.readouterr().err
    assert "note: Measured accuracy of 'logits'" in said
    assert "note: Measured at 8 steps: accuracy" in said
    assert "360 samples, 180 (samples 0, 2, 4, …) were used to balance" in said
    assert call("train", tmp_path / "p", "--data", file.with_name("samples.npz"), "--epochs", 1) == 0
    assert call("run", tmp_path / "p", "--inputs", file.with_name("x.npz"), "--outputs", tmp_path / "y.npz") == 0
    with np.load(tmp_path / "y.npz") as z:
        assert (z["logits"].argmax(1) == digits[3]).mean() > 0.9
    assert call("run", file, *chosen, "--inputs", file.with_name("x.npz"), "--outputs", tmp_path / "y.npz") == 0
    with np.load(tmp_path / "y.npz") as z:
        assert (z["logits"].argmax(1) == digits[3]).mean() > 0.85


def test_a_converted_file_is_described_and_written(file, tmp_path, capsys):
    chosen = ["--ann2snn", "--calibration", file.with_name("samples.npz"), "--percentile", 99]
    assert call("check", file, *chosen, "--steps", 12, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["steps"] == 12
    assert [layer["neuron"] for layer in found["layers"]] == ["IF", "IF"]
    assert any("the 99th percentile" in text for text in found["assumptions"])
    assert call("convert", file, tmp_path / "snn.onnx", *chosen, "--steps", 12) == 0
    assert "wrote" in capsys.readouterr().out
    found = snnc.load(tmp_path / "snn.onnx")
    assert [p.model.name for _, p in found.of_type(Population)] == ["IF", "IF"]
    assert call("verify", tmp_path / "snn.onnx") == 0


@pytest.mark.representative("cpu")
@pytest.mark.parametrize("target", ["cpu", "gc200"])
def test_a_target_computes_the_same(file, tmp_path, capsys, target):
    samples = file.with_name("samples.npz")
    chosen = ["--ann2snn", "--calibration", samples, "--steps", 6, "--batch", 4]
    assert call("compile", file, *chosen, "--target", target, "-o", tmp_path / "p", "--run", "--json") == 0
    assert json.loads(capsys.readouterr().out)["trial"]["largest_difference"] < 1e-5
    for data in (None, file.with_name("x.npz")):
        assert run_once(tmp_path / "p", data).largest_difference < 1e-5


def test_spikes_on_data_are_counted_over_all_steps(file, capsys):
    chosen = ["--ann2snn", "--calibration", file.with_name("samples.npz"), "--steps", 12]
    for data in ("x.npz", "samples.npz"):
        assert call("check", file, *chosen, "--data", file.with_name(data), "--json") == 0
        measured = json.loads(capsys.readouterr().out)["synops"]["measured"]
        assert measured["steps"] == 12
        assert measured["samples"] == (360 if data == "x.npz" else 256)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--ann2snn"], "E253"),
        (["--calibration", "samples.npz"], "E528"),
        (["--percentile", 99], "E528"),
        (["--steps", 5], "E528"),
        (["--ann2snn", "--calibration", "nothing.npz"], "E521"),
        (["--ann2snn", "--calibration", "x.npz", "--percentile", 200], "E258"),
        (["--ann2snn", "--calibration", "x.npz", "--steps", 0], "E258"),
    ],
)
def test_options_that_do_not_fit_are_refused(file, monkeypatch, capsys, options, code):
    monkeypatch.chdir(file.parent)
    assert call("check", file, *options) == 2
    assert f"SNNC-{code}" in capsys.readouterr().err


def test_a_compiled_project_is_not_converted(tmp_path, capsys):
    net = snnc.Sequential(4, snnc.Dense(3), snnc.LIF())
    snnc.compile(net, output=tmp_path / "p").close()
    np.savez(tmp_path / "x.npz", x=np.ones((4, 4)))
    assert call("check", tmp_path / "p", "--ann2snn", "--calibration", tmp_path / "x.npz") == 2
    assert AlreadySpikingError.code in capsys.readouterr().err


def test_sample_data_come_as_an_array_a_mapping_or_a_file(file, digits):
    found = [snnc.ann2snn(file, c, steps=4) for c in (digits[2], {"image": digits[2]}, file.with_name("samples.npz"))]
    assert found[0].report == found[1].report
    assert found[2].report.layers == found[0].report.layers
    assert found[2].report.accuracy is not None
    assert found[0].report.accuracy is None
    assert found[0].report.loss is None


class Both(torch.nn.Module):
    def forward(self, left, right):
        return torch.relu(left - 2 * right)


def test_a_module_of_several_arguments_takes_them_by_name():
    rng = np.random.default_rng(0)
    left, right = (np.repeat(rng.random((20, 3)), 2, axis=0) for _ in range(2))
    found = snnc.ann2snn(Both(), {"right": right, "left": left}, steps=100, percentile=100)
    with snnc.compile(found.graph) as session:
        ours = session.run({"left": left, "right": right})["output"]
    np.testing.assert_allclose(ours, np.maximum(left - 2 * right, 0), atol=0.5 / 100 + 1e-6)
    with pytest.raises(TorchModuleError, match="needs left, but the sample data contain right"):
        snnc.ann2snn(Both(), {"right": right})
    with pytest.raises(TorchModuleError, match=r"neither a torch\.nn\.Module nor the path"):
        snnc.ann2snn([1], {"x": right})


def test_the_how_to_runs(root):
    (code,) = re.findall(r"```python\n(.*?)```", (root / "docs" / "howto" / "convert-a-relu-network.md").read_text(), re.S)
    scope = {}
    exec(code, scope)
    assert scope["conversion"].report.accuracy == 1
    assert scope["logits"].shape == (200, 4)


def test_sample_data_are_needed(file):
    with pytest.raises(CalibrationMissingError):
        snnc.ann2snn(file, {})


def call(*arguments):
    return cli.run_command([str(a) for a in arguments])
