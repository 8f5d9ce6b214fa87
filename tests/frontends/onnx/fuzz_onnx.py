"""Mutate ONNX files of the corpus and compare snnc's results with ONNX Runtime.

usage: python tests/frontends/onnx/fuzz_onnx.py --seconds 300 [--cases N] [--seed 0] [--jobs 2] [--state FILE] [--keep FOLDER]

A case fails on a crash, a hang, more than 2 GiB, an exception without a code, a file opened outside the model's folder (see
``fuzzing``), or outputs that differ from those of ONNX Runtime where both accept the file.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[2] / "common"))

import fuzzing
from fuzzing import CORPUS

SUFFIX = ".onnx"


def sources():
    """Names of the good ONNX cases of the corpus that are small."""
    cases = json.loads((CORPUS / "manifest.json").read_text())["cases"]
    names = [c["name"] for c in cases if c["expect"] == "import" and (CORPUS / f"{c['name']}.onnx").exists()]
    return [n for n in names if (CORPUS / f"{n}.onnx").stat().st_size < 400_000]


def prepare(model, outside):
    """Put the data that models of the corpus name beside the case, and links that lead outside."""
    import onnxruntime  # noqa: F401 - maps more memory than the limit lets it later

    for extra in CORPUS.glob("*"):
        if extra.suffix not in (".onnx", ".npz", ".nir", ".json") and extra.is_file():
            shutil.copy(extra, model / extra.name)
    (model / "link.bin").symlink_to(outside / "secret.bin")
    (model / "folder").symlink_to(outside)


def make(path, names, rng, outside):
    """Write a mutated file; return what was done."""
    name = names[int(rng.integers(len(names)))]
    data, kind = mutate((CORPUS / f"{name}.onnx").read_bytes(), rng, outside)
    path.write_bytes(data)
    return f"{name} {kind}"


def mutate(data, rng, outside="/"):
    """Change bytes, or one thing of the model; return the new bytes and what was done."""
    import onnx

    if rng.random() < 0.3:
        broken = bytearray(data)
        for at in rng.integers(0, len(data), int(rng.integers(1, 4))):
            broken[at] = int(rng.integers(256))
        return bytes(broken), "bytes"
    model = onnx.load_from_string(data)
    if rng.random() < 0.1:
        store_outside(model, rng, outside)
        return model.SerializeToString(), "store_outside"
    kind = str(rng.choice(list(CHANGES)))
    CHANGES[kind](model, rng)
    return model.SerializeToString(), kind


def _graphs(graph):
    yield graph
    for node in graph.node:
        for a in node.attribute:
            if a.HasField("g"):
                yield from _graphs(a.g)


def _pick(rng, items):
    items = list(items)
    return items[int(rng.integers(len(items)))] if items else None


def _nodes(model):
    return [n for g in _graphs(model.graph) for n in g.node]


def change_input(model, rng):
    """Let a node read another value."""
    nodes = _nodes(model)
    node, other = _pick(rng, [n for n in nodes if n.input]), _pick(rng, [n for n in nodes if n.output])
    if node is not None:
        node.input[int(rng.integers(len(node.input)))] = _pick(rng, other.output)


def change_order(model, rng):
    """Swap two inputs of a node."""
    node = _pick(rng, [n for n in _nodes(model) if len(n.input) > 1])
    if node is not None:
        node.input[0], node.input[1] = node.input[1], node.input[0]


def change_operator(model, rng):
    """Put another operator of as many inputs."""
    groups = [["Add", "Sub", "Mul", "Div", "Max", "Min"], ["Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"]]
    groups += [["ReduceSum", "ReduceMean", "ReduceMax"], ["MaxPool", "AveragePool"], ["Neg", "Abs", "Identity", "Relu"]]
    node = _pick(rng, [n for n in _nodes(model) if any(n.op_type in g for g in groups)])
    if node is not None:
        node.op_type = _pick(rng, next(g for g in groups if node.op_type in g))


def change_attribute(model, rng):
    """Change one number of an attribute."""
    found = [a for n in _nodes(model) for a in n.attribute if a.HasField("i") or a.HasField("f") or a.ints]
    a = _pick(rng, found)
    if a is None:
        return
    if a.ints:
        a.ints[int(rng.integers(len(a.ints)))] = int(rng.integers(-2, 5))
    elif a.HasField("f"):
        a.f = float(rng.normal(0, 1))
    else:
        a.i = int(rng.integers(-2, 5))


def change_constant(model, rng):
    """Change one number of a weight, a parameter, an index or a shape."""
    from onnx import numpy_helper

    tensors = [t for g in _graphs(model.graph) for t in g.initializer]
    tensors += [a.t for n in _nodes(model) for a in n.attribute if a.HasField("t")]
    t = _pick(rng, [t for t in tensors if t.data_location == 0])
    if t is None:
        return
    array = numpy_helper.to_array(t).copy()
    if not array.size:
        return
    flat = array.reshape(-1)
    at = int(rng.integers(flat.size))
    flat[at] = flat[at] + int(rng.integers(-3, 4)) if array.dtype.kind in "iu" else (flat[at] * 1.5 + 0.1 if array.dtype.kind == "f" else 1)
    t.CopyFrom(numpy_helper.from_array(array, t.name))


def store_outside(model, rng, outside):
    """Let a tensor name data outside of the model's folder."""
    tensors = [t for g in _graphs(model.graph) for t in g.initializer]
    tensors += [a.t for n in _nodes(model) for a in n.attribute if a.HasField("t")]
    t = _pick(rng, tensors)
    if t is None:
        return
    ways = ["../outside/secret.bin", f"{outside}/secret.bin", "link.bin", "folder/secret.bin", "./folder/../../outside/secret.bin"]
    ways += ["a/../../outside/secret.bin", f"file://{outside}/secret.bin", "..\\outside\\secret.bin", "/proc/self/environ", "/etc/passwd"]
    kept = t.SerializeToString()
    t.ClearField("raw_data")
    for field in ("float_data", "int64_data", "int32_data", "double_data"):
        t.ClearField(field)
    t.data_location = 1
    del t.external_data[:]
    t.external_data.add(key="location", value=_pick(rng, ways))
    if rng.random() < 0.5:
        t.external_data.add(key="offset", value=_pick(rng, ["0", "4", "-4", "99999999999", "x"]))
        t.external_data.add(key="length", value=_pick(rng, ["0", str(len(kept)), "64", "-1", "262144"]))


