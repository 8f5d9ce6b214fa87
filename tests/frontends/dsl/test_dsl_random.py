"""Random networks of the DSL give the same results in the reference, ONNX Runtime and PyTorch, bit by bit where numbers are exact."""

import math
from dataclasses import replace

import numpy as np
import onnxruntime
import torch
from graph_oracle import TorchGraph
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wide import examples

import snnc
from snnc.frontends.dsl.connections import Connection


class Quarters:
    """Multiples of 1/4, so that float32 sums of few steps are exact whatever their order."""

    def draw(self, shape, fans, rng):
        return rng.integers(-4, 7, shape).astype(np.float32) / 4


def weights(draw):
    return {"init": Quarters(), "bias": draw(st.booleans())}


def delays(draw):
    return draw(st.sampled_from([None, None, snnc.UniformDelay(0, 2), snnc.UniformDelay(1, 3, seed=4)]))


def connection(draw, shape, size=None) -> Connection:
    """One that fits a source of `shape`; with `size`, to a vector of so many."""
    kinds = ["dense", "sparse"] if size is not None or len(shape) == 1 else ["conv", "conv", "max", "average", "sum", "flatten", "dense"]
    outputs = size or draw(st.integers(1, 5))
    match draw(st.sampled_from(kinds)):
        case "dense":
            return snnc.Dense(outputs, delays=delays(draw), **weights(draw))
        case "sparse":
            amount = draw(st.sampled_from([{"density": 0.9}, {"fan_in": 1}, {"fan_in": math.prod(shape)}]))
            amount = amount if outputs * math.prod(shape) > 8 or "fan_in" in amount else {"fan_in": 1}
            return replace(snnc.Sparse(**amount, outputs=outputs, **weights(draw)), delays=delays(draw))
        case "flatten":
            return snnc.Flatten()
        case kind:
            kernel = tuple(draw(st.integers(1, min(2, n))) for n in shape[1:])
            stride = draw(st.integers(1, 2))
            if kind == "conv":
                padding = draw(st.sampled_from([0, 1, "valid", *(["same"] if stride == 1 else [])]))
                return snnc.Conv(draw(st.integers(1, 3)), kernel, stride, padding, **weights(draw))
            return {"max": snnc.MaxPool, "average": snnc.AvgPool, "sum": snnc.SumPool}[kind](kernel, stride, ceil=draw(st.booleans()))


def part(draw, node):
    """The node, or some of its places."""
    if draw(st.integers(0, 2)):
        return node
    start = draw(st.integers(0, node.shape[0] - 1))
    return node[start : draw(st.integers(start + 1, node.shape[0]))]


@st.composite
def networks(draw):
    net = snnc.Network("random", seed=draw(st.integers(0, 99)))
    vector, image = net.input(4, name="vector"), net.input((2, 4, 3), name="image")
    vectors, images = [vector], [image]
    for number in range(draw(st.integers(1, 4))):
        source = part(draw, draw(st.sampled_from([*vectors, *images])))
        if draw(st.booleans()) and len(vectors) > 1:
            source = net.group(*(part(draw, draw(st.sampled_from(vectors))) for _ in range(2)))
        chain = [connection(draw, source.shape)]
        if draw(st.booleans()):
            chain.append(connection(draw, net.shape_after(source, chain)))
        model = draw(st.sampled_from([snnc.LIF(beta=0.5), snnc.LI(beta=0.5), snnc.IF()]))
        node = net.population(net.shape_after(source, chain), model, name=f"p{number}")
        net.connect(source, node, chain, delay=draw(st.integers(0, 2)))
        (vectors if len(node.shape) == 1 else images).append(node)
        if draw(st.integers(0, 2)) == 0:
            net.output(part(draw, node), name=f"out{number}")
    targets = [node for node in vectors if node is not vector]
    if targets:
        source, target = part(draw, draw(st.sampled_from(vectors))), part(draw, draw(st.sampled_from(targets)))
        if draw(st.booleans()):
            target = net.group(target, draw(st.sampled_from(targets)))
        net.connect(source, target, connection(draw, source.shape, target.shape[0]), delay=draw(st.integers(1, 2)), name="extra")
    net.output(node, name="last")
    for unused in (vector, image):
        if not net.graph().outgoing(unused.name):
            net.output(unused)
    return net


@settings(max_examples=examples(6, 40), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(networks())
def test_any_network_gives_the_same_in_the_reference_in_onnx_runtime_and_in_pytorch(tmp_path_factory, net):
    random, file = np.random.default_rng(0), tmp_path_factory.mktemp("net") / "net.onnx"
    inputs = {"vector": random.random((6, 2, 4)) < 0.5, "image": random.random((6, 2, 2, 4, 3)) < 0.5}
    inputs = {name: x.astype(np.float32) for name, x in inputs.items()}
    with snnc.compile(net) as session:
        found = session.run(inputs)
    snnc.write_onnx(net.graph(), file)
    onnx = onnxruntime.InferenceSession(file)
    names = [o.name for o in onnx.get_outputs()]
    there = {i.name for i in onnx.get_inputs()}
    by_onnx = dict(zip(names, onnx.run(names, {n: x for n, x in inputs.items() if n in there}), strict=True))
    by_torch = TorchGraph(net.graph())({name: torch.tensor(x, dtype=torch.float64) for name, x in inputs.items()})
    assert set(found) == set(by_onnx) == set(by_torch)
    for name, value in found.items():
        np.testing.assert_allclose(value, by_onnx[name], rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(value, by_torch[name].detach().numpy(), rtol=1e-6, atol=1e-6)
