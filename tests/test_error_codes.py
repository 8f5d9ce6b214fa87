"""Every error has its own code and its line in the documentation."""

import re
from pathlib import Path

from reference_pages import reference

import snnc

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"
all_errors = reference().error_classes


def test_codes_are_unique_and_well_formed():
    codes = [kind.code for kind in all_errors()]
    assert len(codes) == len(set(codes)), sorted(c for c in codes if codes.count(c) > 1)
    assert all(re.fullmatch(r"SNNC-E\d{3}", code) for code in codes)


def test_every_class_defines_its_own_code():
    assert [kind.__name__ for kind in all_errors() if "code" not in vars(kind)] == []


def test_every_code_has_one_line_in_the_documentation():
    documented = re.findall(r"^\| `(SNNC-E\d{3})` \|", PAGE.read_text(), re.M)
    assert documented == [kind.code for kind in all_errors()], "run: python docs/reference/make_reference.py"


def test_the_public_names_exist():
    assert [name for name in snnc.__all__ if not hasattr(snnc, name)] == []
