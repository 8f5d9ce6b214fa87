"""The shell's completion of commands and options."""

import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-c", "from snnc.cli.main import main; main()"]


def snnc(*arguments, **environment):
    env = {**os.environ, **environment}
    done = subprocess.run([*COMMAND, *arguments], env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.split()


@pytest.mark.parametrize(("typed", "offered"), [("snnc comp", ["compile"]), ("snnc compile --tar", ["--target"])])
def test_what_is_typed_is_completed(typed, offered):
    words = typed.split()
    asked = {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    assert snnc(**asked, _SNNC_COMPLETE="complete_bash") == offered


def test_it_is_installed_for_a_shell(tmp_path):
    snnc("--install-completion", "bash", HOME=str(tmp_path), _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    (script,) = tmp_path.rglob("snnc.sh")
    assert "_SNNC_COMPLETE" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()
