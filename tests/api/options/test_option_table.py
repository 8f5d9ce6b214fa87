"""Every compilation option on every target is refused with a code, or has the effect that its cell in the table names."""

import inspect
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from option_cells import BATCH, CORPUS, MACHINES, STEPS, TARGETS, dense, made, replace_engines, sparse

import snnc
from snnc.backends.registry import BACKENDS, backend_of
from snnc.compiler.lowering.half_numbers import HalfNumbers
from snnc.driver.compiling import session_for
from snnc.errors import NoTimeStepError, OptionConflictError, OptionNeedsLossError, OptionTargetError, OptionValueError
from snnc.options.compile_options import CompileOptions, from_data, options, to_data
from snnc.options.table import RULES, support_of

SIZES = {"steps": STEPS, "batch": BATCH}
LOSS = {"loss": "ce_mean_membrane", "optimizer": "sgd:0.1"}


def nir():
    return CORPUS / "hand_nir_lif.nir"


def plan_of(name):
    return lambda m: getattr(m.plan, name)


def trained(m):
    return m.trained


def emitted(m):
    """What is emitted; on the reference, which emits nothing, what training comes to."""
    return m.trained[1] if m.session.options.target == "reference" else {n: d for n, d in m.files.items() if not n.startswith("model/")}


@dataclass(frozen=True)
class Cell:
    """One option: a value, and what it changes.

    Attributes
    ----------
    value
        A value that asks for something.
    effect
        What differs from the compilation without it.
    wanted
        What it is with the value, where that can be said.
    beside
        Other options of both compilations.
    model
        What is compiled.
    along
        Other options of the compilation with the value.
    than
        Another value, of the compilation to compare with; None: the default.
    of
        Values for columns that take others than the rest.
    """

    value: Any
    effect: Any
    wanted: Any = None
    beside: dict[str, Any] = field(default_factory=dict)
    model: Any = dense
    along: dict[str, Any] = field(default_factory=dict)
    than: Any = None
    of: dict[str, Any] = field(default_factory=dict)


def batch_sizes(m):
    return m.trained[0] if m.plan is None else m.plan.batch


def buses(name):
    return lambda m: [getattr(bus, name) for bus in m.plan.buses if bus.kind == "events"]


def sends(name):
    return lambda m: emitted(m) if m.plan is None else buses(name)(m)


def loss_port(m):
    (output,) = [o for o in m.program.outputs if o.id == m.program.loss_output]
    return output.source.buffer, emitted(m)


