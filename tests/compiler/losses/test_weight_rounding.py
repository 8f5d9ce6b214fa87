"""Rounding of updated weights: to the nearest value, and randomly to one of two neighbours without changing the mean."""

import ctypes
import subprocess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnc.backends.codegen.source_templates import source_of, source_templates
from snnc.backends.toolchain.compilers import compiler
from snnc.compiler.errors import HalfNumbersError
from snnc.compiler.losses.weight_rounding import LARGEST, WeightRounding, at_random, draws, nearest, parameter_key

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)
WORDS = st.integers(0, 2**32 - 1)


def neighbours(x):
    """The float16 numbers on either side, which are equal if there is one at x."""
    near = np.clip(np.float32(x), -LARGEST, LARGEST).astype(np.float16)
    if np.float32(near) == np.clip(np.float32(x), -LARGEST, LARGEST):
        return {float(near)}
    other = np.nextafter(near, np.float16(np.inf if np.float32(near) < x else -np.inf))
    return {float(near), float(other)}


@given(FLOATS, WORDS)
def test_a_number_becomes_one_of_its_neighbours(x, word):
    (found,) = at_random(np.array([x], np.float32), np.array([word], np.uint32))
    assert float(found) in neighbours(x)
    assert float(nearest(x)) in neighbours(x)


@given(FLOATS, WORDS)
def test_a_float16_number_stays_whatever_is_drawn(x, word):
    exact = nearest(np.array([x], np.float32))
    np.testing.assert_array_equal(at_random(exact, np.array([word], np.uint32)), exact)


@pytest.mark.parametrize("x", [0.3, -1234.567, 7.1e-5, 3.3e-5, -4.4e-8, 0.9999, 65499.0])
def test_random_rounding_keeps_the_mean(x):
    count = 200_000
    found = at_random(np.full(count, x, np.float32), draws(parameter_key(3, 0), 1, count)).astype(np.float64)
    low, high = min(neighbours(x)), max(neighbours(x))
    assert set(np.unique(found)) == {low, high}
    share, wanted = (found == high).mean(), (float(np.float32(x)) - low) / (high - low)
    assert abs(share - wanted) < 5 * np.sqrt(wanted * (1 - wanted) / count) + 2**-13


def test_draws_differ_between_updates_parameters_and_seeds_and_do_not_depend_on_how_many_are_taken():
    key = parameter_key(0, 0)
    ways = [draws(key, 1, 1000), draws(key, 2, 1000), draws(parameter_key(0, 1), 1, 1000), draws(parameter_key(1, 0), 1, 1000)]
    for i, a in enumerate(ways):
        assert abs(a.astype(np.float64).mean() / 2**32 - 0.5) < 0.05
        assert len(set(a.tolist())) > 990
        assert all((a == b).mean() < 0.01 for b in ways[:i])
    np.testing.assert_array_equal(draws(key, 1, 10), ways[0][:10])


def test_what_is_too_large_stays_finite_and_nan_stays():
    found = at_random(np.array([1e30, -1e30, np.inf, np.nan], np.float32), np.full(4, 2**32 - 1, np.uint32))
    np.testing.assert_array_equal(found, [LARGEST, -LARGEST, LARGEST, np.nan])
    np.testing.assert_array_equal(nearest([1e30, -np.inf, np.nan]), np.array([LARGEST, -LARGEST, np.nan], np.float32))


def test_a_rounding_that_is_not_known_is_refused():
    with pytest.raises(HalfNumbersError, match="nearest, stochastic or master"):
        WeightRounding("up")


def test_emitted_code_has_the_same_bits(tmp_path):
    header = source_of(source_templates(), "common/half_updates.hpp", {})
    body = (
        'extern "C" void all(const float *x, const unsigned *r, float *y, int n) '
        "{ for (int i = 0; i < n; ++i) y[i] = rounded_at_random(x[i], r[i]); }\n"
        'extern "C" unsigned draw(unsigned key, unsigned update, unsigned place) { return drawn(scrambled(key ^ update), place); }\n'
    )
    (tmp_path / "a.cpp").write_text(header + body)
    subprocess.run([*compiler(), "-O2", "-shared", "-fPIC", "-o", tmp_path / "a.so", tmp_path / "a.cpp"], check=True)
    library = ctypes.CDLL(str(tmp_path / "a.so"))
    random = np.random.default_rng(0)
    drawn = random.normal(size=5000) * 10.0 ** random.integers(-9, 6, 5000)
    x = np.concatenate([drawn, [0.0, -0.0, 2**-14, 65504, 1e9]]).astype(np.float32)
    words, found = random.integers(0, 2**32, len(x), dtype=np.uint32), np.empty_like(x)
    pointer = lambda a: a.ctypes.data_as(ctypes.c_void_p)  # noqa: E731
    library.all(pointer(x), pointer(words), pointer(found), len(x))
    np.testing.assert_array_equal(found.view(np.uint32), at_random(x, words).view(np.uint32))
    library.draw.restype, library.draw.argtypes = ctypes.c_uint32, [ctypes.c_uint32] * 3
    key = parameter_key(7, 2)
    assert [library.draw(key, 3, place) for place in range(50)] == draws(key, 3, 50).tolist()
