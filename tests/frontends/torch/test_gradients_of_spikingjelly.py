"""Every independent neuron of SpikingJelly, with every option that affects its gradient, compared with its own autograd."""

import inspect
import itertools
import zlib

import numpy as np
import pytest
from autograd_oracle import assert_same_gradients
from frameworks import framework, torch
from wide import examples

import snnc
from snnc.compiler.errors import SnncError

neuron, surrogate, functional, layer = (
    framework(f"spikingjelly.activation_based.{part}") for part in ("neuron", "surrogate", "functional", "layer")
)

pytestmark = pytest.mark.filterwarnings("ignore")

INPUTS, NEURONS = 3, 5
STEPS = examples(4, 6)
"""Steps of the exported example."""
WIDE = 50
OPTIONS = {
    "v_reset": (0.0, None, -0.2),
    "detach_reset": (False, True),
    "decay_input": (True, False),
    "v_threshold": (1.0, 0.7),
    "step_mode": ("s", "m"),
}
NEEDED = {
    "SimpleLIFNode": {"tau": 2.0},
    "LIAFNode": {"act": torch.nn.ReLU(), "threshold_related": False},
    "ILIFNode": {"surrogate_function": surrogate.MultiLevelSpikeCount(4)},
    "MPBNLIFNode": {"out_features": NEURONS},
    "PSN": {"T": 9},
    "SlidingPSN": {"k": 2},
    "GatedLIFNode": {"T": 9},
}
REFUSED = {"NonSpikingIFNode", "NonSpikingLIFNode", "ILIFNode", "PSN", "SlidingPSN", "GatedLIFNode", "MPBNLIFNode", "LIAFNode"}
"""What they compute differs from step to step, rounds, or normalises; snnc may refuse them, with a code."""
ALWAYS = [("LIFNode", {"detach_reset": True, "step_mode": mode}) for mode in ("s", "m")]


def cases():
    found = list(ALWAYS)
    for name, kind in vars(neuron).items():
        if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)) or name.endswith("BaseNode") or name in WHOLE:
            continue
        known = inspect.signature(kind.__init__).parameters
        keys = [key for key in OPTIONS if key in known]
        for number, chosen in enumerate(itertools.product(*(OPTIONS[key] for key in keys))):
            case = (name, dict(zip(keys, chosen, strict=True)))
            marks = [] if zlib.crc32(repr(case).encode()) % WIDE == 0 else [pytest.mark.wide]
            found.append(pytest.param(*case, marks=marks, id=f"{name}-{number}"))
    return found


TABLE = {name: [value] * 9 for name, value in (("theta", 0.9), ("h", 0.3), ("d", 0.4))}
WHOLE = {
    "DSRIFNode": ({"T": 9}, "SNNC-E276: Sequential calls DSRIFFunction"),
    "DSRLIFNode": ({"T": 9}, "SNNC-E276: Sequential calls DSRLIFFunction"),
    "FewSpikeNode": ({"table": neuron.FewSpikeTable(**TABLE), "step_mode": "m"}, "SNNC-E216"),
    "OutlierAwareThresholdNode": (
        {
            "table": neuron.FewSpikeTable(**TABLE),
            "outlier_table": neuron.FewSpikeTable(**TABLE),
            "split_threshold": 1.0,
            "step_mode": "m",
        },
        "SNNC-E219",
    ),
    "HGNode": ({"tables": [neuron.FewSpikeTable(**TABLE)] * 2, "gate_thresholds": [0.0], "step_mode": "m"}, "SNNC-E212"),
    "NoisyCUBALIFNode": ({"num_node": 6, "T": 9}, "SNNC-E214"),
    "NoisyILCCUBALIFNode": ({"act_dim": 2, "dec_pop_dim": 3, "T": 9}, "SNNC-E214"),
    "NoisyNonSpikingIFNode": ({"num_node": 6, "T": 9, "decode": "last-me"}, "SNNC-E214"),
    "ILCIFNode": ({"act_dim": 2, "dec_pop_dim": 3}, ""),
    "ILCLIFNode": ({"act_dim": 2, "dec_pop_dim": 3, "v_threshold": 0.6}, ""),
    "ILCCUBALIFNode": ({"act_dim": 2, "dec_pop_dim": 3}, ""),
}
"""Neurons over all steps at once, with what is refused; "" where gradients agree."""
QUIET = {"NoisyCUBALIFNode", "NoisyILCCUBALIFNode"}


