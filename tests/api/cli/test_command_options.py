"""Every option of every command has its effect, or is refused where it would have none."""

import importlib
import inspect
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import typer
from option_cells import CORPUS, dense

import snnc
from snnc.cli import main as cli
from snnc.compiler.errors import SnncError
from snnc.options.compile_options import options
from snnc.options.table import RULES

STEP = CORPUS / "snntorch_step_leaky_ts.onnx"
NIR = CORPUS / "hand_nir_lif.nir"
OPTIONS, GRAPH, EXPLORE = "snnc.options.compile_options:options", "snnc.driver.converting:graph_for", "snnc.exploring:explore_graph"
FIRST_FIGURE = "memory             Memory of one IPU by category (arXiv 2311.04386)"
ESTIMATE, VERIFY, FIT = "snnc.driver.estimating:estimate_graph", "snnc.checks.verifying:verify", "snnc.session:Session.fit"
ON_GPU = "snnc.benchmarks.cuda.command:run_suite"
COMMANDS, REPRODUCE = "snnc.cli.commands", "snnc.benchmarks.reproduce.command:reproduce"
SUITE, RUN, BUILD, EMULATE = (
    "snnc.benchmarks.cpu.command:run_suite",
    "snnc.driver.compiling:session_for",
    "snnc.backends.emulator.emulate:build_program",
    "snnc.backends.emulator.emulate:run_program",
)
MODEL = {"compile": ["STEP", "-o", "q"], "explore": ["STEP"], "check": ["STEP"], "convert": ["STEP", "new.onnx"], "verify": ["STEP"]}
MODEL |= {"run": ["STEP", "--inputs", "x.npz", "--outputs", "y.npz"], "train": ["p", "--data", "x.npz"], "inspect": ["p"]}
HEADS = {
    **{("compile", name): ["STEP"] for name in ("output", "estimate_only", "strategy", "activity")},
    ("bench", "suite"): [],
    ("bench", "ways"): ["--suite", "cuda"],
    ("bench", "first_step"): ["--suite", "cuda"],
    ("bench", "precision"): ["--suite", "cuda"],
    ("bench", "resume"): ["--suite", "cuda", "--json", "rows.json"],
    ("emulate", "prefix"): [],
    ("reproduce", "only"): [],
    ("run", "inputs"): ["STEP", "--outputs", "y.npz"],
    ("run", "outputs"): ["p", "--inputs", "in.npz"],
    ("train", "data"): ["p"],
}
"""What stands in front of an option, where the other one does not."""
MODEL |= {"bench": ["--suite", "cpu"], "emulate": ["host.cpp"], "doctor": [], "targets": [], "clean": [], "reproduce": ["--only", "memory"]}


class Reached(SnncError):
    """What a command calls is reached."""

    code = "SNNC-E000"


@dataclass(frozen=True)
class To:
    """An option that is handed to a function: as text, to what, under which name, as what."""

    text: str
    place: str
    name: str
    value: Any
    beside: tuple[str, ...] = ()


def conversion(name, value):
    return To(str(value), GRAPH, "conversion", (name, value), ("--ann2snn", "--calibration", "x.npz"))


