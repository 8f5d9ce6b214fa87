"""Library neurons compared with the installed snnTorch: spikes, states and gradients, step by step."""

import numpy as np
import pytest
import snntorch
import torch
from neuron_oracles import Case, relative_error, run_kernel
from snntorch import surrogate as torch_surrogates

from snnc.compiler.neurons.adjoint import derive_kernel
from snnc.compiler.neurons.interpret import evaluate
from snnc.compiler.neurons.library import LIF, SLSTM, Alpha, CubaLIF, Lapicque
from snnc.compiler.neurons.surrogates.library import atan, fast_sigmoid

RESETS = ("subtract", "zero", "none")
SURROGATES = {"atan": (atan(), torch_surrogates.atan()), "fast_sigmoid": (fast_sigmoid(), torch_surrogates.fast_sigmoid())}


def delayed(delay):
    return {"reset_delay": True} if delay else {"reset_delay": False, "compensated": True, "detach": False}


def pairs(spike_grad=None):
    """Our model, snnTorch's, our ports in the order of snnTorch's outputs."""
    learn = {"learn_threshold": True, "spike_grad": spike_grad}
    for reset in RESETS:
        for delay in (True, False):
            yield (
                f"Leaky {reset} {'delayed' if delay else 'at once'}",
                LIF(0.85, 0.7, reset=reset, clamp=True, **(delayed(delay) if reset != "none" else {})),
                lambda r=reset, d=delay: snntorch.Leaky(0.85, 0.7, reset_mechanism=r, reset_delay=d, learn_beta=True, **learn),
                ("s", "v"),
            )
            yield (
                f"Synaptic {reset} {'delayed' if delay else 'at once'}",
                CubaLIF(0.8, 0.85, 0.7, reset=reset, clamp=True, **(delayed(delay) if reset != "none" else {})),
                lambda r=reset, d=delay: snntorch.Synaptic(
                    0.8, 0.85, 0.7, reset_mechanism=r, reset_delay=d, learn_alpha=True, learn_beta=True, **learn
                ),
                ("s", "syn", "v"),
            )
        yield (
            f"Alpha {reset}",
            Alpha(0.9, 0.8, 0.3, reset=reset, clamp=True),
            lambda r=reset: snntorch.Alpha(0.9, 0.8, 0.3, reset_mechanism=r, learn_beta=True, **learn),
            ("s", "exc", "inh", "v"),
        )
        yield (
            f"Lapicque {reset}",
            Lapicque(R=5, C=0.5, time_step=0.8, threshold=0.7, reset=reset),
            lambda r=reset: snntorch.Lapicque(R=5, C=0.5, time_step=0.8, threshold=0.7, reset_mechanism=r, **learn),
            ("s", "v"),
        )
        yield (
            f"Lapicque {reset} by beta",
            Lapicque(beta=0.6, threshold=0.7, reset=reset),
            lambda r=reset: snntorch.Lapicque(beta=0.6, threshold=0.7, reset_mechanism=r, **learn),
            ("s", "v"),
        )


NAMES = [name for name, *_ in pairs()]


def pair(name, spike_grad=None):
    return next((ours, make(), ports) for found, ours, make, ports in pairs(spike_grad) if found == name)


def run_snntorch(layer, case):
    current = torch.tensor(case.inputs[0], requires_grad=True)
    states = [torch.tensor(s, requires_grad=True) for s in case.initial]
    initial, outputs, loss = states, [], 0
    for t in range(case.steps):
        found = layer(current[t], *states)
        states = list(found[1:])
        outputs.append([o.detach().numpy().copy() for o in found])
        loss = loss + sum((o * torch.tensor(d[t])).sum() for o, d in zip(found, case.d_outputs, strict=True))
    loss = loss + sum((s * torch.tensor(d)).sum() for s, d in zip(states, case.d_final, strict=True))
    loss.backward()
    return np.array(outputs).swapaxes(0, 1), [current, *initial]


@pytest.mark.parametrize("name", NAMES)
def test_spikes_and_states_of_every_step_are_those_of_snntorch(name):
    model, layer, ports = pair(name)
    case = Case(model, ports, steps=40, batch=4, neurons=16, dtype=np.float32, seed=3)
    outputs, _ = run_kernel(derive_kernel(model, atan(), (), ports), case)
    expected, _ = run_snntorch(layer, case)
    assert 0.02 < outputs[0].mean() < 0.98
    np.testing.assert_array_equal(outputs[0], expected[0])
    np.testing.assert_allclose(outputs[1:], expected[1:], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith(("Leaky", "Synaptic"))])
