"""Dense products over a whole sequence, as CUDA kernels on the CPU, compared with float64 sums."""

import os
import subprocess
from functools import cache
from pathlib import Path

import pytest
from cuda_checks import RUNTIME, built_check

from snnc.backends.codegen.source_templates import source_of, source_templates
from snnc.backends.cuda.emit import CONSTANTS
from snnc.backends.cuda.schedule.launches import NARROW, slice_rows

SIZES = ((2, 5, 3), (3, 33, 20), (70, 100, 20), (130, 65, 129), (33, 300, 7), (257, 31, 40), (64, 128, 128))
"""Rows, inputs and outputs."""
WIDE_SIZES = tuple(sizes for sizes in SIZES if sizes[2] > NARROW)
"""Groups of warps multiply where there are more columns than those of a narrow tile."""
# Of a sum, the error beside the sum of its terms' sizes. A number of 8 bits is off by 2^-8 of itself.
_TWO_PARTS = 3 * 2.0**-16
"""Of a product of two factors of two parts of 8 bits each, of which the smallest product is left out."""
LIMITS = {
    ("forward", "split"): 5e-6,
    **{(what, "split"): _TWO_PARTS for what in ("back", "back_short", "gradient", "gradient_short")},
    ("forward", "rounded"): 5e-6,
    **{(what, "half_weights"): _TWO_PARTS for what in ("forward", "back_short")},
}
ROUNDED = 2.0**-7
"""Of a product of two numbers of 8 bits."""


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """Compile the check, with more flags."""
    return cache(lambda *flags: built(tmp_path_factory.mktemp("products"), flags))


def built(folder, flags):
    (folder / "constants.hpp").write_text(source_of(source_templates(), "common/constants.hpp", {"constants": CONSTANTS}))
    sources = [RUNTIME / "whole_products.cu", Path(__file__).with_name("whole_products_check.cpp")]
    return built_check(folder / "check", sources, [*flags, f"-I{folder}"])


def run(program, sizes, groups, order="forwards"):
    """Return whether warpgroups multiply, and the lines that the check prints."""
    given = os.environ | {"SNNC_HOST_ORDER": order, "SNNC_WARPGROUPS": "1" if groups else "0"}
    said = subprocess.run([program, *map(str, sizes)], check=True, capture_output=True, text=True, env=given).stdout
    (multiplies, slices), *lines = [line.split() for line in said.splitlines()]
    assert int(slices) == slice_rows(*sizes[:3])
    return multiplies == "groups", lines


@pytest.mark.representative(
    "(2, 5, 3)-*", "(3, 33, 20)-*", "(70, 100, 20)-False-backwards", "(257, 31, 40)-True-*", "(33, 300, 7)-False-forwards"
)
@pytest.mark.parametrize(
    ("sizes", "groups", "order"),
    [
        *((sizes, False, order) for sizes in SIZES for order in ("forwards", "backwards")),
        *((sizes, True, "forwards") for sizes in WIDE_SIZES),
        (WIDE_SIZES[0], True, "backwards"),
    ],
    ids=str,
)
def test_products_of_many_rows_are_those_of_the_definition(build, sizes, groups, order):
    uses_groups, lines = run(build(), sizes, groups, order)
    assert uses_groups == groups
    assert len(lines) == 32
    for what, source, factors, added, error in lines:
        assert float(error) <= LIMITS.get((what, factors), ROUNDED), (what, source, factors, added)


@pytest.mark.representative("24-*")
@pytest.mark.parametrize("groups", [False, True])
@pytest.mark.parametrize("smaller", [0, 12, 24])
def test_tf32_weights_are_those_of_its_definition_over_a_wide_range(build, smaller, groups):
    """Weights of a column differ by up to 2^24 and more, and keep 11 bits each; the sums are then as exact as float32."""
    _, [[from_definition, from_exact, of_definition]] = run(build(), (64, 96, 130, smaller), groups)
    assert float(from_definition) <= 5e-6
    assert 2.0**-14 < float(of_definition) <= 2.0**-11
    assert float(from_exact) == pytest.approx(float(of_definition), rel=0.02)


def test_tf32_weights_far_below_the_largest_of_their_column_have_fewer_bits(build):
    """Below 2^-28 of the largest weight a weight is off by at most 2^-40 of it, where the definition still keeps 11 bits."""
    _, [[_, from_exact, of_definition]] = run(build(), (64, 20, 130, 44), groups=False)
    assert float(of_definition) <= 2.0**-11
    assert float(from_exact) > 2 * float(of_definition)


@pytest.mark.wide
def test_groups_of_warps_are_not_used_where_their_products_are_wrong(build):
    wrong, sizes = build("-DSNNC_WRONG_GROUPS", "-O0"), (9, 33, 36)
    uses_groups, lines = run(wrong, sizes, groups=True)
    assert not uses_groups
    assert lines == run(wrong, sizes, groups=False)[1]
