"""A plan priced again: the same placement costs the same, and is kept on a machine with other costs."""

from dataclasses import replace

import pytest
from mapping_nets import Wire, chain, program, small

from snnc.compiler.tiles import make_plan
from snnc.compiler.tiles.replan import as_planned

NETS = {
    "chain": chain(60, 40, 30, 7),
    "recurrent": program({"x0": 50, "p0": 40, "p1": 8}, [Wire("x0", "p0"), Wire("p0", "p0", 1), Wire("p0", "p1")]),
}


@pytest.mark.representative("chain-1", "recurrent-30")
@pytest.mark.parametrize("tiles", [1, 3, 30])
@pytest.mark.parametrize("name", NETS)
def test_a_plan_priced_again_costs_the_same_and_stays_where_it_is(name, tiles):
    target, how = small(tiles), {"steps": 8, "batch": 6, "activity": {"x0": 0.1}, "gradients": "dense"}
    plan = make_plan(NETS[name], target, **how)
    again = make_plan(NETS[name], target, placer=as_planned(plan), fused=plan.latency > 1, **how)
    assert (again.cycles, again.populations, again.buses) == (plan.cycles, plan.populations, plan.buses)
    dear = make_plan(NETS[name], replace(target, fragment_cycles=40.0), placer=as_planned(plan), fused=plan.latency > 1, **how)
    assert dear.populations == plan.populations


def test_a_plan_on_several_chips_is_not_taken():
    plan = make_plan(chain(60, 40, 30, 7), small(2, chips=4), steps=5, batch=8, chips=4)
    assert plan.chips_used > 1
    with pytest.raises(ValueError, match="chips"):
        as_planned(plan)