def change_dimension(model, rng):
    """Change a declared size of an input."""
    shape = _pick(rng, model.graph.input).type.tensor_type.shape
    if shape.dim:
        _pick(rng, shape.dim).dim_value = int(rng.integers(0, 9))


def drop_node(model, rng):
    """Leave a node out and let its readers read what it read."""
    node = _pick(rng, [n for n in model.graph.node if n.input and n.output])
    if node is None:
        return
    old, new = node.output[0], node.input[0]
    model.graph.node.remove(node)
    for n in _nodes(model):
        for k, name in enumerate(n.input):
            if name == old:
                n.input[k] = new
    for o in model.graph.output:
        if o.name == old:
            model.graph.node.add(op_type="Identity", input=[new], output=[old])


def move_axes(model, rng):
    """Transpose an output, or give it an axis of size 1."""
    o = _pick(rng, model.graph.output)
    for n in model.graph.node:
        for k, name in enumerate(n.output):
            if name == o.name:
                n.output[k] = "moved"
    rank = len(o.type.tensor_type.shape.dim)
    if rng.random() < 0.5 and rank > 1:
        node = model.graph.node.add(op_type="Transpose", input=["moved"], output=[o.name])
        a = node.attribute.add(name="perm", type=7)
        a.ints.extend(int(k) for k in rng.permutation(rank))
    else:
        axis = model.graph.initializer.add(name="moved_axis", data_type=7, dims=[1])
        axis.int64_data.append(int(rng.integers(0, rank + 1)))
        model.graph.node.add(op_type="Unsqueeze", input=["moved", "moved_axis"], output=[o.name])
    o.type.tensor_type.ClearField("shape")


CHANGES = {
    f.__name__: f
    for f in (
        change_input,
        change_order,
        change_operator,
        change_attribute,
        change_constant,
        change_dimension,
        drop_node,
        move_axes,
    )
}


