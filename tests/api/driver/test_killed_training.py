"""Kill -9 at random moments of training: only work after the last checkpoint is lost, and resumed training ends with the same bits."""

import pytest
from killing import kill_training


@pytest.mark.wide
@pytest.mark.parametrize(
    ("target", "epochs", "kills"),
    [
        ("reference", 3, 10),
        pytest.param("reference", 8, 200, marks=pytest.mark.wide),
        pytest.param("cpu", 8, 200, marks=pytest.mark.wide),
    ],
)
def test_a_killed_training_loses_nothing_beyond_its_last_checkpoint(tmp_path, target, epochs, kills):
    found = kill_training(tmp_path, target, epochs, kills, seed=19)
    print(f"{found.kills} kills at {len(found.places)} places, {len(found.ends)} trainings resumed to their end")
    assert found.kills == kills
    assert found.beyond == 0
    assert found.strange == []
    assert found.ends
    assert all(found.ends)
