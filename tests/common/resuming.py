"""Requirements on every trained session that is saved and continued by another from the file."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from snnc.backends.runtime.engine import OptimizerValues
from snnc.backends.session import BackendSession


def assert_goes_on(whole: BackendSession, first: BackendSession, second: BackendSession, data, folder: Path, **fit) -> None:
    """Two epochs of `whole` equal one of `first` and one of `second`, bit for bit, including moments and the number of updates."""
    x, y = data
    losses = whole.fit(x, y, epochs=2, seed=5, **fit).batch_losses
    first.fit(x, y, epochs=1, seed=5, **fit)
    first.save(folder / "half.safetensors", optimizer=True)
    second.load(folder / "half.safetensors")
    assert second.fit(x, y, epochs=1, first_epoch=1, seed=5, **fit).batch_losses == losses[1:]
    weights = second.state_dict()
    for name, value in whole.state_dict().items():
        np.testing.assert_array_equal(value, weights[name], err_msg=name)
    kept, found = whole.engine.get_optimizer(), second.engine.get_optimizer()
    assert kept.updates == found.updates == 2 * len(losses[0])
    assert kept.moments.keys() == found.moments.keys()
    for moment, values in kept.moments.items():
        assert values.keys() == found.moments[moment].keys()
        for name, value in values.items():
            assert value.any(), (moment, name)
            np.testing.assert_array_equal(value, found.moments[moment][name], err_msg=f"{moment} {name}")


def assert_same_optimizer(engine, reference) -> None:
    """An engine's optimiser state equals the reference's after equal updates; a state that is set is read back unchanged."""
    found, wanted = engine.get_optimizer(), reference.get_optimizer()
    assert found.updates == wanted.updates > 0
    assert found.moments.keys() == wanted.moments.keys()
    for moment, kept in wanted.moments.items():
        assert found.moments[moment].keys() == kept.keys()
        whole = max(float(np.abs(value).max()) for value in kept.values())
        for name, value in kept.items():
            np.testing.assert_allclose(found.moments[moment][name], value, atol=1e-4 * whole, rtol=1e-4, err_msg=f"{moment} {name}")
    other = OptimizerValues(7, {moment: {name: v + 1 for name, v in kept.items()} for moment, kept in found.moments.items()})
    engine.set_optimizer(other)
    again = engine.get_optimizer()
    assert again.updates == 7
    for moment, kept in other.moments.items():
        for name, value in kept.items():
            np.testing.assert_array_equal(again.moments[moment][name], value, err_msg=f"{moment} {name}")
