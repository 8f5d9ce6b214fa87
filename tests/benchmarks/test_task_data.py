"""The small data sets for the training in ``benchmarks/scripts/cpu_tasks.py``."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

_SPEC = importlib.util.spec_from_file_location("task_data", Path(__file__).parents[2] / "benchmarks" / "scripts" / "task_data.py")
task_data = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(task_data)


def test_a_latency_is_one_spike_at_the_value():
    spikes = task_data.latency(np.array([[0.0, 0.49, 1.0]]), 11)
    assert spikes.shape == (1, 11, 3)
    assert np.argwhere(spikes[0].T).tolist() == [[0, 0], [1, 5], [2, 10]]


def test_the_yin_yang_has_the_areas_of_its_geometry():
    """The halves have equal areas; each holds a lobe of half the radius, and each lobe a dot of radius 0.1."""
    points = np.random.default_rng(0).random((400_000, 2))
    inside = points[np.hypot(*(points - 0.5).T) <= 0.5]
    share = np.bincount(task_data.yin_yang_class(inside)) / len(inside)
    dot = (0.1 / 0.5) ** 2
    np.testing.assert_allclose(share, [0.5 - dot, 0.5 - dot, 2 * dot], atol=4e-3)


def test_half_a_turn_swaps_yin_and_yang():
    points = np.random.default_rng(1).random((10_000, 2))
    classes, turned = task_data.yin_yang_class(points), task_data.yin_yang_class(1 - points)
    inside = np.hypot(*(points - 0.5).T) <= 0.5
    np.testing.assert_array_equal(np.array([1, 0, 2])[classes[inside]], turned[inside])
    named = np.array([[0.25, 0.5], [0.75, 0.5], [0.25, 0.3], [0.75, 0.7], [0.5, 0.95], [0.5, 0.05]])
    assert task_data.yin_yang_class(named).tolist() == [2, 2, 1, 0, 1, 0]


@pytest.mark.parametrize("make", [task_data.yin_yang, pytest.param(task_data.randman, marks=pytest.mark.wide)])
def test_samples_are_balanced_seeded_and_spike_once_an_input(make):
    x, y = make(300, 3)
    again, labels = make(300, 3)
    np.testing.assert_array_equal(x, again)
    np.testing.assert_array_equal(y, labels)
    assert x.sum(axis=1).tolist() == np.ones((300, x.shape[2])).tolist()
    assert len(set(np.bincount(y))) == 1
    assert not np.array_equal(make(300, 4)[0], x)


def test_samples_of_a_manifold_lie_on_a_curve():
    """One dimension: in the order of spike times of any input that is monotonous, neighbours differ by little in all other inputs."""
    x, y = task_data.randman(4000, 0, classes=2, steps=200)
    times = x[y == 0].argmax(axis=1) / 199
    gaps = np.linalg.norm(times[:, None] - times[None, :200], axis=2)
    np.fill_diagonal(gaps[:200], np.inf)
    other = x[y == 1].argmax(axis=1) / 199
    apart = np.linalg.norm(other[:, None] - times[None, :200], axis=2)
    assert np.median(gaps.min(axis=0)) < 0.05
    assert np.median(apart.min(axis=0)) > 0.5
