"""Random numbers of a seed are written down here: no version of numpy changes them."""

import numpy as np
import pytest

from snnc.compiler.randomness import Stream

PINNED = (
    ("random", lambda s: s.random(3), [0.625095466604667, 0.8972138009695755, 0.7756856902451935]),
    ("uniform", lambda s: s.uniform(-1, 1, 3), [0.25019093320933394, 0.794427601939151, 0.551371380490387]),
    ("normal", lambda s: s.normal(1, 2, 3), [2.631446130514625, 1.513795126047842, -0.41302568415211627]),
    ("standard_normal", lambda s: s.standard_normal(3, np.float32), [0.8157230615615845, 0.25689756870269775, -0.7065128684043884]),
    ("lognormal", lambda s: s.lognormal(0, 1, 2), [2.260809794505825, 1.2929126779105802]),
    ("standard_exponential", lambda s: s.standard_exponential(2), [0.9810838630345526, 2.275104185650305]),
    ("binomial", lambda s: s.binomial(1000, 0.3, 4), [301, 295, 288, 277]),
    ("binomial of several", lambda s: s.binomial([3, 9], 0.5), [2, 6]),
    ("hypergeometric", lambda s: s.hypergeometric(30, 70, [10, 20, 40]), [5, 3, 11]),
    ("hypergeometric of none", lambda s: s.hypergeometric([0, 30, 1], [0, 70, 0], [0, 10, 1]), [0, 5, 1]),
    ("multinomial", lambda s: s.multinomial([10, 100], [0.2, 0.3, 0.5]), [[2, 4, 4], [25, 25, 50]]),
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


def test_shares_of_multinomial_numbers_are_those_asked_for():
    share = np.array([0.05, 0.25, 0.0, 0.7])
    dealt = Stream(0).multinomial(np.full(4000, 50), share)
    assert (dealt.sum(axis=1) == 50).all()
    np.testing.assert_allclose(dealt.mean(axis=0), 50 * share, atol=0.2)


@pytest.mark.parametrize(("population", "count"), [(40, 3), (40, 30), (5, 5), (1, 1), (9, 0)])
def test_distinct_numbers_are_each_as_likely(population, count):
    stream, seen = Stream(1), np.zeros(population)
    for _ in range(2000):
        found = stream.distinct(population, count)
        assert len(found) == count
        assert (np.diff(found) > 0).all()
        seen[found] += 1
    np.testing.assert_allclose(seen / 2000, count / population, atol=0.06)
