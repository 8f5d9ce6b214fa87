"""The loss reads the chosen output or population: on every target, with every command, and saved with the project."""

import json

import numpy as np
import pytest
from dsl_nets import values
from option_cells import MACHINES, TARGETS, replace_engines, sparse

import snnc
from snnc.cli import main as cli
from snnc.compiler.errors import LossOutputError
from snnc.compiler.tiles.errors import PartsError
from snnc.errors import OptionNeedsLossError

SIZES = {"steps": 5, "batch": 4}


def twofold():
    """Two outputs of spikes, so that a loss on spikes has to be told which."""
    net = snnc.Network("twofold", seed=2)
    x = net.input(6)
    hidden = net.population(8, snnc.LIF(beta=0.9), name="hidden")
    for name, width in (("left", 3), ("right", 5)):
        readout = net.population(width, snnc.LI(beta=0.9), name=name)
        net.connect(hidden, readout)
        net.output(readout, name=f"{name} out")
    net.connect(x, hidden, snnc.Dense(init=snnc.Normal(std=0.8)))
    return net


@pytest.fixture
def machines(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in MACHINES.items():
        (tmp_path / name).write_text(text)


def learned(session):
    """Names of the readouts whose weights an update changed."""
    before = session.state_dict()
    classes = 3
    session.fit((values(4, 5, 6) > 0.3).astype(np.float32), np.arange(4) % classes, batch=4)
    after = session.state_dict()
    return {name.split(".")[0] for name in before if not np.array_equal(before[name], after[name])}


@pytest.mark.parametrize("side", ["left", "right"])
def test_the_named_output_is_learned_and_the_other_is_not(side):
    with snnc.compile(twofold(), loss="ce_mean_membrane", optimizer="sgd:0.5", loss_output=f"{side} out", **SIZES) as session:
        changed = learned(session)
    other = {"left": "right", "right": "left"}[side]
    assert any(side in name for name in changed)
    assert not any(other in name for name in changed)


@pytest.mark.representative("reference", "cuda", "one")
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.usefixtures("machines")
def test_a_project_keeps_it_on_every_target(monkeypatch, tmp_path, target):
    replace_engines(monkeypatch)
    given = {"loss": "ce_mean_membrane", "loss_output": "left out", **SIZES}
    with snnc.compile(twofold(), TARGETS[target], output=tmp_path / "p", **given) as one, snnc.open(tmp_path / "p") as two:
        for session in (one, two):
            assert session.options.loss_output == "left out"
            (chosen,) = [o.label for o in session.program.outputs if o.id == session.program.loss_output]
            assert chosen == "left out"
    assert json.loads((tmp_path / "p" / "model" / "options.json").read_text())["loss_output"] == "left out"


@pytest.mark.usefixtures("machines")
def test_a_network_in_parts_has_its_loss_where_it_was_named(monkeypatch, tmp_path):
    replace_engines(monkeypatch)
    given = {"loss": "ce_mean_membrane", "parts": 2, **SIZES}
    with snnc.compile(sparse(), "several.toml", output=tmp_path / "p", loss_output="readout.v", **given) as session:
        assert {name: len(ids) for name, ids in session.plan.parts.items()} == {"hidden": 2}
    # What the loss reads stays whole, so there is nothing left to be cut.
    with pytest.raises(PartsError):
        snnc.compile(sparse(), "several.toml", loss_output="hidden", **given)


def test_a_choice_that_is_not_clear_is_asked_for_by_the_name_of_the_option():
    with pytest.raises(LossOutputError, match=r"loss_output \(--loss-output\)"):
        snnc.compile(twofold(), loss="ce_count", **SIZES)
    with pytest.raises(LossOutputError, match="neither an output"):
        snnc.compile(twofold(), loss="ce_count", loss_output="middle", **SIZES)
    with pytest.raises(OptionNeedsLossError):
        snnc.compile(twofold(), loss_output="left out", **SIZES)


def test_estimates_and_explorations_price_the_loss_that_was_named():
    given = {"loss": "ce_mean_membrane", "steps": 5}
    small, large = (snnc.estimate(twofold(), batch=4, loss_output=f"{side} out", **given).plan.cycles for side in ("left", "right"))
    assert small != large
    (point,) = snnc.explore(twofold(), ["gc200"], batches=[4], loss_output="left out", **given)
    assert point.estimate.plan.cycles == small


def test_commands_take_it(tmp_path, capsys):
    snnc.compile(twofold(), output=tmp_path / "p").close()
    model, given = str(tmp_path / "p"), ["--steps", "5", "--loss", "ce_mean_membrane", "--loss-output", "right out"]
    out = str(tmp_path / "q")
    assert cli.run_command(["compile", model, "--target", "reference", "--batch", "4", "-o", out, *given]) == 0
    assert json.loads((tmp_path / "q" / "model" / "options.json").read_text())["loss_output"] == "right out"
    assert cli.run_command(["compile", model, "--estimate-only", "--json", "--batch", "4", *given]) == 0
    text = capsys.readouterr().out
    estimated = json.loads(text[text.index("{") :])["step_cycles"]
    assert cli.run_command(["explore", model, "--targets", "gc200", "--batch", "4", "--json", "-", *given]) == 0
    (point,) = json.loads(capsys.readouterr().out)["points"]
    assert point["step_cycles"] == estimated
