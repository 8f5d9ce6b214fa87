"""The backend of docs/extending.md, one file and one line, compiles, runs and refuses; its code comes from the page."""

import pytest
from extended import extended, section, tried


@pytest.fixture(scope="module")
def added():
    return section("A backend")


@pytest.fixture(scope="module")
def place(added, tmp_path_factory):
    return extended(tmp_path_factory.mktemp("toy"), added.files)


@pytest.fixture(scope="module")
def said(added, place):
    """What the code of the page, the commands and a wrong name print; one process runs all."""
    return tried(place, "\nprint('---')\n".join((added.tried, COMMANDS, MISSPELT))).split("---\n")


def test_it_touches_one_new_file_and_the_registry(added):
    assert set(added.files) == {"backends/script.py", "backends/registry.py"}


def test_it_agrees_with_the_reference_and_refuses_what_it_does_not_take(said):
    refused = said[0].splitlines()
    assert [line.split(":")[0] for line in refused] == ["SNNC-E499", "SNNC-E552"]
    assert "a loss" in refused[0]
    assert refused[1].startswith("SNNC-E552: threads = 2 is for the targets cpu, not for 'script'")


@pytest.mark.usefixtures("said")
def test_its_script_runs_without_snnc(place):
    code = "import sys, numpy as np, runpy; run = runpy.run_path('project/forward.py')['forward']; w = np.load('project/weights.npz'); "
    code += "print(run(w, {'x0': np.ones((7, 2, 6), np.float32)})['y0'].shape, 'snnc' in sys.modules)"
    assert tried(place, code).strip() == "(7, 2, 3) False"


COMMANDS = """
import snnc
from snnc.backends.registry import backend_of
from snnc.cli.main import run_command
from snnc.options.table import RULES, support_of
assert run_command(["targets"]) == 0
snnc.write_onnx(snnc.Sequential(4, snnc.Dense(3), snnc.LI()).graph(), "m.onnx")
assert run_command(["compile", "m.onnx", "--target", "script", "-o", "p", "--run", "--steps", "5"]) == 0
print("supports", *(name for name in RULES if support_of(name, backend_of("script")) == "yes"))
"""


def test_commands_know_it(said):
    assert "script     a NumPy script" in said[1]
    assert "largest difference from the reference: 0" in said[1]
    assert said[1].splitlines()[-1] == "supports batch steps loss dt detach input_kind"


MISSPELT = """
try:
    snnc.compile(snnc.Sequential(4, snnc.Dense(3), snnc.LI()), "scrip", steps=3)
except snnc.SnncError as error:
    print(error)
"""


def test_a_name_that_is_nearly_its_own_is_understood(said):
    assert "Did you mean 'script'?" in said[2]