def whole(name, options):
    known = inspect.signature(getattr(neuron, name).__init__).parameters
    given = {"surrogate_function": surrogate.ATan()} if "surrogate_function" in known else {}
    torch.manual_seed(0)
    unit = getattr(neuron, name)(**given, **options)
    if getattr(unit, "is_training", False):
        unit.reset_noise(50)
    net = torch.nn.Sequential(layer.Linear(INPUTS, 6, step_mode="m"), unit)
    with torch.no_grad():
        net[0].weight.mul_(3)
    return net


def sequence():
    return np.random.default_rng(0).normal(0.4, 1.2, (9, 2, INPUTS)).astype(np.float32)


@pytest.mark.representative("DSR*", "FewSpikeNode", "Outlier*", "HGNode", "NoisyCUBALIFNode", "NoisyNonSpikingIFNode", "ILCLIFNode")
@pytest.mark.parametrize("name", WHOLE)
def test_a_neuron_over_all_steps_has_the_gradients_of_its_own_autograd_or_is_refused(name):
    options, refusal = WHOLE[name]
    net = whole(name, options)
    if refusal:
        with pytest.raises(SnncError, match=refusal):
            snnc.from_torch(net, torch.zeros(9, 1, INPUTS))
    else:
        assert_same_gradients(net, snnc.from_torch(net, torch.zeros(9, 1, INPUTS)), run, sequence(), "atan")


@pytest.mark.representative("NoisyCUBALIFNode")
@pytest.mark.parametrize("name", sorted(QUIET))
def test_a_noisy_neuron_without_its_noise_has_the_gradients_of_its_own_autograd(name):
    net = whole(name, WHOLE[name][0] | {"is_training": False})
    assert_same_gradients(net, snnc.from_torch(net, torch.zeros(9, 1, INPUTS)), run, sequence(), "atan")


def run(module, x):
    functional.reset_net(module)
    single = any(getattr(part, "step_mode", "m") == "s" for part in module.modules())
    return torch.stack([module(step) for step in x]) if single else module(x)


@pytest.mark.representative(
    "LIFNode-options*", "ParametricLIFNode-13", "QIFNode-3", "KLIFNode-36", "TernaryLIFNode-29", "S*", "OTTTLIFNode-31"
)
@pytest.mark.parametrize(("name", "options"), cases())
def test_a_neuron_has_the_gradients_of_its_own_autograd(name, options):
    kind = getattr(neuron, name)
    known = inspect.signature(kind.__init__).parameters
    given = {"surrogate_function": surrogate.ATan()} if "surrogate_function" in known else {}
    torch.manual_seed(0)
    x = np.random.default_rng(0).normal(0.4, 1.2, (9, 2, INPUTS)).astype(np.float32)
    try:
        unit = kind(**{**given, **NEEDED.get(name, {}), **options})
        net = torch.nn.Sequential(layer.Linear(INPUTS, NEURONS, step_mode=getattr(unit, "step_mode", "m")), unit)
        with torch.no_grad():
            net[0].weight.mul_(8 if name == "MPBNLIFNode" else 3)
        net.train(name != "MPBNLIFNode")  # which normalises by the batch while it trains
        run(net, torch.from_numpy(x)).sum().backward()
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
        pytest.skip(f"SpikingJelly does not run it so: {error}")
    try:
        graph = snnc.from_torch(net, torch.zeros(STEPS, 1, INPUTS))
    except SnncError as error:
        if name in REFUSED:
            return
        raise error from None
    if name == "MPBNLIFNode":
        assert [text for text in graph.assumptions if text.startswith("SNNC-W273") and "1.vbn" in text]
        net[1].vbn.requires_grad_(False)
    assert_same_gradients(net, graph, run, x, "atan")