CELLS = {
    "steps": [Cell(STEPS + 3, lambda m: m.program.steps, STEPS + 3, {"steps": STEPS})],
    "batch": [Cell(2, batch_sizes, beside={"batch": BATCH})],
    "loss": [
        Cell("ce_count", lambda m: m.program.loss and m.program.loss.name, "ce_count"),
        Cell("ce_count:classes=1", lambda m: m.program.loss and m.program.outputs[-1].shape, (1,)),
    ],
    "loss_output": [Cell("hidden", loss_port)],
    "optimizer": [
        Cell("sgd:0.5,0.9", emitted),
        Cell("rmsprop:0.5,weight_decay=0.1", emitted, beside={"optimizer": "rmsprop:0.5"}),
        Cell("adamw:0.5; *.bias: weight_decay=0", emitted, beside={"optimizer": "adamw:0.5"}),
        Cell("adam:0.5; input_to_hidden.*: frozen", emitted, beside={"optimizer": "adam:0.5"}),
    ],
    "lr": [Cell(0.5, emitted, beside={"optimizer": "sgd"})],
    "loss_scale": [Cell(1000.0, emitted, beside={"optimizer": "sgd"})],
    "learnable": [Cell("beta", emitted)],
    "surrogate": [Cell("fast_sigmoid:3", emitted)],
    "gradient_window": [Cell(-0.1, emitted)],
    "truncate": [Cell(2, emitted)],
    "input_gradients": [Cell(True, emitted)],
    "seed": [Cell(5, trained)],
    "capacity": [
        Cell(3, sends("capacity"), beside={"mode": "drop"}, than=1),
        Cell("50 %", sends("capacity"), beside={"mode": "drop"}, than=1),
        Cell({"hidden": 3}, sends("capacity"), beside={"mode": "drop"}, than={"hidden": 4}),
    ],
    "mode": [Cell("drop", sends("mode"), along={"capacity": 1})],
    "drop": [Cell("random", emitted, beside={"mode": "drop", "capacity": 3})],
    "calibrate": [Cell(np.ones((STEPS, 2, 12), np.float32), lambda m: m.plan.activity_source)],
    "parts": [Cell(2, lambda m: {name: len(ids) for name, ids in m.plan.parts.items()}, {"hidden": 2}, model=sparse)],
    "recompute": [Cell(2, plan_of("segment"), 2)],
    "streaming": [Cell("inputs", plan_of("streamed"), "inputs", {"recompute": 2})],
    "memory": [Cell(10**9, lambda m: m.opened.memory, 10**9)],
    "threads": [Cell(3, lambda m: m.opened.threads, 3)],
    "precision": [Cell("bfloat16", emitted), Cell("float16", emitted)],
    "half": [Cell(HalfNumbers(history=True), emitted, of={"cuda": HalfNumbers("nearest")}), Cell(HalfNumbers(states=True), emitted)],
    "dt": [Cell(2e-3, lambda m: m.files, model=nir)],
    "detach": [Cell("none", lambda m: m.files, model=nir)],
    "input_kind": [Cell("values", lambda m: [i.kind for i in m.program.inputs], ["values"])],
}
"""What each option of :func:`snnc.compile` does; a new option has to have its cell here and its rule in ``snnc.options.table``."""


OF_CHIPS = {"batch", "calibrate", "capacity", "mode", "parts", "recompute", "streaming"}
"""Options that change a plan in another way where there are several chips; the others have the same rule and effect on one chip."""
OF_TILES = {"calibrate", "capacity", "mode", "parts", "recompute", "streaming"}
"""Those of them whose effect on each chip is that on one chip, and `parts`: see a network in parts in `driver/test_loss_output.py`."""
OF_MACHINES = {*OF_CHIPS, "steps", "optimizer", "half"}
"""Options that plans and programs for machines depend on. All others change the network before it is lowered, for every target alike."""
OF_POPTORCH = {"optimizer", "capacity"}
"""Some of them: packages for PopTorch have the plans of one chip."""
OF_PROGRAMS = {"steps", "batch", "loss", "optimizer", "capacity", "mode", "drop", "memory", "precision", "half"}
"""Options that a program without tiles depends on; it is tried on a processor with all others too."""


def is_wide(name, number, target, value):
    """Tried are refusals, every value on the CPU, and elsewhere the first value of each option on which plans or programs depend."""
    if target == "cpu" or support_of(name, backend_of(TARGETS[target]), value) == "refused":
        return target == "several" and name not in OF_CHIPS
    of = {"reference": set(CELLS), "cuda": OF_PROGRAMS, "poptorch": OF_POPTORCH, "one": OF_MACHINES, "several": OF_CHIPS - OF_TILES}
    return name not in of[target] or (number > 0 and name != "precision")


