"""``--quick``: what a room's tests say in less than a minute, by the seconds that they took in earlier runs."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import pytest

BUDGET = 40.0
"""Seconds from the start of pytest after which no further test begins; installing comes before, the last tests end after."""
LONG = 4.0
"""Seconds of a test that is left out when it took them the last time."""
KEPT = "snnc/seconds"
"""Where pytest's cache holds the seconds of each test."""


def in_order(names: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the tests without long ones, files that take least first: as many files as possible are tried before time is over.

    Tests of a file stay together, for they share what they build. What is not known yet counts nothing.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if seconds.get(name, 0.0) < LONG:
            files[name.partition("::")[0]].append(name)
    return [name for file in sorted(files.values(), key=lambda file: sum(seconds.get(n, 0.0) for n in file)) for name in file]


class Quick:
    """Leaves out what took long before."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        by_name = {item.nodeid: item for item in items}
        cache = getattr(config, "cache", None)
        chosen = in_order(list(by_name), cache.get(KEPT, {}) if cache else {})
        config.hook.pytest_deselected(items=[by_name[name] for name in by_name.keys() - set(chosen)])
        items[:] = [by_name[name] for name in chosen]


class Budget:
    """Starts no test after `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._begin = seconds, time.monotonic()

    def pytest_runtest_setup(self, item):
        if time.monotonic() - self._begin > self._seconds:
            pytest.skip(f"the budget of {self._seconds:.0f} seconds is used up")


class Seconds:
    """Keeps the seconds of each test for `Quick`."""

    def __init__(self, config) -> None:
        self._config, self._found = config, Counter()

    def pytest_runtest_logreport(self, report):
        if not report.skipped:
            self._found[report.nodeid] += round(report.duration, 3)

    def pytest_sessionfinish(self):
        cache = getattr(self._config, "cache", None)
        if cache is not None and self._found and not hasattr(self._config, "workerinput"):
            cache.set(KEPT, {**cache.get(KEPT, {}), **self._found})