def compare(path, seed, guard):
    """Load a file with snnc and with ONNX Runtime, run both; return what holds, or raise."""
    from simulate import simulate

    from snnc.compiler.errors import SnncError
    from snnc.compiler.ir.graph import Input
    from snnc.frontends.onnx.load import load_onnx

    try:
        with guard():
            graph = load_onnx(path)
    except SnncError as error:
        if error.code == "SNNC-E224":
            raise
        return f"refused {error.code}"
    if not any(graph.of_type(Input)):
        return "imported, without an input that matters"
    try:
        outputs, feeds, states = reference(path, graph, seed)
    except Exception:
        return "imported, refused by ONNX Runtime"
    with np.errstate(all="ignore"):
        found = simulate(graph, feeds, states)
    for name, value in outputs.items():
        if found[name].shape != value.shape:
            raise AssertionError(f"{name}: shape {found[name].shape} for {value.shape}")
        close(name, found[name], value)
    return "imported, equal"


def close(name, found, wanted):
    """Raise where two outputs differ by more than rounding."""
    finite = np.isfinite(wanted) & np.isfinite(found) & (np.abs(wanted) < 1e30)
    if not finite.all():
        return
    gap = np.abs(found - wanted)
    if gap.max(initial=0) > 1e-4 * max(1.0, np.abs(wanted).max(initial=0)):
        raise AssertionError(f"{name}: {gap.max():.3g} of {np.abs(wanted).max():.3g}, {int((gap > 1e-4).sum())} of {gap.size} values")


def reference(path, graph, seed):
    """Run ONNX Runtime on random inputs: the outputs, the inputs and the initial states."""
    import onnxruntime as ort

    from snnc.compiler.ir.graph import Input

    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL  # it drops axes of size 1 now and then
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rng = np.random.default_rng(seed)
    sizes: dict = {}
    shapes = {i.name: [d if isinstance(d, int) else sizes.setdefault(d, 5) for d in i.shape] for i in session.get_inputs()}
    feeds = {n: rng.normal(0, 1, s).astype(np.float32) for n, s in shapes.items()}
    names = [o.name for o in session.get_outputs()]
    known = {n for n, _ in graph.of_type(Input)}
    if graph.steps is None and not any(n in known and len(graph.operation(n).shape) + 2 == len(s) for n, s in shapes.items()):
        return single(session, names, feeds, graph, known, rng)
    wanted = dict(zip(names, session.run(None, feeds), strict=True))
    return wanted, {n: x for n, x in feeds.items() if n in known}, {n: x for n, x in feeds.items() if n in graph.state_inputs}


def single(session, names, feeds, graph, known, rng):
    """Run a single step four times with its states fed back, as the importer says that they pair."""
    from snnc.compiler.ir.arrays.array_parts import split_into_parts

    text = next(a for a in graph.assumptions if "states continue as" in a).split(" as ")[-1].rstrip(".")
    pairs = dict(p.split(" -> ") for p in text.split(", "))
    buffers = [n for n in pairs if any(a.startswith(f"The buffer '{n}' ") for a in graph.assumptions)]
    states = {n: np.zeros_like(feeds[n]) if n in buffers else feeds[n] for n in pairs}
    data = {n: rng.normal(0, 1, (4, *x.shape)).astype(np.float32) for n, x in feeds.items() if n not in pairs}
    given, rows = dict(states), []
    for t in range(4):
        found = dict(zip(names, session.run(None, {**given, **{n: x[t] for n, x in data.items()}}), strict=True))
        given = {n: found[o] for n, o in pairs.items()}
        rows.append(found)
    return (
        {n: np.stack([r[n] for r in rows]) for n in names},
        {n: x for n, x in data.items() if n in known},
        split_into_parts(states, graph.state_inputs),
    )


def fuzz(folder, seed, **options):
    """Run cases until time or number is up; return the tally and the failures."""
    count = fuzzing.fuzz("fuzz_onnx", folder, seed, **options)
    return count.tally, count.failures


if __name__ == "__main__":
    sys.exit(fuzzing.main("fuzz_onnx", __doc__.splitlines()[0]))
