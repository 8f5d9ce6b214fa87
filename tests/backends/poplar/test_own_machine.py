"""A custom machine runs on the emulator, over several chips, with the results of the reference."""

import re
from pathlib import Path

import numpy as np

import snnc

PAGE = Path(__file__).parents[3] / "docs" / "howto" / "own-target.md"


def test_the_invented_chip_of_the_how_to_trains_like_the_reference(tmp_path):
    text = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[1]
    few = text.replace("exchange_bytes_per_cycle = 8.0", "exchange_bytes_per_cycle = 2.5").replace(
        "tiles_per_chip = 256", "tiles_per_chip = 6"
    )
    (tmp_path / "quill.toml").write_text(few)
    net = snnc.Sequential(30, snnc.Dense(60), snnc.LIF(), snnc.Dense(40), snnc.LIF(), snnc.Dense(5), snnc.LI())
    random = np.random.default_rng(0)
    x, y = (random.random((6, 12, 30)) < 0.3).astype(np.float32), random.integers(0, 5, 6)
    losses, plans = [], []
    for target in (str(tmp_path / "quill.toml"), "reference"):
        with snnc.compile(net, target=target, steps=12, batch=6, loss="ce_mean_membrane", seed=1) as session:
            losses.append(session.fit(x, y, epochs=3).losses)
            plans.append(session.plan)
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    assert plans[0].target.workers == 4
    assert plans[0].chips_used > 1