def test_membranes_are_equal_to_the_last_bit(name):
    model, layer, ports = pair(name)
    case = Case(model, ports, steps=40, batch=4, neurons=16, dtype=np.float32, seed=4)
    outputs, _ = run_kernel(derive_kernel(model, atan(), (), ports), case)
    np.testing.assert_array_equal(outputs, run_snntorch(layer, case)[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_gradients_are_those_of_snntorchs_autograd(name, surrogate):
    ours, theirs = SURROGATES[surrogate]
    model, layer, ports = pair(name, theirs)
    learned = [n for n in model.parameters if isinstance(getattr(layer, n, None), torch.nn.Parameter) and n != "R"]
    case = Case(model, ports, steps=12, dtype=np.float32, seed=5)
    _, found = run_kernel(derive_kernel(model, ours, learned, ports), case)
    _, leaves = run_snntorch(layer, case)
    expected = [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]
    expected += [getattr(layer, n).grad.numpy() for n in model.parameters if n in learned]
    assert "threshold" in learned
    assert relative_error(found, expected) <= 1e-4


@pytest.mark.parametrize("reset", RESETS)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_slstm_in_its_recurrent_network_is_that_of_snntorch(reset, surrogate):
    ours, theirs = SURROGATES[surrogate]
    torch.manual_seed(1)
    size, steps, batch = 6, 10, 3
    layer = snntorch.SLSTM(size, size, threshold=0.05, spike_grad=theirs, reset_mechanism=reset, learn_threshold=True)
    w_in, w_rec, b_in, b_rec = (p.detach().numpy() for p in layer.lstm_cell.parameters())
    model = SLSTM(0.05, reset=reset)
    kernel = derive_kernel(model, ours, ("threshold",), ("s", "mem"))
    random = np.random.default_rng(0)
    x = random.normal(size=(steps, batch, size)).astype(np.float32)
    d_spikes, d_mems = random.normal(size=(2, steps, batch, size)).astype(np.float32)

    inputs = torch.tensor(x, requires_grad=True)
    syn = mem = torch.zeros(batch, size)
    loss, expected = 0, []
    for t in range(steps):
        spikes, syn, mem = layer(inputs[t], syn, mem)
        expected.append((spikes.detach().numpy(), mem.detach().numpy().copy()))
        loss = loss + (spikes * torch.tensor(d_spikes[t])).sum() + (mem * torch.tensor(d_mems[t])).sum()
    loss.backward()

    order = [0, 1, 2, 3]  # PyTorch's rows are i, f, g, o, as are our ports
    state = {s: np.zeros((batch, size), np.float32) for s in kernel.states}
    parameters = {"a0": np.float32(0.05)}
    kept = []
    for t in range(steps):
        gates = (x[t] @ w_in.T + b_in + state["s1"] @ w_rec.T + b_rec).reshape(batch, 4, size)
        environment = {**parameters, **{f"{s}_prev": v for s, v in state.items()}, **{f"i{n}": gates[:, n] for n in order}}
        found = evaluate(kernel.forward, environment)
        state = {s: found[s] for s in kernel.states}
        kept.append({**environment, **found})
        np.testing.assert_array_equal(found["o0"], expected[t][0])
        np.testing.assert_allclose(found["o1"], expected[t][1], rtol=1e-5, atol=1e-6)

    zero = np.zeros((batch, size), np.float32)
    d_state, d_mem, d_x, d_threshold = dict.fromkeys(kernel.states, zero), zero, np.zeros_like(x), 0.0
    for t in reversed(range(steps)):
        allowed = {*kernel.saved, *kernel.history, *(f"{s}_prev" for s in kernel.history), "a0"}
        environment = {n: v for n, v in kept[t].items() if n in allowed} | {f"d_{s}": d for s, d in d_state.items()}
        found = evaluate(kernel.backward, environment | {"d_o0": d_spikes[t], "d_o1": d_mems[t] + d_mem})
        d_gates = np.stack([np.broadcast_to(found[f"d_i{n}"], (batch, size)) for n in order], 1).reshape(batch, 4 * size)
        d_x[t] = d_gates @ w_in
        d_mem = d_gates @ w_rec
        d_state = {s: found[f"d_{s}_prev"] for s in kernel.states}
        d_threshold += found["d_a0"].sum()
    assert relative_error([d_x, d_threshold], [inputs.grad.numpy(), layer.threshold.grad.numpy()]) <= 1e-4
