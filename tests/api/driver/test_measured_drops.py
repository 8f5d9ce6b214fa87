"""Activity measured for a machine that drops spikes excludes the dropped spikes."""

import numpy as np
import pytest

import snnc
from snnc.driver.measuring import activity_on_data
from snnc.options.compile_options import options


def test_dropped_spikes_excite_nobody_where_activity_is_measured():
    net = snnc.Network("drops", seed=1)
    source = net.input(30)
    first = net.population(40, snnc.LIF(beta=0.9), name="first")
    second = net.population(20, snnc.LIF(beta=0.9), name="second")
    net.connect(source, first, snnc.Dense(init=snnc.Constant(0.2), bias=False))
    net.connect(first, second, snnc.Dense(init=snnc.Constant(0.1), bias=False))
    readout = net.population(2, snnc.LI(beta=0.9), name="readout")
    net.connect(second, readout, snnc.Dense())
    net.output(second, name="fired")
    net.output(readout, name="read")
    x = (np.random.default_rng(0).random((12, 3, 30)) < 0.3).astype(np.float32)
    rates = {}
    for mode, limits in (("exact", {}), ("drop", {"mode": "drop", "capacity": 5})):
        with snnc.compile(net, steps=12, **limits) as session:
            rates[mode] = session.run(x)["fired"].mean()
        activity = activity_on_data(net.graph(), options("gc200", steps=12, **limits), x)
        (of_second,) = (name for name, each in activity.rates.items() if len(each) == 20)
        assert activity.mean[of_second] == pytest.approx(rates[mode])
        assert max(count.max() for count in activity.counts.values()) > 5  # sources are counted before they drop
    assert 0 < rates["drop"] < 0.8 * rates["exact"]
