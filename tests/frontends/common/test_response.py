"""Forms of responses are compared as in numpy.allclose."""

import numpy as np
import pytest

from snnc.frontends.common.response import close

SPECIAL = (np.inf, -np.inf, np.nan, 0.0, 1e300)


def allclose(a, b):
    return np.allclose(a, b, rtol=3e-5, atol=3e-5 * max(1.0, float(np.abs(b).max(initial=0.0))))


@pytest.mark.parametrize("special", [False, True])
def test_forms_are_close_where_numpy_says_so(special):
    random, equal = np.random.default_rng(0), 0
    with np.errstate(all="ignore"):
        for _ in range(2000):
            b = random.normal(size=(6, 3)) * 10.0 ** random.integers(-8, 9)
            a = b + random.normal(size=b.shape) * 10.0 ** random.integers(-12, 3) * (random.random(b.shape) < 0.3)
            for form in (a, b) if special else ():
                if random.random() < 0.5:
                    form[random.integers(6), random.integers(3)] = SPECIAL[random.integers(5)]
            assert close(a, b) == allclose(a, b)
            equal += close(a, b)
    assert 200 < equal < 1800
