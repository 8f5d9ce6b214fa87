"""The program that writes the pages of docs/reference."""

import importlib.util
from pathlib import Path


def reference():
    page = Path(__file__).parents[2] / "docs" / "reference" / "make_reference.py"
    spec = importlib.util.spec_from_file_location("make_reference", page)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
