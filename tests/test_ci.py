"""The scripts that run the tests elsewhere say what they lack, and ask pip for what they should."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CI = ROOT / ".ci"


def script(path, *arguments, **environment):
    return subprocess.run(
        [str(path), *arguments], env={**os.environ, **environment}, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )


def stand_in(folder, name, text):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_the_newest_packages_are_not_tried_without_root(tmp_path):
    done = script(CI / "newest", PATH=stand_in(tmp_path / "bin", "id", "echo 1000"), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot run here: it has to be root" in done.stderr


def test_the_newest_packages_are_not_tried_where_nothing_may_be_mounted(tmp_path):
    for name, text in (("id", "echo 0"), ("debootstrap", "exit 1")):
        stand_in(tmp_path / "bin", name, text)
    done = script(CI / "newest", PATH=stand_in(tmp_path / "bin", "unshare", "exit 1"), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "may not mount" in done.stderr


def test_a_root_that_cannot_be_made_leaves_nothing(tmp_path):
    for name, text in (("id", "echo 0"), ("debootstrap", "exit 1")):
        stand_in(tmp_path / "bin", name, text)
    path = stand_in(tmp_path / "bin", "unshare", "[ $# = 4 ] || { echo 'E: no such suite'; exit 1; }")
    done = script(CI / "newest", PATH=path, TMPDIR=str(tmp_path))
    assert done.returncode == 3
    assert "E: no such suite" in done.stderr
    assert "debootstrap trixie failed" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["bin"]


def test_the_oldest_packages_need_the_oldest_python(tmp_path):
    for name in ("python3", "python3.11"):
        path = stand_in(tmp_path / "bin", name, "exit 1")
    done = script(CI / "oldest", PATH=path, PYTHON="")
    assert done.returncode == 3
    assert "there is no Python 3.11" in done.stderr


def test_the_lowest_versions_are_those_that_are_declared():
    done = subprocess.run([sys.executable, CI / "lowest.py"], cwd=ROOT, capture_output=True, text=True, check=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for line in [*project["dependencies"], *extras["test"], *extras["partition"]]:
        assert line.replace(">=", "==") in done.stdout.splitlines()


def test_the_representative_tests_exist():
    names = (CI / "representative").read_text().split()
    assert len(names) > 10
    assert [name for name in names if not (ROOT / name).is_file()] == []


@pytest.fixture
def settings(tmp_path):
    """Ask how pip is set up, with the variables given and a configuration file of its own."""
    (tmp_path / "wheels").mkdir()
    (tmp_path / "index" / "simple").mkdir(parents=True)
    (tmp_path / "pip.conf").write_text(
        f"[global]\nfind-links = {tmp_path}/wheels\nextra-index-url =\n  file://{tmp_path}/index/simple\n  https://user's.example/simple\n"
    )

    def ask(what, **environment):
        kept = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
        kept |= {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), **environment}
        command = [sys.executable, CI / "pip_settings.py", what]
        return subprocess.run(command, env=kept, capture_output=True, text=True, check=True).stdout

    return ask


def test_pip_elsewhere_is_set_up_as_here(settings, tmp_path):
    text = settings("environment", PIP_TIMEOUT="7", PIP_TARGET="/nowhere", HTTPS_PROXY="http://proxy.example:1", SNNC_CACHE="x")
    done = subprocess.run(["env", "-i", "sh", "-c", f"{text}\nenv"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert f"PIP_FIND_LINKS={tmp_path}/wheels" in done
    assert f"PIP_EXTRA_INDEX_URL=file://{tmp_path}/index/simple https://user's.example/simple" in done
    assert {"PIP_TIMEOUT=7", "HTTPS_PROXY=http://proxy.example:1"} <= set(done)
    assert not [line for line in done if line.startswith(("PIP_TARGET", "PIP_CONFIG_FILE", "SNNC_CACHE"))]


def test_folders_of_wheels_and_indices_are_taken_along(settings, tmp_path):
    found = settings("paths", PIP_CERT=str(tmp_path / "pip.conf"), PIP_INDEX_URL="file:///not/there/simple").splitlines()
    assert {f"{tmp_path}/wheels", f"{tmp_path}/index", f"{tmp_path}/pip.conf"} <= set(found)
    assert [path for path in found if not Path(path).exists()] == []
