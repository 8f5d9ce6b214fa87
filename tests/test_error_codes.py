"""Every error has its own code and its line in the documentation."""

import importlib
import pkgutil
import re
from pathlib import Path

import snnc
from snnc.compiler.errors import SnncError

PEERS = "snnc.benchmarks.cpu.engines."
"""Modules that import other frameworks, which may be missing; they define no errors."""
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "errors.md"


def all_errors():
    for package in ("snnc", "snnc.compiler", "snnc.frontends", "snnc.backends"):
        for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
            if not module.name.startswith(PEERS):
                importlib.import_module(module.name)
    found, open_ = [], [SnncError]
    while open_:
        kind = open_.pop()
        found.append(kind)
        open_ += kind.__subclasses__()
    return sorted({kind for kind in found if kind.__module__.startswith("snnc.")}, key=lambda kind: kind.code)


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
