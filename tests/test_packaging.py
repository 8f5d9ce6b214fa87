"""The wheel is complete, and its modules can be imported."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLACES = {"api": "snnc", **{part: f"snnc/{part}" for part in ("benchmarks", "compiler", "frontends", "backends", "templates")}}
NOT_INSTALLED = ("benchmarks/scripts",)
KINDS = {".jsonl", ".py", ".jinja", ".js", ".css", ".toml", ".typed", ".h", ".hpp", ".cu", ".cuh", ".cpp", ".cmake"}


def wanted():
    for folder, place in PLACES.items():
        for file in sorted((ROOT / folder).rglob("*")):
            inside = file.relative_to(ROOT / folder)
            if file.relative_to(ROOT).as_posix().startswith(NOT_INSTALLED):
                continue
            emulator = folder == "backends" and inside.parts[0] == "emulator" and len(inside.parts) > 2
            if file.is_file() and "__pycache__" not in inside.parts and (file.suffix in KINDS or file.name == "py.typed" or emulator):
                yield f"{place}/{inside.as_posix()}"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    checkout = tmp_path_factory.mktemp("checkout")
    for part in (*PLACES, "pyproject.toml", "README.md", "LICENSE"):
        source = ROOT / part
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, checkout / part, ignore=ignore) if source.is_dir() else shutil.copy(source, checkout)
    out = tmp_path_factory.mktemp("wheel")
    build = "import sys; from setuptools.build_meta import build_wheel; build_wheel(sys.argv[1])"  # what pip calls
    command = [sys.executable, "-c", build, str(out)]
    done = subprocess.run(command, cwd=checkout, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return next(out.glob("*.whl"))


def test_every_module_template_header_and_target_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = set(archive.namelist())
    assert [name for name in wanted() if name not in held] == []
    assert "snnc/py.typed" in held
    assert not [name for name in held if name.startswith("tests")]


def test_the_wheel_holds_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        held = [n for n in archive.namelist() if ".dist-info/" not in n]
    assert sorted(set(held) - set(wanted())) == []


@pytest.mark.wide
def test_every_module_of_a_fresh_install_imports(wheel, tmp_path):
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--quiet", "--target", str(tmp_path), str(wheel)]
    subprocess.run(command, check=True, timeout=120)
    script = """
import importlib, pkgutil, snnc
names = [m.name for m in pkgutil.walk_packages(snnc.__path__, "snnc.") if not m.name.startswith("snnc.benchmarks.cpu.engines.")]
for name in names:
    try: importlib.import_module(name)
    except ModuleNotFoundError as missing:
        if missing.name != "torch": raise
print(snnc.__file__, len(names))
"""
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    file, count = done.stdout.split()
    assert file.startswith(str(tmp_path))
    assert int(count) > 50


def test_the_version_is_the_same_everywhere():
    """pyproject.toml has it; the package asks its metadata, and .ci/release compares the command."""
    (version,) = re.findall(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.M)
    assert re.findall(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M) == [version]
    assert re.findall(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(), re.M)[0] == version
    assert not [f for f in (ROOT / "api").rglob("*.py") if f'"{version}"' in f.read_text()]


def test_every_package_is_listed_in_pyproject():
    text = (ROOT / "pyproject.toml").read_text()
    listed = set(re.findall(r'^    "(snnc[\w.]*)",$', text, re.M))
    found = {n.rpartition("/")[0].replace("/", ".") for n in wanted() if n.endswith("/__init__.py")}
    assert found == listed