def cells():
    found = []
    for target in TARGETS:
        for name, row in CELLS.items():
            for number, cell in enumerate(row):
                marks = [pytest.mark.wide] if is_wide(name, number, target, cell.value) else []
                found.append(pytest.param(name, cell, target, id=f"{name}{number or ''}-{target}", marks=marks))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where machines lie and projects are written."""
    found = tmp_path_factory.mktemp("cells")
    for name, text in MACHINES.items():
        (found / name).write_text(text)
    return found


@pytest.fixture(scope="module")
def plain():
    """What was compiled without the option of a cell, by target and the other options: cells share it."""
    return {}


def beside(name, cell, value, training):
    """The other options of a cell."""
    trains = {} if not training or name == "loss" else LOSS if name != "optimizer" or value is None else {"loss": LOSS["loss"]}
    return SIZES | trains | cell.beside


@pytest.mark.parametrize(("name", "cell", "target"), cells())
def test_an_option_is_refused_or_has_its_effect(folder, plain, monkeypatch, name, cell, target):
    monkeypatch.chdir(folder)
    cell = replace(cell, value=cell.of.get(target, cell.value))
    opened, support = replace_engines(monkeypatch), support_of(name, backend_of(TARGETS[target]), cell.value)
    for training in (False, True):
        if support == "refused" or (support == "with a loss" and not training):
            error = OptionTargetError if support == "refused" else OptionNeedsLossError
            given = SIZES | (LOSS if training and name not in LOSS else {}) | {name: cell.value}
            with pytest.raises(error, match=f"^SNNC-E55[23]: {name}"):
                made(opened, target, "refused", cell.model(), **given)
            assert not (folder / "refused").exists()
    if support == "refused":
        return
    training = cell.model is not nir and name != "loss"
    without = beside(name, cell, None, training) | ({} if cell.than is None else {name: cell.than})
    key = (target, cell.model, repr(without))
    if key not in plain:
        plain[key] = made(opened, target, f"plain{len(plain)}", cell.model(), **without)
    given = beside(name, cell, cell.value, training) | cell.along | {name: cell.value}
    other = cell.effect(made(opened, target, f"{name}{len(list(folder.iterdir()))}", cell.model(), **given))
    assert other != cell.effect(plain[key])
    if cell.wanted is not None:
        assert other == cell.wanted


def test_every_option_has_a_rule_and_a_cell():
    own = set(inspect.signature(snnc.compile).parameters) - {"model", "target", "output", "overwrite"}  # where the project goes
    kept = {f.name for f in fields(CompileOptions)} - {"target"}
    read = set(inspect.signature(options).parameters) - {"target", "trial"}
    assert own | kept | read == set(RULES) == set(CELLS)


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
def test_a_target_takes_options_under_their_names_with_their_defaults(backend):
    """What is no option of a user has a default, which the driver fills in."""
    known = {f.name: f.default for f in fields(CompileOptions) if f.name != "target"}
    own = {f.name: f.default for f in fields(backend.options) if f.name != "target"}
    assert own.items() >= {(name, default) for name, default in known.items() if name in own}
    assert own.keys() - known.keys() <= {"calibrate", "strategy", "other_targets", "common", "device", "embedded"}
    assert {name for name in known if support_of(name, backend) != "refused"} == own.keys() & known.keys()


def test_the_command_line_and_python_have_the_same_defaults():
    known = {f.name: f.default for f in fields(CompileOptions)}
    assert {name: rule.default for name, rule in RULES.items() if rule.help and name in known} == {
        name: known[name] for name, rule in RULES.items() if rule.help and name in known
    }


@pytest.mark.parametrize("target", TARGETS)
def test_defaults_and_values_that_ask_for_nothing_are_taken_everywhere(folder, monkeypatch, target):
    monkeypatch.chdir(folder)
    defaults = {f.name: f.default for f in fields(CompileOptions) if f.name != "target"}
    assert MISSING not in defaults.values()
    assert options(TARGETS[target], **defaults) == options(TARGETS[target])
    for name, rule in RULES.items():
        for value in rule.idle:
            assert getattr(options(TARGETS[target], **{name: value}), name) == value


def test_a_trial_has_a_use_for_data_and_a_seed_on_every_target():
    for target in ("reference", "cpu", "cuda", "poptorch"):
        assert options(target, seed=3, calibrate="data", trial=True).seed == 3


def test_options_that_contradict_each_other_are_refused():
    for given in ({"optimizer": "adam:0.1", "lr": 0.2}, {"target": "cpu", "memory": "1M", "recompute": "off"}):
        with pytest.raises(OptionConflictError, match="leave one of them out"):
            options(loss="ce_count", **given)


def test_options_of_dropping_without_effect_are_refused():
    for target, given, text in (
        ("cpu", {"capacity": 3}, "give mode='drop'"),
        ("reference", {"mode": "drop"}, "give capacity"),
        ("cpu", {"drop": "random"}, "no spike is dropped"),
        ("gc200", {"mode": "drop", "parts": 2}, "depend on the parts"),
        ("gc200", {"mode": "drop", "drop": "random"}, "give capacity"),
        ("poptorch", {"mode": "drop", "drop": "random"}, "give capacity"),
    ):
        with pytest.raises(OptionConflictError, match=text):
            options(target, **given)
    with pytest.raises(OptionValueError, match="one of lowest, random"):
        options("cpu", mode="drop", capacity=3, drop="highest")
    for policy in ("lowest", "random"):
        chosen = CompileOptions("cpu", capacity=3, mode="drop", drop=policy)
        assert from_data(to_data(chosen)) == chosen
        assert ("drop" in to_data(chosen)) == (policy == "random")


def test_options_of_an_older_project_are_read_whatever_the_target_takes():
    older = CompileOptions("cpu", capacity=3, mode="drop", recompute=4, streaming="history", parts=2, truncate=3)
    data = to_data(older)
    assert from_data(data) == older
    del data["loss_output"]
    assert from_data(data) == older


@pytest.mark.parametrize("model", [dense, lambda: dense().graph(), lambda: CORPUS / "snntorch_step_leaky_ts.onnx"])
def test_seconds_a_step_are_for_models_in_continuous_time(model):
    for compiled in (snnc.compile, lambda model, dt: snnc.estimate(model, dt=dt), lambda model, dt: snnc.verify(model, dt=dt)):
        with pytest.raises(NoTimeStepError, match="discrete time"):
            compiled(model(), dt=1e-3)


def test_another_target_runs_with_those_options_that_it_takes(tmp_path):
    chosen = CompileOptions("cpu", memory=10**6, threads=2, precision="bfloat16", loss=options(loss="ce_count").loss, truncate=3, steps=9)
    assert chosen.retargeted("gc200") == CompileOptions("gc200", steps=9)
    assert chosen.retargeted("cuda") == CompileOptions("cuda", steps=9, memory=10**6)
    assert CompileOptions("gc200", mode="drop").retargeted("reference") == CompileOptions("reference")
    assert CompileOptions("gc200", mode="drop", capacity=3).retargeted("reference") == CompileOptions("reference", mode="drop", capacity=3)
    assert CompileOptions("gc200", capacity=3).retargeted("reference") == CompileOptions("reference")
    halves, loss = HalfNumbers("stochastic", history=True, deltas=True, states=True), options(loss="ce_count").loss
    kept = CompileOptions("bow", precision="float16", half=HalfNumbers("nearest", states=True))
    assert CompileOptions("gc200", precision="float16", half=halves, loss=loss).retargeted("bow") == kept
    assert CompileOptions("gc200", precision="float16", half=halves, loss=loss).retargeted("cpu") == replace(kept, target="cpu")
    history = CompileOptions("gc200", precision="float16", half=HalfNumbers(history=True), loss=loss)
    assert history.retargeted("bow") == CompileOptions("bow")
    drops = {"mode": "drop", "capacity": 3, "drop": "random"}
    assert CompileOptions("cpu", **drops).retargeted("cuda") == CompileOptions("cuda", **drops)


def test_a_project_that_drops_spikes_says_so_where_it_is_compared_or_moved(folder, monkeypatch):
    monkeypatch.chdir(folder)
    opened = replace_engines(monkeypatch)
    made(opened, "one", "drops", dense(), mode="drop", **SIZES).session.close()
    monkeypatch.setattr("snnc.checks.verifying._compared", lambda *_: None)
    with pytest.warns(UserWarning, match="sends all of them"):
        snnc.verify("drops")
    with pytest.warns(UserWarning, match="all spikes are sent"):
        session_for(Path("drops"), {"input": np.zeros((STEPS, 2, 12), np.float32)}, target="reference").close()
