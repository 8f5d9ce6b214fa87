"""Damaged projects, trained weights, archives and caches cause an error with a code, or the same numbers.

``mutate_projects.py`` runs any number of cases, for every target.
"""

import numpy as np
import pytest
from caches import lend_objects
from mutate_projects import Originals, case, command


@pytest.fixture(scope="module")
def originals(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        place = tmp_path_factory.mktemp("originals")
        lend_objects(place / "cache")  # none of these is damaged
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        patch.setenv("SNNC_CACHE", str(place / "cache"))
        made = Originals(place, ("reference", "cpu"))
        # Children of this process need not import what it has imported. It loads no library: none that it knows is damaged later.
        project = place / "reference"
        for line in (["check", project], ["inspect", project, "-o", place / "r.html"], ["run", project, "--inputs", place / "x.npz"]):
            assert command([*line, *(["--outputs", place / "z.npz"] if line[0] == "run" else [])])[0] == 0
        yield made


@pytest.mark.representative("0")
@pytest.mark.parametrize("part", range(10))
def test_damage_ends_in_a_code_or_in_the_same_numbers(originals, part, tmp_path):
    for number in range(10):
        rng = np.random.default_rng([part, number])
        (tmp_path / str(number)).mkdir()
        done, wrong = case(originals, ("reference", "reference", "reference", "cpu")[number % 4], rng, tmp_path / str(number))
        assert wrong is None, f"{done}: {wrong}"
