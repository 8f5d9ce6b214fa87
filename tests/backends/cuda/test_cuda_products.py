"""Dense products over a whole sequence, as CUDA kernels on the processor, against sums in float64."""

import subprocess
from pathlib import Path

import pytest

from snnc.backends.codegen.source_templates import source_of, source_templates
from snnc.backends.cuda.build import HOST_FLAGS
from snnc.backends.cuda.emit import CONSTANTS
from snnc.backends.toolchain.compilers import compiler

RUNTIME = Path(__file__).parents[3] / "templates" / "cuda" / "runtime"
SIZES = ((2, 5, 3), (3, 33, 20), (70, 100, 20), (130, 65, 129), (33, 300, 7), (257, 31, 40), (64, 128, 128))
"""Rows, inputs and outputs."""
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
def products(tmp_path_factory):
    folder = tmp_path_factory.mktemp("products")
    sources = [str(RUNTIME / "whole_products.cu"), str(Path(__file__).with_name("whole_products_check.cpp"))]
    (folder / "constants.hpp").write_text(source_of(source_templates(), "common/constants.hpp", {"constants": CONSTANTS}))
    command = [*compiler(), "-std=c++17", *HOST_FLAGS, f"-I{RUNTIME}", f"-I{folder}", "-x", "c++", *sources, "-o", str(folder / "check")]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return folder / "check"


@pytest.mark.representative("(2, 5, 3)-*", "(3, 33, 20)-*", "(70, 100, 20)-*", "(33, 300, 7)-*")
@pytest.mark.parametrize("order", ["forwards", "backwards"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_products_of_many_rows_are_those_of_the_definition(products, sizes, order, monkeypatch):
    monkeypatch.setenv("SNNC_HOST_ORDER", order)
    said = subprocess.run([products, *map(str, sizes)], check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in said.splitlines()]
    assert len(lines) == 32
    for what, source, factors, added, error in lines:
        assert float(error) <= LIMITS.get((what, factors), ROUNDED), (what, source, factors, added)
