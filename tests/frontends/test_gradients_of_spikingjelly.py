"""Every neuron of SpikingJelly that runs by itself, with every option that touches its gradient, beside its own autograd."""

import inspect
import itertools
import zlib

import numpy as np
import pytest
from autograd_oracle import assert_same_gradients
from frameworks import framework, torch

import snnc
from snnc.compiler.errors import SnncError

neuron, surrogate, functional, layer = (
    framework(f"spikingjelly.activation_based.{part}") for part in ("neuron", "surrogate", "functional", "layer")
)

pytestmark = pytest.mark.filterwarnings("ignore")

INPUTS, NEURONS = 3, 5
WIDE = 25
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
        if not (isinstance(kind, type) and issubclass(kind, torch.nn.Module)) or name.endswith("BaseNode") or "Noisy" in name:
            continue
        known = inspect.signature(kind.__init__).parameters
        keys = [key for key in OPTIONS if key in known]
        for number, chosen in enumerate(itertools.product(*(OPTIONS[key] for key in keys))):
            case = (name, dict(zip(keys, chosen, strict=True)))
            marks = [] if zlib.crc32(repr(case).encode()) % WIDE == 0 else [pytest.mark.wide]
            found.append(pytest.param(*case, marks=marks, id=f"{name}-{number}"))
    return found


def run(module, x):
    functional.reset_net(module)
    single = any(getattr(part, "step_mode", "m") == "s" for part in module.modules())
    return torch.stack([module(step) for step in x]) if single else module(x)


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
            net[0].weight.mul_(3)
        run(net, torch.from_numpy(x)).sum().backward()
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError) as error:
        pytest.skip(f"SpikingJelly does not run it so: {error}")
    try:
        graph = snnc.from_torch(net, torch.zeros(6, 1, INPUTS))
    except SnncError as error:
        if name in REFUSED:
            return
        raise error from None
    assert_same_gradients(net, graph, run, x, "atan")
