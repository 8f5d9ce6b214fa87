"""The random numbers of a seed are recorded here, so that no version of numpy changes them."""

import numpy as np
import pytest

from snnc.compiler.ir.arrays.randomness import Stream

PINNED = (
    ("random", lambda s: s.random(3), [0.625095466604667, 0.8972138009695755, 0.7756856902451935]),
    ("uniform", lambda s: s.uniform(-1, 1, 3), [0.25019093320933394, 0.794427601939151, 0.551371380490387]),
    ("normal", lambda s: s.normal(1, 2, 3), [2.631446130514625, 1.513795126047842, -0.41302568415211627]),
    ("standard_normal", lambda s: s.standard_normal(3, np.float32), [0.8157230615615845, 0.25689756870269775, -0.7065128684043884]),
    ("lognormal", lambda s: s.lognormal(0, 1, 2), [2.260809794505825, 1.2929126779105802]),
    ("binomial", lambda s: s.binomial(1000, 0.3, 4), [301, 295, 288, 277]),
    ("binomial of several", lambda s: s.binomial([3, 9], 0.5), [2, 6]),
    ("integers", lambda s: s.integers(1, 10, 5, endpoint=True), [10, 6, 3, 3, 6]),
    ("integers from 0", lambda s: s.integers(5, size=4), [3, 1, 4, 2]),
    ("permutation", lambda s: s.permutation(10), [8, 0, 7, 1, 3, 6, 2, 4, 5, 9]),
    ("few distinct", lambda s: s.distinct(100, 5), [11, 21, 41, 60, 98]),
    ("many distinct", lambda s: s.distinct(10, 6), [0, 1, 3, 6, 7, 8]),
)


@pytest.mark.parametrize(("draw", "wanted"), [one[1:] for one in PINNED], ids=[one[0] for one in PINNED])
def test_what_a_seed_draws_is_pinned(draw, wanted):
    # Where a logarithm is taken, the C library may differ in the last bit.
    np.testing.assert_allclose(draw(Stream(7)), wanted, rtol=1e-14)


def test_numbers_between_0_and_1_are_the_upper_bits_of_pcg64():
    raw = np.random.PCG64(np.random.SeedSequence([3, 1])).random_raw(5)
    assert Stream([3, 1]).random(5).tolist() == ((raw >> np.uint64(11)) / 2.0**53).tolist()


BINOMIAL = [301, 295, 288, 277]
HYPERGEOMETRIC = [2, 6, 8]
CHOICE = [942, 623, 897, 683]
PERMUTATION = [0, 6, 7, 2, 4, 5, 1, 3]
EXPONENTIAL = [0.9480473, 1.9964033, 0.7230133]


def test_what_plans_draw_is_what_it_was():
    """Plans estimate events by numpy's own generator, which numpy may change with any version: then this says so."""
    draw = np.random.default_rng
    assert draw(7).binomial(1000, 0.3, 4).tolist() == BINOMIAL
    assert draw(7).hypergeometric(30, 70, [10, 20, 40]).tolist() == HYPERGEOMETRIC
    assert draw(7).choice(1000, 4, replace=False).tolist() == CHOICE
    assert draw(7).permutation(8).tolist() == PERMUTATION
    np.testing.assert_allclose(draw(7).standard_exponential(3, dtype=np.float32), EXPONENTIAL, rtol=1e-6)


@pytest.mark.parametrize(("population", "count"), [(40, 3), (40, 30), (5, 5), (1, 1), (9, 0)])
def test_distinct_numbers_are_each_as_likely(population, count):
    stream, seen = Stream(1), np.zeros(population)
    for _ in range(2000):
        found = stream.distinct(population, count)
        assert len(found) == count
        assert (np.diff(found) > 0).all()
        seen[found] += 1
    np.testing.assert_allclose(seen / 2000, count / population, atol=0.06)
