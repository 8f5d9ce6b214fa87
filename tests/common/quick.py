"""``--quick``: the tests of a folder that fit in less than a minute, chosen by their seconds in earlier runs."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import pytest

BUDGET = 40.0
"""Seconds from the start of pytest after which no further test begins; excludes installation and the end of the last tests."""
LONG = 4.0
"""A test that took this many seconds the last time is left out."""
KEPT = "snnc/seconds"
"""Key in pytest's cache for the seconds of each test."""


def in_order(names: Sequence[str], seconds: Mapping[str, float]) -> list[str]:
    """Return the tests without long ones, shortest files first, so that as many files as possible run before the time is over.

    Tests of a file stay together, because they share builds. A test without a known time counts as 0.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for name in names:
        if seconds.get(name, 0.0) < LONG:
            files[name.partition("::")[0]].append(name)
    return [name for file in sorted(files.values(), key=lambda file: sum(seconds.get(n, 0.0) for n in file)) for name in file]


class Quick:
    """Leaves out tests that took long before."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        by_name = {item.nodeid: item for item in items}
        cache = getattr(config, "cache", None)
        chosen = in_order(list(by_name), cache.get(KEPT, {}) if cache else {})
        config.hook.pytest_deselected(items=[by_name[name] for name in by_name.keys() - set(chosen)])
        items[:] = [by_name[name] for name in chosen]


class Budget:
    """Starts no test after this number of seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._begin = seconds, time.monotonic()

    def pytest_runtest_setup(self, item):
        if time.monotonic() - self._begin > self._seconds:
            pytest.skip(f"the budget of {self._seconds:.0f} seconds is used up")


class Seconds:
    """Stores the seconds of each test for `Quick`."""

    def __init__(self, config) -> None:
        self._config, self._found = config, Counter()

    def pytest_runtest_logreport(self, report):
        if not report.skipped:
            self._found[report.nodeid] += round(report.duration, 3)

    def pytest_sessionfinish(self):
        cache = getattr(self._config, "cache", None)
        if cache is not None and self._found and not hasattr(self._config, "workerinput"):
            cache.set(KEPT, {**cache.get(KEPT, {}), **self._found})
