"""The scripts that run the tests elsewhere report what is missing, and request the right packages from pip."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from functools import partial
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CI = ROOT / ".ci"
SPEC = importlib.util.spec_from_file_location("touched", CI / "touched.py")
TOUCHED = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(TOUCHED)


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


@pytest.mark.skipif(os.geteuid() != 0, reason="containers are only built by root")
def test_containers_without_a_base_leave_nothing(tmp_path):
    for name in ("podman", "runc", "debootstrap"):
        stand_in(tmp_path / "bin", name, "exit 1")
    done = script(CI / "containers", "cpu", PATH=stand_in(tmp_path / "bin", "unshare", "exit 1"), TMPDIR=str(tmp_path))
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot be pulled here" in done.stderr
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


EMITTED = ["tests/end_to_end", "tests/golden"]


@pytest.mark.parametrize(
    ("file", "tests"),
    [
        ("compiler/tiles/exchange/anything.py", ["tests/compiler/tiles/exchange", "tests/backends/poplar", *EMITTED]),
        ("compiler/neurons/library/lif.py", ["tests/compiler/neurons", *EMITTED]),
        ("frontends/onnx/reading/model.py", ["tests/frontends/onnx", "tests/golden"]),
        ("templates/cuda/runtime/warp.cuh", ["tests/backends/cuda", *EMITTED]),
        ("templates/report/page.html.jinja", ["tests/api/report", *EMITTED]),
        ("tests/api/cli/test_cli.py", ["tests/api/cli/test_cli.py"]),
        ("tests/common/quick.py", ["tests/test_quick.py"]),
        ("examples/papers/papers.py", ["tests/test_examples.py"]),
        ("docs/index.md", []),
        ("compiler/tiles/README.md", []),
        ("benchmarks/results/a.json", [f"tests/benchmarks/{t.name}" for t in sorted((ROOT / "tests/benchmarks").glob("test_*.py"))]),
    ],
)
def test_a_changed_file_has_the_tests_of_its_room(file, tests):
    assert TOUCHED.touched([file], ROOT) == tests


def test_every_room_of_the_code_has_tests():
    for folder in ("api", "frontends", "compiler", "backends"):
        for module in (ROOT / folder).rglob("*.py"):
            assert TOUCHED.tests_of(module.relative_to(ROOT).as_posix(), ROOT), module


def test_what_is_inside_another_path_is_left_out_and_the_rooms_of_a_change_come_first():
    found = TOUCHED.touched(["compiler/tiles/mapper.py", "compiler/tiles/exchange/x.py", "api/cli/main.py"], ROOT)
    assert found == ["tests/compiler/tiles", "tests/api/cli", "tests/backends/poplar", *EMITTED]


@pytest.fixture
def checkout(tmp_path):
    """A repository with one commit that holds what .ci/wide needs; `git` runs git in it."""
    for name in ("wide", "touched.py"):
        (tmp_path / ".ci").mkdir(exist_ok=True)
        shutil.copy(CI / name, tmp_path / ".ci")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_one.py").write_text("def test_one():\n    pass\n")
    (tmp_path / "tests" / "test_two.py").write_text("def test_two():\n    pass\n")

    def git(*words):
        identity = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch", "main")
    git("add", ".")
    git("commit", "--message", "first")
    return tmp_path, git


def test_wide_cases_need_a_history(tmp_path, checkout):
    done = script(checkout[0] / ".ci" / "wide")
    assert (done.returncode, done.stdout) == (3, "")
    assert "one commit only" in done.stderr.splitlines()[-1]
    assert script(checkout[0] / ".ci" / "wide", PATH=stand_in(tmp_path / "bin", "git", "exit 128")).returncode == 3


def test_examples_and_wide_cases_of_the_last_commit_on_main_or_of_a_whole_branch_run(checkout):
    folder, git = checkout
    arguments = stand_in(folder / "bin", "python", 'case $1 in .ci*) exec python3 "$@" ;; esac; echo "$@"')
    run = partial(script, folder / ".ci" / "wide", PATH=arguments, PYTHON=str(folder / "bin" / "python"), WIDE_SECONDS="7")
    (folder / "tests" / "test_two.py").write_text("def test_two():\n    assert 1\n")
    git("commit", "--all", "--message", "second")
    assert run().stdout.splitlines()[-1] == "-m pytest -n 2 -q --wide --budget 7 tests/test_examples.py tests/test_two.py"
    git("switch", "--create", "branch")
    for name in ("one", "two"):
        (folder / "tests" / f"test_{name}.py").write_text(f"def test_{name}():\n    assert 2\n")
        git("commit", "--all", "--message", name)
    assert run().stdout.splitlines()[-1].endswith("--budget 7 tests/test_examples.py tests/test_one.py tests/test_two.py")


def test_all_examples_run_where_nothing_that_changed_has_tests(checkout):
    folder, git = checkout
    arguments = stand_in(folder / "bin", "python", 'case $1 in .ci*) exec python3 "$@" ;; esac; echo "$@"')
    (folder / "page.md").write_text("a page\n")
    git("add", "--all")
    git("commit", "--message", "page")
    done = script(folder / ".ci" / "wide", PATH=arguments, PYTHON=str(folder / "bin" / "python"))
    assert done.stdout.splitlines()[-1].rstrip() == "-m pytest -n 2 -q --wide --budget 1020 tests/test_examples.py"


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
