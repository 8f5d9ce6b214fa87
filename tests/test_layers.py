"""The import contracts of pyproject.toml hold."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_imports_point_one_way(tmp_path):
    shutil.copytree(ROOT / "api", tmp_path / "snnc")
    for part in ("benchmarks", "compiler", "frontends", "backends", "templates"):
        shutil.copytree(ROOT / part, tmp_path / "snnc" / part)
    command = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    done = subprocess.run(
        [sys.executable, "-P", "-c", command, "--config", str(ROOT / "pyproject.toml"), "--no-cache"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "0 broken" in done.stdout


def test_the_compiler_imports_no_file_format_and_no_framework():
    foreign = ("onnx", "torch", "nir", "jinja2", "typer", "rich")
    lines = [(f, line) for f in (ROOT / "compiler").rglob("*.py") for line in f.read_text().splitlines()]
    bad = [f"{f}: {line}" for f, line in lines if line.split()[:1] in (["import"], ["from"]) and line.split()[1].split(".")[0] in foreign]
    assert bad == []
