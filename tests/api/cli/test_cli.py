"""The command line: results on stdout, one line with a code on stderr for every error, no partial files."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.resources import files

import forked
import numpy as np
import pytest

import snnc
from snnc.cli import main as cli
from snnc.cli.compile_summary import plan_lines
from snnc.compiler.ir.plan_json import plan_from_json
from snnc.compiler.machines import load_target
from snnc.data import arrays

COMMANDS = ("compile", "run", "train", "check", "inspect", "targets", "doctor")


@pytest.fixture
def project(tmp_path):
    """A small network for the reference backend."""
    net = snnc.Sequential(6, snnc.Dense(5), snnc.LIF(beta=0.8), snnc.Dense(3), snnc.LI(), name="small")
    snnc.compile(net, loss="ce_mean_membrane", optimizer="adam:0.01", batch=10, output=tmp_path / "p").close()
    return tmp_path / "p"


@pytest.fixture
def data(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 30)
    x = (rng.random((30, 8, 6)) < 0.1 + 0.8 * (np.arange(6) // 2 == y[:, None, None])).astype(np.uint8)
    np.savez(tmp_path / "d.npz", x=x, y=y)
    np.savez(tmp_path / "x.npz", input=x.swapaxes(0, 1))
    return tmp_path / "d.npz"


def refused(capsys, arguments, code, exit_code=2):
    """Run a command that must fail with one coded line, and return the line."""
    assert cli.run_command([str(a) for a in arguments]) == exit_code
    captured = capsys.readouterr()
    lines = captured.err.strip().splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    assert len(errors) == 1, captured.err
    assert lines[-1].startswith(f"error: {code}"), captured.err
    assert "Traceback" not in captured.err
    assert captured.out == ""
    return errors[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name, capsys):
    assert cli.run_command([name, "--help"]) == 0
    assert f"Example: snnc {name}" in capsys.readouterr().out


def test_help_is_there_before_anyone_waits(command):
    done = command("--help")
    assert done.returncode == 0
    assert all(name in done.stdout for name in COMMANDS)
    # What takes long to load is not loaded.
    loaded = "import sys, snnc.cli.main; print([m for m in ('numpy', 'sympy', 'onnx', 'networkx', 'torch', 'jinja2') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_nobody_waits_for_the_mapping_who_has_no_tiles():
    loaded = (
        "import sys, snnc; snnc.compile; print([m for m in ('snnc.compiler.tiles', 'snnc.compiler.tiles.partition') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_version(capsys):
    assert cli.run_command(["--version"]) == 0
    assert capsys.readouterr().out.startswith("snnc 0.")


def test_targets_as_json(capsys):
    assert cli.run_command(["targets", "--json"]) == 0
    machines = {m["name"]: m for m in json.loads(capsys.readouterr().out)}
    assert machines["gc200"]["tiles_per_chip"] == 1472


def test_a_target_by_name_or_file_is_printed_with_its_sources(capsys, tmp_path):
    assert cli.run_command(["targets", "m2000"]) == 0
    text = capsys.readouterr().out
    (tmp_path / "copy.toml").write_text(text)
    assert load_target(tmp_path / "copy.toml") == load_target("m2000")
    assert cli.run_command(["targets", str(tmp_path / "copy.toml"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["chips"] == 4
    assert cli.run_command(["targets", "m3000"]) == 2
    assert "SNNC-E301" in capsys.readouterr().err


def test_the_list_of_targets_shows_the_main_numbers(capsys):
    assert cli.run_command(["targets"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("pod16"))
    for part in ("16", "23,552", "624 KiB", "14,352 MiB", "1.33 GHz", "4 B/cycle", "136 GB/s", "1,024 GiB"):
        assert part in line


@pytest.mark.wide
def test_a_network_that_does_not_fit_is_refused_with_what_helps_as_data(capsys, tmp_path):
    net = snnc.Sequential(20, snnc.Dense(50), snnc.LIF(), snnc.Dense(10), snnc.LI())
    snnc.write_onnx(net.graph(), tmp_path / "net.onnx")
    line = [
        "compile",
        str(tmp_path / "net.onnx"),
        "-o",
        str(tmp_path / "p"),
        "--target",
        "gc2",
        "--steps",
        "34000",
        "--loss",
        "ce_count",
        "--json",
    ]
    assert cli.run_command(line) == 2
    said = capsys.readouterr()
    error = json.loads(said.out)["error"]
    assert error["code"] == "SNNC-E313"
    assert error["text"] in said.err
    assert error["needed"] > error["available"] == 262144
    helps = error["knobs"][0]
    assert helps["fits"]
    more = [part for option in helps["options"].items() for part in option]
    assert cli.run_command([*line, *more]) == 0


def test_doctor_tells_what_is_missing_and_how_to_get_it(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert cli.run_command(["doctor", "--json"]) == 0
    found = {f["name"]: f for f in json.loads(capsys.readouterr().out)}
    assert not found["Poplar SDK"]["found"]
    assert "graphcore" in found["Poplar SDK"]["hint"]
    assert cli.run_command(["doctor"]) == 0
    assert "missing  Poplar SDK" in capsys.readouterr().out


def test_check_shows_equations_and_prints_pure_json(project, capsys):
    assert cli.run_command(["check", str(project)]) == 0
    assert "v[t] = 0.8 v[t-1] + i[t] - r[t]" in capsys.readouterr().out
    assert cli.run_command(["check", str(project), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [layer["neuron"] for layer in found["layers"]] == ["LIF", "LI"]


def test_run_writes_the_outputs_by_name(project, data, tmp_path, capsys):
    arguments = ["run", project, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz", "--json"]
    assert cli.run_command([str(a) for a in arguments]) == 0
    assert json.loads(capsys.readouterr().out)["outputs"] == {"output": [8, 30, 3]}
    with snnc.open(project) as session:
        wanted = session.run(np.load(tmp_path / "x.npz")["input"])["output"]
    assert (np.load(tmp_path / "y.npz")["output"] == wanted).all()


def test_train_lowers_the_loss_and_keeps_the_weights(project, data, tmp_path, capsys):
    arguments = ["train", str(project), "--data", str(data), "--epochs", "6", "--lr", "0.03", "--json"]
    assert cli.run_command(arguments) == 0
    losses = json.loads(capsys.readouterr().out)["loss"]
    assert len(losses) == 6
    assert losses[-1] < losses[0]
    assert cli.run_command(arguments) == 0
    assert json.loads(capsys.readouterr().out)["loss"][0] < losses[0]


def test_a_trained_project_runs_with_its_new_weights(project, data, tmp_path):
    run = ["run", str(project), "--inputs", str(tmp_path / "x.npz"), "--target", "reference", "--outputs"]
    assert cli.run_command([*run, str(tmp_path / "before.npz")]) == 0
    assert cli.run_command(["train", str(project), "--data", str(data)]) == 0
    assert cli.run_command([*run, str(tmp_path / "after.npz")]) == 0
    before, after = (np.load(tmp_path / f"{name}.npz")["output"] for name in ("before", "after"))
    assert (before != after).any()


def test_compile_prints_what_it_understood_the_plan_and_where_to_look_next(project, tmp_path, capsys):
    arguments = ["compile", str(project), "--steps", "9", "--batch", "4", "--loss", "ce_mean_membrane", "-o", str(tmp_path / "q")]
    assert cli.run_command(arguments) == 0
    out = capsys.readouterr().out
    assert "LIF, 5 neurons" in out
    assert "target    gc200: " in out
    assert f"snnc train {tmp_path / 'q'}" in out
    assert cli.run_command([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"]["steps"] == 9
    assert found["plan"]["training"]


def test_compile_with_run_compares_with_the_reference(project, tmp_path, capsys):
    arguments = ["compile", str(project), "--steps", "9", "--batch", "4", "-o", str(tmp_path / "q"), "--run", "--json"]
    assert cli.run_command(arguments) == 0
    assert json.loads(capsys.readouterr().out)["trial"]["largest_difference"] < 1e-5


def test_activity_is_measured_on_the_given_data(project, data, tmp_path, capsys):
    arguments = ["compile", str(project), "--steps", "8", "--data", str(data), "-o", str(tmp_path / "q"), "--json"]
    assert cli.run_command(arguments) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["activity"] == "measured on d.npz"


def test_a_gradient_window_is_kept_and_said(tmp_path, data, capsys):
    net = snnc.Sequential(6, snnc.Dense(900), snnc.LIF(beta=0.8), snnc.Dense(400), snnc.LIF(), snnc.Dense(3), snnc.LI(), name="wide")
    snnc.compile(net, loss="ce_mean_membrane", batch=10, output=tmp_path / "p").close()
    machine = (files("snnc.compiler.machines") / "gc200.toml").read_text()
    small = machine.replace('name = "gc200"', 'name = "small"').replace("tiles_per_chip = 1472", "tiles_per_chip = 100")
    (tmp_path / "small.toml").write_text(small)
    arguments = [
        "compile",
        str(tmp_path / "p"),
        "--target",
        str(tmp_path / "small.toml"),
        "--loss",
        "ce_mean_membrane",
        "--steps",
        "8",
        "--gradient-window",
        "-0.1",
        "--data",
        str(data),
    ]
    assert cli.run_command([*arguments, "-o", str(tmp_path / "r"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["plan"]["windowed_gradients"]
    told = "\n".join(plan_lines(plan_from_json((tmp_path / "r" / "plan.json").read_text())))
    assert re.search(r"gradients return in windows of \d+ of 900 neurons", told)
    assert all(row["entries"] <= row["width"] for row in found)
    assert json.loads((tmp_path / "r" / "model" / "options.json").read_text())["gradient_window"] == [-0.1, None]
    refused(capsys, ["compile", tmp_path / "p", "--gradient-window", "0.2,0.1", "-o", tmp_path / "s"], "SNNC-E")


FORMATS = {
    "html": b"<html",
    "svg": b"<svg",
    "png": b"PNG",
    "text": b"schedule",
    "json": b"{",
    "graphml": b"<graphml",
    "dot": b"digraph",
    "trace": b"traceEvents",
}


def test_inspect_draws_a_compiled_project(project, tmp_path, capsys):
    assert cli.run_command(["compile", str(project), "--steps", "9", "-o", str(tmp_path / "q")]) == 0
    for format_, holds in FORMATS.items():
        assert cli.run_command(["inspect", str(tmp_path / "q"), "--format", format_, "-o", str(tmp_path / f"report.{format_}")]) == 0
        assert holds in (tmp_path / f"report.{format_}").read_bytes()
    capsys.readouterr()
    refused(capsys, ["inspect", tmp_path / "q", "--format", "pdf"], "SNNC-E315")
    refused(capsys, ["inspect", tmp_path / "q", "--format", "svg", "--compare", tmp_path / "q"], "SNNC-E315")
    refused(capsys, ["inspect", tmp_path / "none.json"], "SNNC-E526")
    (tmp_path / "bad.json").write_text("[]")
    refused(capsys, ["inspect", tmp_path / "q", "--compare", tmp_path / "bad.json"], "SNNC-E314")
    (tmp_path / "q" / "model" / "recording.npz").write_bytes(b"PK")
    refused(capsys, ["inspect", tmp_path / "q"], "SNNC-E320")
    assert not (tmp_path / "q" / "report.html").exists()


def test_inspect_compares_two_projects_and_plans(project, tmp_path, capsys):
    for name, batch in (("a", 8), ("b", 16)):
        assert cli.run_command(["compile", str(project), "--steps", "9", "--batch", str(batch), "-o", str(tmp_path / name)]) == 0
    capsys.readouterr()
    assert cli.run_command(["inspect", str(tmp_path / "a"), "--compare", str(tmp_path / "b"), "--format", "text"]) == 0
    assert "times as fast" in capsys.readouterr().out
    assert cli.run_command(["inspect", str(tmp_path / "a" / "plan.json"), "--compare", str(tmp_path / "b" / "plan.json")]) == 0
    assert (tmp_path / "a" / "plan.comparison.html").read_text().count("compared") > 1
    assert cli.run_command(["inspect", str(tmp_path / "a")]) == 0
    assert sorted(p.name for p in (tmp_path / "a").glob("*.html")) == ["plan.comparison.html", "report.html"]


def test_dump_after_prints_the_graph_behind_a_pass(project, tmp_path, capsys):
    assert cli.run_command(["compile", str(project), "-o", str(tmp_path / "q"), "--dump-after", "merge-linear"]) == 0
    assert json.loads(capsys.readouterr().out)["after"] == "merge-linear"
    assert not (tmp_path / "q").exists()


def test_another_target_runs_the_weights_of_a_trained_project(project, data, tmp_path, capsys):
    assert cli.run_command(["train", str(project), "--data", str(data)]) == 0
    for target in ("reference", "cpu"):
        arguments = ["run", project, "--target", target, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / f"{target}.npz"]
        assert cli.run_command([str(a) for a in arguments]) == 0
    again = ["compile", project, "--target", "reference", "-o", tmp_path / "q"]
    assert cli.run_command([str(a) for a in again]) == 0
    arguments = ["run", tmp_path / "q", "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "again.npz"]
    assert cli.run_command([str(a) for a in arguments]) == 0
    a, b, c = (np.load(tmp_path / f"{name}.npz")["output"] for name in ("reference", "cpu", "again"))
    np.testing.assert_allclose(a, b, atol=1e-5)
    assert (a == c).all()


# ---- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["fly"], "fly"),
        (["run"], "MODEL"),
        (["run", "x.onnx"], "--inputs"),
        (["targets", "--yaml"], "--yaml"),
        (["train", "p", "--data", "d.npz", "--epochs", "many"], "--epochs"),
    ],
)
def test_a_wrong_command_line_is_one_coded_line(capsys, arguments, says):
    assert says in refused(capsys, arguments, "SNNC-E520")


def test_a_missing_model_and_a_folder_that_is_no_project(capsys, tmp_path, data):
    files = ["--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"]
    refused(capsys, ["run", tmp_path / "none.onnx", *files], "SNNC-E201")
    refused(capsys, ["run", tmp_path, *files], "SNNC-E526")
    refused(capsys, ["train", tmp_path, "--data", data], "SNNC-E526")
    refused(capsys, ["inspect", tmp_path], "SNNC-E526")


def test_kinds_of_models_that_are_not_read(capsys, tmp_path, data, root):
    files = ["--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"]
    (tmp_path / "model.pt").write_bytes(b"PK\x03\x04 not a model of snnc")
    refused(capsys, ["run", tmp_path / "model.pt", *files], "SNNC-E201")
    refused(capsys, ["run", root / "examples" / "digits" / "digits.onnx", *files, "--dialect", "norse"], "SNNC-E527")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"y": np.zeros((8, 2, 6))}, "SNNC-E502"),
        ({"input": np.zeros((8, 2, 5))}, "SNNC-E503"),
        ({"input": np.zeros((8, 0, 6))}, "SNNC-E503"),
        ({"input": np.full((8, 2, 6), np.nan)}, "SNNC-E505"),
        ({"input": np.full((8, 2, 6), 0.5)}, "SNNC-E507"),
        ({"input": np.array([[{}]])}, "SNNC-E522"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_and_nothing_is_written(capsys, project, tmp_path, given, code):
    np.savez(tmp_path / "x.npz", **given)
    refused(capsys, ["run", project, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"], code)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["p", "x.npz"]


def test_training_data_that_do_not_fit(capsys, project, data, tmp_path):
    x, y = np.load(data)["x"], np.load(data)["y"]
    for given, code in (({"x": x}, "SNNC-E523"), ({"x": x, "y": y + 1}, "SNNC-E506"), ({"x": x[:, :, :2], "y": y}, "SNNC-E503")):
        np.savez(tmp_path / "bad.npz", **given)
        refused(capsys, ["train", project, "--data", tmp_path / "bad.npz"], code)
    refused(capsys, ["train", project, "--data", data, "--epochs", 0], "SNNC-E519")
    assert not (project / "model" / "trained.safetensors").exists()


def test_outputs_that_cannot_be_written(capsys, project, data, tmp_path):
    (tmp_path / "file").touch()
    refused(capsys, ["run", project, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "file" / "y.npz"], "SNNC-E525")
    refused(capsys, ["run", project, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "p"], "SNNC-E525")
    refused(capsys, ["compile", project, "-o", tmp_path / "file"], "SNNC-E414")
    refused(capsys, ["compile", project, "-o", tmp_path], "SNNC-E414")
    refused(capsys, ["compile", project, "--target", "reference", "-o", tmp_path / "file" / "q"], "SNNC-E412")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["d.npz", "file", "p", "x.npz"]


def test_a_disk_that_fills_up_while_compiling_leaves_nothing(capsys, project, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("snnc.driver.folder.save_graph", full)
    assert "no space" in refused(capsys, ["compile", project, "--target", "reference", "-o", tmp_path / "q"], "SNNC-E413")
    assert [p.name for p in tmp_path.iterdir()] == ["p"]


def test_options_out_of_range(capsys, project, tmp_path):
    for option, value, code in (
        ("--batch", "0", "SNNC-E528"),
        ("--steps", "-3", "SNNC-E528"),
        ("--loss", "huber", "SNNC-E016"),
        ("--surrogate", "hat", "SNNC-E103"),
        ("--mode", "lossy", "SNNC-E528"),
        ("--dump-after", "lunch", "SNNC-E017"),
    ):
        refused(capsys, ["compile", project, "-o", tmp_path / "q", option, value], code)
    refused(capsys, ["compile", project, "-o", tmp_path / "q"], "SNNC-E530")
    assert not (tmp_path / "q").exists()


def test_a_fault_of_snnc_is_one_line_too(capsys, project, monkeypatch):
    def broken(*_, **__):
        raise ZeroDivisionError("in the\nmiddle")

    monkeypatch.setattr("snnc.understanding.describe.describe", broken)
    assert "please report" in refused(capsys, ["check", project], "SNNC-E599")
    monkeypatch.setenv("SNNC_DEBUG", "1")
    assert cli.run_command(["check", str(project)]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_too_little_memory_is_said(capsys, project, monkeypatch):
    def greedy(*_, **__):
        raise MemoryError

    monkeypatch.setattr("snnc.understanding.describe.describe", greedy)
    refused(capsys, ["check", project], "SNNC-E531")


def test_ctrl_c_ends_quietly(tmp_path, project, data):
    def wait(_):
        print("ready", flush=True)
        time.sleep(60)

    line = ["run", project, "--inputs", tmp_path / "x.npz", "--outputs", tmp_path / "y.npz"]
    process = forked.command(*line, prepare=lambda: setattr(arrays, "read_arrays", wait))
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 130
    assert err == "error: interrupted.\n"


def test_a_reader_that_goes_away_is_no_error(project):
    reader, stdout = os.pipe()
    os.close(reader)
    _, err = forked.command("check", project, "--json", stdout=stdout).communicate()
    os.close(stdout)
    assert err == ""


def test_a_full_terminal_is_an_error_and_no_traceback(project):
    with open("/dev/full", "w") as full:
        process = forked.command("check", project, "--json", stdout=full.fileno())
        _, err = process.communicate()
    assert process.returncode == 2
    assert "SNNC-E525" in err
    assert "Traceback" not in err


def test_the_only_input_may_be_called_x():
    from snnc.session import with_input_name

    x = np.zeros(3)
    assert with_input_name({"x": x, "v": x}, ["input"]).keys() == {"input", "v"}
    assert with_input_name({"x": x}, ["a", "b"]).keys() == {"x"}
    assert with_input_name({"x": x, "input": x}, ["input"]).keys() == {"x", "input"}


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "snnc", "--version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (0, "snnc")
