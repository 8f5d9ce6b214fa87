"""Liveness of variables, and the resulting peak memory of tiles."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wide import examples

VARIABLES = 4
MAX_PATHS = 300


@dataclass(frozen=True)
class Leaf:
    """A vertex ("f" fills, "h" fills half, "a" adds in place) or "u", a value that is forgotten."""

    kind: str
    names: tuple[int, ...]

    @property
    def reads(self) -> set[int]:
        return set() if self.kind == "u" else {self.names[0]}

    @property
    def writes(self) -> set[int]:
        return {self.names[-1]}

    @property
    def overwrites(self) -> set[int]:
        # Half of a variable of one element is all of it.
        whole = self.kind in "fua" or self.names[-1] == 0
        return self.writes if whole else set()

    @property
    def text(self) -> str:
        return " ".join([self.kind, *map(str, self.names)])


@dataclass(frozen=True)
class Node:
    """s: sequence, r: repeat, w: while (condition, body), i: if."""

    kind: str
    children: tuple[Leaf | Node, ...]
    number: int = 0

    @property
    def text(self) -> str:
        head = {"s": f"s {len(self.children)}", "r": f"r {self.number}"}.get(self.kind, self.kind)
        return " ".join([head, *(child.text for child in self.children)])


Path = tuple[tuple[int, ...], ...]


def paths(tree: Leaf | Node, place: tuple[int, ...] = ()) -> Iterator[tuple[tuple[tuple[int, ...], Leaf | None], ...]]:
    """Every way through a program, loops that ask at most twice: places of the tree and what runs there (None: a decision)."""
    if isinstance(tree, Leaf):
        yield ((place, tree),)
        return
    below = [list(itertools.islice(paths(child, (*place, n)), MAX_PATHS)) for n, child in enumerate(tree.children)]
    asked = ((place, None),)
    if tree.kind == "i":
        yield from (asked + way for some in below for way in some)
    elif tree.kind == "w":
        for times in range(3):
            for ways in itertools.product(*([below[0], *([below[1], below[0]] * times)])):
                found = ways[0] + asked
                for body, condition in zip(ways[1::2], ways[2::2], strict=True):
                    found += body + condition + asked
                yield found
    else:
        for ways in itertools.product(*(below * (tree.number if tree.kind == "r" else 1))):
            yield tuple(itertools.chain(*ways))


def live_by_place(tree: Leaf | Node, visible: set[int]) -> dict[tuple[int, ...], set[int]]:
    """What must exist at each place: one run behind another, every value followed to whoever reads it first."""
    ways = list(paths(tree))
    found: dict[tuple[int, ...], set[int]] = {}
    for first, second in itertools.product(ways, repeat=2):
        live: set[int] = set()
        steps = [*first, *second]
        for number in range(len(steps) - 1, -1, -1):
            place, leaf = steps[number]
            touched = leaf.reads | leaf.writes if leaf else set()
            if number < len(first) and not (leaf and leaf.kind == "u"):
                found[place] = found.get(place, set()) | live | touched | visible
            live = (live - leaf.overwrites) | leaf.reads if leaf else live
    return found


leaves = st.one_of(
    st.builds(Leaf, st.sampled_from("fh"), st.tuples(*[st.integers(0, VARIABLES - 1)] * 2).filter(lambda pair: pair[0] != pair[1])),
    st.builds(Leaf, st.sampled_from("au"), st.tuples(st.integers(0, VARIABLES - 1))),
)


def _nodes(inner: st.SearchStrategy[Leaf | Node]) -> st.SearchStrategy[Node]:
    return st.one_of(
        st.builds(lambda c: Node("s", tuple(c)), st.lists(inner, min_size=1, max_size=4)),
        st.builds(lambda c, n: Node("r", (c,), n), inner, st.integers(1, 2)),
        st.builds(lambda a, b: Node("w", (a, b)), inner, inner),
        st.builds(lambda a, b: Node("i", (a, b)), inner, inner),
    )


programs = st.recursive(leaves, _nodes, max_leaves=6).filter(lambda tree: len(list(itertools.islice(paths(tree), 60))) < 60)


def profile_of(cases, tree: Leaf | Node, visible: set[int]) -> dict:
    mask = sum(1 << v for v in visible)
    return json.loads(cases.run("liveness", stdin=f"{VARIABLES} {mask} {tree.text}\n"))


def members(number: int) -> set[int]:
    return {v for v in range(VARIABLES) if number >> v & 1}


@settings(max_examples=examples(16, 40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tree=programs, visible=st.sets(st.integers(0, VARIABLES - 1), max_size=1))
def test_what_is_live_where_is_what_following_every_path_finds(cases, tree, visible):
    profile = profile_of(cases, tree, visible)
    # The predicate is one byte, which the host sees, so that it is live everywhere.
    found = [members((point["variables_of_all"] - 1) // 4) for point in profile["memory_over_time"] if point["program"] == 0]
    expected = live_by_place(tree, visible)
    assert sorted(map(sorted, found)) == sorted(map(sorted, expected.values()))
    peak, memory = profile["per_tile"]["peak"], profile["per_tile"]["memory"]
    assert peak["always_variables"][0] <= peak["variables"][0] <= memory["variables"][0]
    assert peak["total"][0] <= memory["total"][0]
    assert peak["variables"][profile["fullest_tile"]] == max(point["variables"] for point in profile["memory_over_time"])


def sequence(*parts: Leaf | Node) -> Node:
    return Node("s", parts)


def live(cases, tree: Node) -> list[set[int]]:
    points = profile_of(cases, tree, {0})["memory_over_time"]
    return [members((point["variables_of_all"] - 1) // 4) for point in points]


def test_two_variables_that_are_never_live_together_share_room(cases):
    tree = sequence(Leaf("f", (0, 2)), Leaf("f", (2, 0)), Leaf("f", (0, 3)), Leaf("f", (3, 0)))
    profile = profile_of(cases, tree, {0})
    assert profile["per_tile"]["memory"]["variables"][0] == 4 * (1 + 4 + 8 + 2)
    assert profile["per_tile"]["peak"]["variables"][0] == 4 * (1 + 8)
    point = profile["memory_over_time"][profile["per_tile"]["peak"]["point"][0]]
    assert point["variables"] == 4 * (1 + 8)


def test_what_is_changed_in_place_is_live_from_the_start_unless_its_old_value_is_forgotten(cases):
    accumulate = sequence(Leaf("f", (0, 1)), Leaf("a", (2,)), Leaf("f", (2, 0)))
    assert live(cases, accumulate) == [{0, 1, 2}, {0, 2}, {0, 2}, {0, 2}]
    forgotten = sequence(Leaf("f", (0, 1)), Leaf("u", (2,)), Leaf("a", (2,)), Leaf("f", (2, 0)))
    assert live(cases, forgotten) == [{0, 1}, {0, 2}, {0, 2}, {0}]


def test_half_a_variable_that_is_written_keeps_the_rest_of_it_alive(cases):
    halves = sequence(Leaf("f", (0, 1)), Leaf("h", (0, 3)), Leaf("f", (3, 0)))
    assert live(cases, halves)[0] == {0, 1, 3}
    whole = sequence(Leaf("f", (0, 1)), Leaf("f", (0, 3)), Leaf("f", (3, 0)))
    assert live(cases, whole)[0] == {0, 1}


@pytest.mark.parametrize("times", [1, 2])
def test_a_value_lives_around_a_loop_only_if_the_loop_comes_back(cases, times):
    loop = Node("r", (sequence(Leaf("f", (1, 0)), Leaf("f", (0, 1)), Leaf("f", (0, 2))),), times)
    found = live(cases, sequence(Leaf("f", (0, 1)), loop))
    assert (1 in found[3]) == (times > 1)