CONVERTED = {
    "ann2snn": To("", GRAPH, "conversion", ("requested", True), ("--calibration", "x.npz")),
    "calibration": To("x.npz", GRAPH, "conversion", ("calibration", "x.npz"), ("--ann2snn",)),
    "percentile": conversion("percentile", 99.0),
}
FILE = {"dt": To("1e-3", GRAPH, "dt", 1e-3), "dialect": To("norse", GRAPH, "dialect", "norse")}
DETACH = {"detach": To("none", GRAPH, "detach", "none")}
KIND = {"input_kind": To("spikes", GRAPH, "input_kind", "spikes")}
LOSS = ("--loss", "ce_count")
SAME: dict[str, To] = {
    "batch": To("7", OPTIONS, "batch", 7),
    "steps": To("7", OPTIONS, "steps", 7),
    "loss": To("ce_rate", OPTIONS, "loss", "ce_rate"),
    "loss_output": To("a.b", OPTIONS, "loss_output", "a.b", LOSS),
    "optimizer": To("sgd", OPTIONS, "optimizer", "sgd", LOSS),
    "surrogate": To("atan:3", OPTIONS, "surrogate", "atan:3", LOSS),
    "capacity": To("5 %", OPTIONS, "capacity", "5 %"),
    "mode": To("drop", OPTIONS, "mode", "drop"),
}
PASSED: dict[str, dict[str, To]] = {
    "compile": {
        **SAME,
        **CONVERTED,
        **FILE,
        **DETACH,
        **KIND,
        "target": To("bow", OPTIONS, "target", "bow"),
        "lr": To("0.5", OPTIONS, "lr", 0.5, LOSS),
        "loss_scale": To("dynamic", OPTIONS, "loss_scale", "dynamic", ("--target", "cpu", *LOSS)),
        "learnable": To("beta", OPTIONS, "learnable", "beta", LOSS),
        "overwrite": To("", "snnc.driver.compiling:compile_to_folder", "overwrite", True, ("--target", "reference")),
        "gradient_window": To("-0.5", OPTIONS, "gradient_window", "-0.5", LOSS),
        "parts": To("3", OPTIONS, "parts", 3),
        "recompute": To("3", OPTIONS, "recompute", "3", LOSS),
        "streaming": To("inputs", OPTIONS, "streaming", "inputs", LOSS),
        "memory": To("5M", OPTIONS, "memory", "5M", ("--target", "cpu")),
        "threads": To("3", OPTIONS, "threads", 3, ("--target", "cpu")),
        "truncate": To("3", OPTIONS, "truncate", 3, ("--target", "cpu", *LOSS)),
        "input_gradients": To("", OPTIONS, "input_gradients", True, ("--target", "poptorch", *LOSS)),
        "precision": To("bfloat16", OPTIONS, "precision", "bfloat16", ("--target", "cpu")),
        "half": To("weights:stochastic,history", OPTIONS, "half", "weights:stochastic,history", ("--target", "reference", *LOSS)),
        "drop": To("random", OPTIONS, "drop", "random", ("--target", "cpu", "--mode", "drop", "--capacity", "3")),
        "calibrate": To("x.npz", OPTIONS, "calibrate", "x.npz"),
        "seed": To("5", OPTIONS, "seed", 5),
        "run": To("", OPTIONS, "trial", True),
        "dump_after": To("merge-linear", "snnc.cli.compile_summary:graph_data", "after", "merge-linear"),
        "output": To("there", "snnc.driver.compiling:compile_to_folder", "folder", "there", ("--target", "reference")),
        "estimate_only": To("", ESTIMATE, "strategy", "snnc"),
        "strategy": To("linear", ESTIMATE, "strategy", "linear", ("--estimate-only",)),
        "activity": To("0.5", ESTIMATE, "activity", 0.5, ("--estimate-only",)),
    },
    "explore": {
        **{name: to for name, to in SAME.items() if name != "batch"},
        **{name: replace(to, place="snnc.driver.loading:as_graph") for name, to in (FILE | DETACH | KIND).items()},
        "batch": To("7,8", EXPLORE, "batches", [7, 8]),
        "targets": To("bow,gc2", EXPLORE, "targets", ["bow", "gc2"]),
        "activity": To("0.5", EXPLORE, "activities", [0.5]),
        "strategy": To("linear", EXPLORE, "strategy", "linear"),
        "plot": To("f.svg", "snnc.data.whole_files:write_text", "path", "f.svg", ("--targets", "gc200", "--steps", "5")),
        "json_file": To("f.json", "snnc.cli.commands.explore:write_json", "file", "f.json", ("--targets", "gc200", "--steps", "5")),
    },
    "check": {
        **CONVERTED,
        **FILE,
        **DETACH,
        **KIND,
        "steps": conversion("steps", 7),
        "data": To("x.npz", "snnc.checks.measure:measure", "data", "x.npz"),
    },
    "convert": {
        **CONVERTED,
        **FILE,
        **DETACH,
        "steps": To("7", GRAPH, "steps", 7),
        "form": To("functions", "snnc.cli.commands.convert:writer_for", "form", "functions"),
    },
    "run": {
        **CONVERTED,
        **FILE,
        "steps": conversion("steps", 7),
        "target": To("cpu", RUN, "target", "cpu"),
        "seed": To("5", RUN, "seed", 5, ("--target", "gc200")),
        "inputs": To("x.npz", "snnc.data.arrays:read_arrays", "path", "x.npz"),
        "outputs": To("z.npz", "snnc.data.arrays:write_arrays", "path", "z.npz"),
        "record": To("2", "snnc.cli.common:check_recordable", "record", 2),
        "trust": To("", "snnc.cli.common:permitted", "trust", True),
    },
    "train": {
        "data": To("x.npz", "snnc.data.arrays:read_arrays", "path", "x.npz"),
        "epochs": To("3", FIT, "epochs", 3),
        "first_epoch": To("3", FIT, "first_epoch", 3),
        "lr": To("0.5", FIT, "learning_rate", 0.5),
        "capacity": To("linear:9,3,updates=4", FIT, "capacity", "linear:9,3,updates=4"),
        "gradient_window": To("-0.5 to 0.5", FIT, "gradient_window", "-0.5 to 0.5"),
        "accumulate": To("2", FIT, "accumulate", 2),
        "recipe": To("r.toml", "snnc.recipe:read_recipe", "path", "r.toml"),
        "validation": To("v.npz", "snnc.cli.train_data:data_names", "validation", "v.npz"),
        "bin_steps": To("7", "snnc.cli.train_data:data_names", "reading", ("steps", 7)),
        "bin_time": To("0.5", "snnc.cli.train_data:data_names", "reading", ("dt", 0.5)),
        "bin_duration": To("0.5", "snnc.cli.train_data:data_names", "reading", ("duration", 0.5)),
        "downsample": To("7", "snnc.cli.train_data:data_names", "reading", ("downsample", 7)),
        "polarity": To("merged", "snnc.cli.train_data:data_names", "reading", ("polarity", "merged")),
        "encoder": To("latency", "snnc.cli.train_data:data_names", "reading", ("encoder", "latency")),
        "metrics": To("top_2", FIT, "metrics", ["top_2"]),
        "monitor": To("accuracy", FIT, "monitor", "accuracy"),
        "patience": To("3", FIT, "patience", 3),
        "min_delta": To("0.5", FIT, "min_delta", 0.5),
        "best": To("b", FIT, "best", "b"),
        "restore_best": To("", FIT, "restore_best", True),
        "log": To("l.csv", FIT, "log", "l.csv"),
        "tensorboard": To("tb", FIT, "tensorboard", "tb"),
        "checkpoint_every": To("30s", "snnc.backends.training.saving.checkpoint:seconds_of", "duration", "30s"),
        "resume": To("", "snnc.project.resuming:settings_for", "resume", True),
        "seed": To("5", FIT, "seed", 5),
        "record": To("2", "snnc.session:Session.record_samples", "samples", 2),
        "time_kernels": To("", "snnc.session:Session.time_kernels", "self", ("timing", None)),
        "trust": To("", "snnc.cli.commands.train:permitted", "trust", True),
    },
    "verify": {
        "inputs": To("x.npz", VERIFY, "inputs", "x.npz"),
        "samples": To("3", VERIFY, "samples", 3),
        "steps": To("7", VERIFY, "steps", 7),
        "target": To("cpu", VERIFY, "target", "cpu"),
        "tolerance": To("0.1", VERIFY, "tolerance", 0.1),
        "seed": To("5", VERIFY, "seed", 5),
        "dt": To("1e-3", VERIFY, "dt", 1e-3),
        "dialect": To("norse", VERIFY, "dialect", "norse"),
        "trust": To("", "snnc.cli.commands.verify:permitted", "trust", True),
        "per_step": To("", "snnc.checks.verification:Verification.lines", "per_step", True),
    },
    "inspect": {
        "format_": To("json", "snnc.driver.reporting:report", "format", "json"),
        "compare": To("q", "snnc.driver.reporting:report", "other", "q"),
        "output": To("f.txt", "snnc.data.whole_files:whole_file", "path", "f.txt"),
    },
    "bench": {
        "suite": To("cuda", ON_GPU, "engines", []),
        "nets": To("w1-1", "snnc.benchmarks.cpu.workloads:workloads", "patterns", "w1-1"),
        "engines": To("snnc", SUITE, "engines", ["snnc"]),
        "rounds": To("3", SUITE, "rounds", 3),
        "threads": To("3", SUITE, "threads", 3),
        "ways": To("all", ON_GPU, "options", ("ways", "all")),
        "first_step": To("5", ON_GPU, "options", ("first_step_s", 5.0)),
        "precision": To("tf32,float16", ON_GPU, "options", ("precisions", ("tf32", "float16"))),
        "resume": To("", ON_GPU, "options", ("resumed", "rows.json")),
        "json_file": To("f.json", "snnc.cli.commands.bench:write_json", "file", "f.json"),
        "plot": To("f.svg", "snnc.data.whole_files:write_text", "path", "f.svg"),
        "listing": To("", "snnc.cli.commands.bench:result", "text", "w1-1"),
    },
    "reproduce": {
        "output": To("pages", REPRODUCE, "folder", "pages"),
        "only": To("memory", REPRODUCE, "only", "memory"),
        "quick": To("", REPRODUCE, "quick", True),
        "resume": To("", REPRODUCE, "resume", True),
        "listing": To("", f"{COMMANDS}.reproduce:result", "text", FIRST_FIGURE),
    },
    "emulate": {
        "include": To("inc", BUILD, "include", ["inc"]),
        "define": To("A=1", BUILD, "define", ["A=1"]),
        "flag": To("-lm", BUILD, "flags", ["-lm"]),
        "sanitize": To("address", BUILD, "sanitize", "address"),
        "ipu": To("ipu1", EMULATE, "ipu", "ipu1"),
        "check_bounds": To("", EMULATE, "checks", ("bounds", True)),
        "check_undefined": To("", EMULATE, "checks", ("undefined", True)),
        "check_workers": To("", EMULATE, "checks", ("workers", True)),
        "lenient_memory": To("", EMULATE, "checks", ("lenient_memory", True)),
        "profile": To("f.json", EMULATE, "checks", ("profile", "f.json")),
        "output": To("prog", f"{COMMANDS}.emulate:refuse_without_effect", "option", "-o, which copies the program and does not run it"),
        "prefix": To("", "snnc.backends.emulator.build:complete_prefix", "", None),
    },
    "clean": {
        "cache": To("", "snnc.project.cleaning:in_cache", "", None),
        "leftovers": To("", "snnc.project.cleaning:left_over", "", None),
        "dry_run": To("", "snnc.cli.commands.clean:result", "text", "0 bytes would be freed; nothing was deleted", ("--leftovers",)),
    },
    "doctor": {},
    "targets": {},
}
"""Of every command, every option but --json: see :func:`test_every_option_of_every_command_has_a_cell`."""
REFUSED: dict[str, list[tuple[str, str]]] = {
    "E552": [
        "compile STEP -o q --target cpu --data x.npz",
        "compile STEP --estimate-only --target cpu --data x.npz",
        "compile STEP -o q --target poptorch --loss ce_count --loss-scale 1024",
        "run STEP --inputs x.npz --outputs y.npz --seed 5",
        "run p --inputs x.npz --outputs y.npz --seed 5",
        "run p --inputs x.npz --outputs y.npz --seed 5 --target cpu",
    ],
    "E553": [
        "compile STEP -o q --lr 0.1",
        "compile STEP -o q --learnable beta",
        "compile STEP -o q --optimizer adam",
        "compile STEP -o q --target cpu --truncate 3",
        "compile STEP -o q --target cpu --seed 3",
        "explore STEP --surrogate atan",
        "explore STEP --loss-output v",
    ],
    "E554": [
        "compile STEP -o q --estimate-only",
        "compile STEP -o q --target reference --mode drop",
        "compile STEP -o q --target cuda --mode drop",
        "compile STEP -o q --target gc200 --mode drop --drop random",
        "compile STEP -o q --target cpu --capacity 3",
        "compile STEP --dump-after merge-linear --run",
        "compile STEP --dump-after merge-linear --estimate-only",
        "compile STEP --estimate-only --strategy linear --parts 2 --steps 5",
        "compile STEP -o q --loss ce_count --optimizer adam:0.1 --lr 0.2",
        "compile STEP -o q --target cpu --loss ce_count --optimizer adam:loss_scale=8 --loss-scale dynamic",
        "compile STEP --estimate-only --overwrite",
        "verify STEP --inputs x.npz --steps 5",
        "verify STEP --inputs x.npz --samples 5",
        "verify STEP --inputs x.npz --seed 5",
        "bench --list --json f.json",
        "bench --suite cpu --list --threads 2",
        "emulate host.cpp --prefix",
        "emulate --prefix --ipu ipu1",
        "emulate host.cpp -o prog --check-bounds",
        "emulate host.cpp -o prog --profile f.json",
        "emulate host.cpp -o prog -- argument",
    ],
    "E555": [
        "compile STEP -o q --dt 1e-3",
        "compile p -o q --dt 1e-3",
        "check STEP --dt 1e-3",
        "check STEP --ann2snn --calibration x.npz --dt 1e-3",
        "convert STEP new.onnx --dt 1e-3",
        "explore STEP --dt 1e-3",
        "run STEP --inputs x.npz --outputs y.npz --dt 1e-3",
        "run p --inputs x.npz --outputs y.npz --dt 1e-3",
        "verify STEP --dt 1e-3",
        "verify p --dt 1e-3",
    ],
    "E527": [
        "check STEP --dialect norse",
        "check p --dialect norse",
        "verify p --dialect norse",
        "run p --inputs x.npz --outputs y.npz --dialect norse",
    ],
    "E528": ["compile STEP -o q --percentile 99", "check STEP --steps 5", "run STEP --inputs x.npz --outputs y.npz --calibration x.npz"],
    "E543": ["compile STEP -o q --activity 0.1", "compile STEP -o q --strategy linear", "compile STEP --estimate-only --run"],
    "E545": ["bench --engines jax", "bench --rounds 3", "bench --plot f.svg"],
    "E517": ["compile STEP -o q --target cpu --loss ce_count --memory 1"],
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a project, data and a host program; all modules are imported before names in one of them are replaced."""
    for row in PASSED.values():
        for to in row.values():
            importlib.import_module(to.place.partition(":")[0])
    found = tmp_path_factory.mktemp("commands")
    snnc.compile(dense(), loss="ce_mean_membrane", batch=4, seed=7, output=found / "p").close()
    np.savez(found / "x.npz", x=np.zeros((8, 5, 12), np.float32), y=np.zeros(8, np.int64))
    np.savez(found / "in.npz", x=np.zeros((5, 2, 12), np.float32))
    (found / "host.cpp").write_text("int main() { return 0; }")
    return found


@cache
def commands():
    return typer.main.get_command(cli.make_app()).commands


def flag_of(command, name):
    (found,) = [p for p in commands()[command].params if p.name == name]
    return found.opts[0] if found.is_flag else found.opts[-1]


def arguments(line):
    return [str(STEP) if part == "STEP" else part for part in line]


def seen_as(value, name):
    """A value as the cells write it: paths as text, of objects the named attribute."""
    if isinstance(name, tuple):
        value = (name[0], getattr(value, name[0]))
    plain = value if not isinstance(value, tuple) else tuple(map(seen_plain, value))
    return [seen_plain(v) for v in plain] if isinstance(plain, list) else seen_plain(plain)


def seen_plain(value):
    return str(value) if hasattr(value, "__fspath__") else value


@pytest.mark.parametrize(
    ("command", "option", "to"), [pytest.param(c, o, to, id=f"{c}-{o}") for c, row in PASSED.items() for o, to in row.items()]
)
def test_an_option_reaches_what_it_is_for(place, monkeypatch, command, option, to):
    monkeypatch.chdir(place)
    module, _, path = to.place.partition(":")
    *above, last = path.split(".")
    owner = importlib.import_module(module)
    for name in above:
        owner = getattr(owner, name)
    original, reached = getattr(owner, last), []

    def spy(*given, **named):
        bound = inspect.signature(original).bind(*given, **named)
        bound.apply_defaults()
        reached.append(bound.arguments.get(to.name))
        raise Reached("reached")

    monkeypatch.setattr(BUILD.replace(":", "."), lambda *_, **__: None)
    monkeypatch.setattr(SUITE.replace(":", "."), lambda *given: given[5].update(rows=[], left_out=[], machine={}))
    monkeypatch.setattr("snnc.driver.reporting.report", lambda *_, **__: b"")
    monkeypatch.setattr("snnc.project.cleaning.left_over", lambda *_: [])
    monkeypatch.setattr(owner, last, spy)
    given = HEADS.get((command, option), MODEL[command])
    line = [*given, *to.beside, *((flag_of(command, option), to.text) if to.text else (flag_of(command, option),))]
    assert cli.run_command(arguments([command, *line])) == 2
    assert reached
    assert seen_as(reached[0], to.value) == to.value


def test_every_option_of_every_command_has_a_cell():
    for name, command in commands().items():
        own = {p.name for p in command.params if p.param_type_name == "option"} - {"as_json"}
        assert own == set(PASSED[name]), name
    assert set(RULES) <= set(PASSED["compile"])
    assert set(inspect.signature(options).parameters) - {"trial"} <= set(PASSED["compile"])


@pytest.mark.parametrize("line", [pytest.param((code, line), id=line) for code, lines in REFUSED.items() for line in lines])
def test_an_option_without_an_effect_is_refused(place, monkeypatch, capsys, line):
    code, text = line
    monkeypatch.chdir(place)
    before = sorted(place.iterdir())
    assert cli.run_command(arguments(text.split())) == 2
    captured = capsys.readouterr()
    assert captured.err.splitlines()[-1].startswith(f"error: SNNC-{code}: "), captured.err
    assert captured.out == ""
    assert sorted(place.iterdir()) == before
