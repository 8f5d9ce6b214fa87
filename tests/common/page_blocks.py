"""The blocks of code on the pages, and what a reader has before the first of them: a network, data, files.

A block of Python or shell runs in the tests, unless its title says why not: ```` ```sh title="not run in the tests: needs a GPU" ````.
"""

import gzip
import re
import shlex
import shutil
import struct
from dataclasses import dataclass

import h5py
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import snnc
from snnc.cli.main import run_command

FENCE = re.compile(r"^( *)```(\w*)([^\n]*)\n(.*?)^\1```[ ]*$", re.S | re.M)
NOT_RUN = "not run in the tests: "
STEPS, INPUTS, CLASSES = 4, 20, 10
ON_TILES = "on-tiles"
"""The folder of the model, compiled for a machine."""


@dataclass(frozen=True)
class Block:
    """A block of a page: its language, what its title says, and its lines without their indent."""

    language: str
    title: str
    code: str

    @property
    def runs(self):
        return not self.title.startswith(NOT_RUN)


def blocks(page):
    """Return all blocks of a page, in its order."""
    found = []
    for indent, language, rest, code in FENCE.findall(page.read_text()):
        title = re.fullmatch(r'(?: title="([^"]+)")?', rest)
        assert title, f"{page}: {language}{rest}"
        found.append(Block(language, title[1] or "", re.sub(rf"^{indent}", "", code, flags=re.M)))
    return found


def commands(block):
    """Return the commands of a block of shell, each as its words; a line that ends with a backslash goes on in the next."""
    lines = block.code.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def network(inputs=INPUTS, outputs=CLASSES):
    """Return a network of 12 hidden neurons."""
    net = snnc.Network("net")
    spikes = net.input(inputs)
    hidden = net.population(12, snnc.LIF(beta=0.9), name="hidden")
    readout = net.population(outputs, snnc.LI(beta=0.9), name="readout")
    net.connect(spikes, hidden, snnc.Dense(), name="fc1")
    net.connect(hidden, readout, snnc.Dense())
    return net


def samples(inputs=INPUTS, steps=STEPS, number=48):
    """Return spikes [samples, steps, inputs] and classes [samples]."""
    random = np.random.default_rng(0)
    return (random.random((number, steps, inputs)) < 0.2).astype(np.uint8), random.integers(0, CLASSES, number)


def write_files(folder):
    """Write the files that pages name: a model and its data; a ReLU network; recorded events."""
    net, (x, y) = network(), samples()
    graph = net.graph()
    graph.steps = STEPS
    snnc.write_onnx(graph, folder / "model.onnx")
    snnc.compile(net, steps=STEPS, loss="ce_mean_membrane", optimizer="adam", output=folder / "build").close()
    run_command(["compile", str(folder / "model.onnx"), "--target", "gc200", "--batch", "2", "-o", str(folder / ON_TILES)])
    shutil.copytree(folder / ON_TILES, folder / "other")
    (folder / "recipe.toml").write_text("epochs = 2\nbatch = 16\nlearning_rate = 0.01\n")
    for name in ("data.npz", "digits.npz", "train.npz"):
        np.savez(folder / name, x=x, y=y)
    np.savez(folder / "x.npz", input=x[:32].transpose(1, 0, 2))
    _write_relu(folder)
    _write_events(folder)


def _write_relu(folder):
    random = np.random.default_rng(1)
    shapes = {"w1": (40, 10), "b1": (40,), "w2": (4, 40), "b2": (4,)}
    weights = [numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) / 3, name) for name, shape in shapes.items()]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["a"], transB=1),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["y"], transB=1),
    ]
    ends = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", size])] for name, size in (("x", 10), ("y", 4))]
    model = helper.make_model(helper.make_graph(nodes, "mlp", *ends, weights), opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "mlp.onnx")
    np.savez(folder / "samples.npz", x=random.standard_normal((40, 10)).astype(np.float32), y=np.arange(40) % 4)


def _write_events(folder):
    random = np.random.default_rng(2)
    for name in ("shd_train.h5", "shd_test.h5", "ssc_train.h5"):
        with h5py.File(folder / name, "w") as file:
            for kind, of in (("times", np.float16), ("units", np.uint16)):
                rows = file.create_dataset(f"spikes/{kind}", (20,), h5py.vlen_dtype(of))
                for n in range(20):
                    rows[n] = (np.sort(random.random(30)) * 1.4 if kind == "times" else random.integers(0, 700, 30)).astype(of)
            file["labels"] = (np.arange(20) % CLASSES).astype(np.uint16)
    (folder / "Train" / "3").mkdir(parents=True)
    (folder / "Train" / "3" / "00001.bin").write_bytes(bytes([5, 6, 128, 3, 232]) * 4)
    (folder / "gestures" / "user01").mkdir(parents=True)
    np.save(folder / "gestures" / "user01" / "4.npy", np.array([[1, 2, 1, 10], [3, 4, 0, 12]]))
    images = bytes([0, 0, 8, 3]) + struct.pack(">iii", 2, 28, 28) + bytes(2 * 28 * 28)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(images))
    (folder / "train-labels-idx1-ubyte.gz").write_bytes(gzip.compress(bytes([0, 0, 8, 1]) + struct.pack(">i", 2) + bytes([7, 1])))
