"""Loops of vertices: formulas are the same in the prediction and in the printed program, and agree with manual counts."""

import re

import numpy as np
import pytest
from mapping_nets import w1

from snnc.compiler.tiles import codelet_costs
from snnc.compiler.tiles.codelets.block_loops import forward_loops, read_loops, source_loops
from snnc.compiler.tiles.codelets.block_vertices import BlockLink
from snnc.compiler.tiles.mapped.network import describe
from snnc.compiler.tiles.vertices.cost import dot_sweeps
from snnc.compiler.tiles.vertices.loops import Amount, Loop, LoopsByPlace, as_formula, cycles_of, looping, pairs

AMOUNTS = {"samples": 3, "count": 13, "events": 29, "width": 9, "outputs": 7, "unaligned": 1}


def c_pairs(columns):
    return (columns + 1) // 2


def c_sweeps(columns, most):
    return (c_pairs(columns) + most - 1) // most


def c_joined(columns, most):
    return 1 if columns % 2 != 0 and c_pairs(columns) % most != 1 else 0


C_FUNCTIONS = {"pairs": c_pairs, "sweeps": c_sweeps, "joined": c_joined, "dot_sweeps": lambda n: n // 4 + n % 4 // 2 + n % 2}
"""As columns.hpp has them."""


def printed(loop: Loop, amounts: dict[str, int]) -> int:
    """What the printed expression gives: C++ of integers is Python here but for suffixes and the sign of a division."""
    text = re.sub(r"(\d)ul\b", r"\1", loop.total.text({name: name for name in amounts})).replace("/", "//")
    return eval(text, {**C_FUNCTIONS, **amounts})


def loops_of_w1() -> list[Loop]:
    network, costs = describe(w1()), codelet_costs(w1())
    layer = network.layers[0]
    links = [BlockLink(i, link, returned=False, limited=False, limited_back=False, form=None) for i, link in enumerate(layer.incoming)]
    forward = forward_loops(costs[f"forward.{layer.id}"], links)
    return [*forward, *source_loops(costs[f"source_gradient.{layer.id}"], [(link, None) for link in layer.outgoing])]


@pytest.mark.parametrize("count", [1, 2, 11, 12, 13, 24, 25, 27])
@pytest.mark.parametrize("samples", [1, 2, 11])
def test_the_printed_expression_and_the_prediction_give_the_same_cycles(count: int, samples: int) -> None:
    amounts = AMOUNTS | {"count": count, "samples": samples}
    loops = loops_of_w1()
    assert {loop.name for loop in loops} >= {"weights of a spike", "equations of two neurons", "deltas of a weight"}
    for loop in loops:
        assert loop.total.value(amounts) == printed(loop, amounts), loop.name


@pytest.mark.parametrize("count", range(1, 40))
def test_the_loops_over_spikes_take_what_a_walk_over_their_columns_takes(count: int) -> None:
    network, cost = describe(w1()), codelet_costs(w1())["forward.p0"]
    link = next(link for link in network.layers[0].incoming if link.dense and link.events)
    loops = read_loops(cost, BlockLink(0, link, returned=False, limited=False, limited_back=False, form=None))
    events, samples, walked, left = 17, 3, 0, count
    while left:
        taken = min(left, 12)
        walked += samples * (cost.sweep + cost.swept_column * taken)
        walked += events * (cost.event + cost.event_vector * (taken // 2 + taken % 2))
        walked += events * (cost.event_joined if taken % 2 and taken > 1 else 0)
        left -= taken
    assert cycles_of(loops, {"samples": samples, "count": count, "events": events}) == walked


def test_formulas_take_arrays() -> None:
    counts = np.arange(1, 9)
    (loop,) = looping("columns", Amount("samples") * pairs(Amount("count")), 3)
    np.testing.assert_array_equal(loop.total.value({"samples": 2, "count": counts}), [3 * 2 * -(-n // 2) for n in counts.tolist()])


@pytest.mark.parametrize("columns", range(1, 14))
def test_one_sample_is_walked_in_runs_of_four_two_and_one_columns(columns: int) -> None:
    runs, left = 0, columns
    while left:
        left -= next(n for n in (4, 2, 1) if n <= left)
        runs += 1
    assert dot_sweeps(columns) == runs


def test_loops_that_cost_nothing_are_left_out() -> None:
    assert list(looping("nothing", Amount("samples"), 0)) == []
    zero = as_formula(0) * Amount("samples") + Amount("count") * 1
    assert zero == Amount("count")
    assert LoopsByPlace([])["incoming", 3] == ()
