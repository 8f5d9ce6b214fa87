"""Updates with composed losses, in snnc and in snnTorch with autograd, from the same weights on the same batches."""

import numpy as np
import pytest
from wide import examples

import snnc
from snnc.compiler.neurons.surrogates.library import atan

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")
snn = pytest.importorskip("snntorch", reason="snntorch is not installed: nothing to compare with")
pytest.importorskip("snntorch.functional")

STEPS, BATCH, INPUTS, HIDDEN, OUTPUTS, UPDATES = 10, 12, 16, 20, 12, examples(8, 20)


class Theirs(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.fc1, self.fc2 = torch.nn.Linear(INPUTS, HIDDEN), torch.nn.Linear(HIDDEN, OUTPUTS)
        self.lif1, self.lif2 = (snn.Leaky(beta=beta, spike_grad=snn.surrogate.atan(alpha=2.0)) for beta in (0.9, 0.8))
        with torch.no_grad():
            self.fc1.weight *= 3
            self.fc2.weight *= 3

    def forward(self, x):
        mem1, mem2 = self.lif1.init_leaky(), self.lif2.init_leaky()
        found = []
        for step in x:
            s1, mem1 = self.lif1(self.fc1(step), mem1)
            s2, mem2 = self.lif2(self.fc2(s1), mem2)
            found.append((s1, mem1, s2, mem2))
        return [torch.stack(each) for each in zip(*found, strict=True)]


def population_code(s1, m1, s2, m2, labels):
    loss = snn.functional.ce_count_loss(population_code=True, num_classes=4)(s2, labels)
    return loss + 0.5 * s1.mean() + 2 * ((s1.mean(0) - 0.1).clamp(0) ** 2).mean() + 0.1 * (m1 * m1).mean()


LOSSES = {
    "ce_count:classes=4 + 0.5*l1_rate:of=lif + 2*upper_rate:of=lif,bound=0.1 + 0.1*l2_membrane:of=lif": population_code,
    "mse_count:classes=4,on=0.8,off=0.1": lambda s1, m1, s2, m2, y: snn.functional.mse_count_loss(0.8, 0.1, True, 4)(s2, y),
    "ce_first_spike": lambda s1, m1, s2, m2, y: snn.functional.ce_temporal_loss()(s2, y),
    "ce_last_membrane": lambda s1, m1, s2, m2, y: torch.nn.functional.cross_entropy(m2[-1], y),
    "mse_membrane:on=1.2,off=0.1": lambda s1, m1, s2, m2, y: snn.functional.mse_membrane_loss(on_target=1.2, off_target=0.1)(m2, y),
}


@pytest.mark.representative("*l1_rate*", "mse_count*", "mse_membrane*")
@pytest.mark.parametrize("text", LOSSES)
def test_updates_are_those_of_snntorch(text):
    theirs = Theirs()
    net = snnc.Sequential(INPUTS, snnc.Dense(HIDDEN), snnc.LIF(beta=0.9), snnc.Dense(OUTPUTS), snnc.LIF(beta=0.8))
    session = snnc.compile(net, "reference", loss=text, optimizer="sgd:0.05", surrogate=atan(2.0))
    names = [name for name in session.state_dict() if name.endswith("weight")]
    ours = dict(zip(names, (theirs.fc1, theirs.fc2), strict=True))
    values = {name: layer.weight.detach().numpy() for name, layer in ours.items()}
    values |= {name.replace("weight", "bias"): layer.bias.detach().numpy() for name, layer in ours.items()}
    session.load_state_dict(values, strict=False)
    optimizer = torch.optim.SGD(theirs.parameters(), lr=0.05)
    random = np.random.default_rng(0)
    for _ in range(UPDATES):
        x = (random.random((BATCH, STEPS, INPUTS)) < 0.4).astype(np.float32)
        labels = random.integers(0, 4, BATCH)
        optimizer.zero_grad()
        loss = LOSSES[text](*theirs(torch.tensor(x.transpose(1, 0, 2))), torch.tensor(labels)).squeeze()
        loss.backward()
        optimizer.step()
        found = session.fit(x, labels, batch=BATCH, shuffle=False).losses[0]
        assert found == pytest.approx(loss.item(), abs=1e-4)
    for name, layer in ours.items():
        np.testing.assert_allclose(session.state_dict()[name], layer.weight.detach().numpy(), atol=1e-4)
    session.close()
