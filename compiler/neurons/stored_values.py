"""Selection of the smallest set of arrays that must be stored over a sequence to compute the adjoint.

A forward value is available to the adjoint if it is stored, or can be recomputed from available operands. So the stored values must
cut every path from the inputs and previous states to the values that the adjoint reads. The history of a state is one array and contains
its values before and after each step. The search is exact; for models far larger than usual neurons, it stops at a bound and returns the
smallest set found so far.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from snnc.compiler.neurons.expression import Assignment, calls, symbols
from snnc.compiler.neurons.single_assignment import Equations, previous

MAX_CUTS: Final = 20_000
"""Number of sets after which the search stops."""
_COSTLY: Final = frozenset({"exp", "log", "sqrt", "tanh", "sigmoid", "erf", "sin", "cos", "pow", "div"})
_COSTLY_WORK: Final = 8
"""Estimated work of a costly function, where a sum or product has the work 1; it only decides between sets of equal size."""


@dataclass(frozen=True)
class StoredValues:
    """Values stored over a sequence: histories of states and other values; and the values that the adjoint recomputes from them."""

    history: tuple[str, ...]
    saved: tuple[str, ...]
    recomputed: frozenset[str]


def choose_storage(equations: Equations, needed: Iterable[str]) -> StoredValues:
    """Choose the smallest storage from which all `needed` forward values can be computed; ties prefer states, then less work."""
    search = _Search(equations, frozenset(needed) - set(equations.parameters))
    search.run(frozenset())
    history = tuple(s for s in equations.states if s in search.best)
    order = [*equations.inputs, *(a.target for a in equations.assignments)]
    saved = tuple(n for n in order if n in search.best and n not in history)
    return StoredValues(history, saved, search.recomputed(search.best))


@dataclass
class _Search:
    """Branch-and-bound search: a path without a stored value must be cut at one of its values, and each is tried."""

    equations: Equations
    needed: frozenset[str]
    best: frozenset[str] = frozenset()
    _cost: tuple[int, int, int] | None = None
    _seen: set[frozenset[str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        free = set(self.equations.parameters)
        self._operands: Mapping[str, tuple[str, ...]] = {
            a.target: tuple(dict.fromkeys(n for n in symbols(a.value) if n not in free)) for a in self.equations.assignments
        }
        self._work = {a.target: _work(a) for a in self.equations.assignments}
        self._array = {previous(s): s for s in self.equations.states}
        """Stored array of a value: the history for both values of a state, else the value itself."""

    def run(self, stored: frozenset[str]) -> None:
        """Try all sets that contain `stored` and cut all paths, states first, and keep the best one."""
        if stored in self._seen or len(self._seen) > MAX_CUTS:
            return
        self._seen.add(stored)
        lower = len(stored), sum(n not in self.equations.states for n in stored)
        if self._cost is not None and lower > self._cost[:2]:
            return
        path = self._open_path(stored)
        if path is None:
            cost = (*lower, sum(self._work[n] for n in self.recomputed(stored)))
            if self._cost is None or cost < self._cost:
                self.best, self._cost = stored, cost
            return
        choices = list(dict.fromkeys(self._array.get(n, n) for n in path))
        for choice in sorted(choices, key=lambda n: n not in self.equations.states):
            self.run(stored | {choice})

    def recomputed(self, stored: Collection[str]) -> frozenset[str]:
        """Return the values that the adjoint recomputes."""
        names: set[str] = set()
        todo = list(self.needed)
        while todo:
            name = todo.pop()
            if name not in names and not self._is_stored(name, stored):
                names.add(name)
                todo.extend(self._operands[name])
        return frozenset(names)

    def _is_stored(self, name: str, stored: Collection[str]) -> bool:
        return self._array.get(name, name) in stored

    def _open_path(self, stored: Collection[str]) -> list[str] | None:
        """Return a shortest path without stored values from a needed value back to an input or previous state."""
        queue = deque([name] for name in sorted(self.needed) if not self._is_stored(name, stored))
        visited = {path[0] for path in queue}
        while queue:
            path = queue.popleft()
            if path[-1] not in self._operands:
                return path
            for operand in self._operands[path[-1]]:
                if operand not in visited and not self._is_stored(operand, stored):
                    visited.add(operand)
                    queue.append([*path, operand])
        return None


def _work(assignment: Assignment) -> int:
    """Return the work of an assignment: the number of its function calls, where a costly one counts :data:`_COSTLY_WORK`."""
    return sum(_COSTLY_WORK if call.function in _COSTLY else 1 for call in calls(assignment.value))
