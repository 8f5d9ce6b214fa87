"""Shell completion of commands, options and the names of targets."""

import os
import subprocess
import sys

import pytest

from snnc.cli import main as cli


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        (["snnc", "c"], {"check", "clean", "compile", "convert"}),
        (["snnc", "comp"], {"compile"}),
        (["snnc", "compile", "--tar"], {"--target"}),
        (["snnc", "compile", "--gradient"], {"--gradient-window"}),
        (["snnc", "compile", "m.onnx", "--target", "g"], {"gc2", "gc200"}),
        (["snnc", "run", "build", "--target", "ref"], {"reference"}),
    ],
)
def test_the_shell_completes(typed, wanted, monkeypatch, capsys):
    words = {"_SNNC_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(typed), "COMP_CWORD": str(len(typed) - 1)}
    for name, value in words.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as ended:
        cli.run_command([])
    assert ended.value.code == 0
    assert set(capsys.readouterr().out.split()) == wanted


def test_it_is_installed_for_a_shell(tmp_path):
    command = [sys.executable, "-c", "from snnc.cli.main import main; main()", "--install-completion", "bash"]
    env = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=True)
    (script,) = tmp_path.rglob("snnc.sh")
    assert "_SNNC_COMPLETE" in script.read_text()
    assert str(script) in (tmp_path / ".bashrc").read_text()
