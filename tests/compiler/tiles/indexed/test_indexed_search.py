"""The number of keys that the search for events in a table visits, compared with the search itself on random lists."""

import numpy as np
import pytest

from snnc.compiler.tiles.cycles.indexed_cycles import keys_passed


def steps_of_search(ids, keys):
    """Events and keys that the loop of indexed_runs.hpp goes past."""
    row = events = 0
    while events < len(ids) and row < len(keys):
        while row < len(keys) and keys[row] < ids[events]:
            row += 1
        events += 1
    return events, row


@pytest.mark.parametrize(("events", "keys"), [(0, 40), (1, 40), (3, 25), (20, 120), (60, 12), (9, 1)])
def test_a_search_passes_as_many_keys_and_events_as_predicted(events, keys):
    random, found = np.random.default_rng(0), []
    for _ in range(4000):
        values = random.permutation(1000)
        found.append(steps_of_search(np.sort(values[:events]), np.sort(values[events : events + keys])))
    events_passed, passed = np.mean(found, axis=0)
    assert passed == pytest.approx(keys * keys_passed(events), rel=0.03, abs=0.05)
    assert events_passed == pytest.approx(events * keys_passed(keys), rel=0.03, abs=1.0)  # the event behind the last key is looked at
