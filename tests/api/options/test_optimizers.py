"""Optimisers as text, as objects and in a project folder; groups of parameters, and state in files."""

import numpy as np
import pytest
from cpu_projects import data
from nets import learnable, recurrent

import snnc
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.session import BackendSession
from snnc.compiler.errors import EmptyGroupError, NothingToLearnError
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.loss_scale import LossScale
from snnc.compiler.losses.optimizers import SGD, Adam, AdamW, Group, RMSprop
from snnc.compiler.lowering.lower import lower
from snnc.errors import OptionConflictError, OptionValueError, UnknownOptimizerError
from snnc.options.optimizers import check_optimizer, from_data, parse_optimizer, to_data

READ = {
    "adam": Adam(),
    "adam:0.002": Adam(0.002),
    "sgd:0.01,0.9": SGD(0.01, 0.9),
    "sgd:0.1,momentum=0.9,nesterov": SGD(0.1, 0.9, nesterov=True),
    "adamw:lr=1e-3,weight_decay=1e-2": AdamW(1e-3, weight_decay=1e-2),
    "adam:1e-3,l1=1e-4,bound=2; *.bias: l1=0; fc.*: bound=0.5": Adam(
        1e-3, l1=1e-4, bound=2.0, groups=(Group("*.bias", l1=0.0), Group("fc.*", bound=0.5))
    ),
    "adam:0.1,loss_scale=dynamic": Adam(0.1, loss_scale=LossScale()),
    "sgd:0.1,loss_scale=1024": SGD(0.1, loss_scale=LossScale(1024.0, dynamic=False)),
    "adam:0.1,accumulate": Adam(0.1, accumulate=True),
    "rmsprop:0.01,0.9,centered,clip_norm=1": RMSprop(0.01, 0.9, centered=True, clip_norm=1.0),
    "Adam:1e-3; *.bias: weight_decay=0; Hidden.*: lr=0.1, frozen": Adam(
        1e-3, groups=(Group("*.bias", weight_decay=0.0), Group("Hidden.*", lr=0.1, frozen=True))
    ),
}
WRONG = {
    "lion": UnknownOptimizerError,
    "adam:x": UnknownOptimizerError,
    "adam:nesterov": UnknownOptimizerError,
    "adam:lr=1,lr=2": UnknownOptimizerError,
    "sgd:1,2,3,4": UnknownOptimizerError,
    "adam: 0.1; fc1": UnknownOptimizerError,
    "adam:0.1; fc1: momentum=1": UnknownOptimizerError,
    "adam:0": OptionValueError,
    "sgd:0.1,1": OptionValueError,
    "sgd:0.1,nesterov": OptionValueError,
    "adam:weight_decay=-1": OptionValueError,
    "adam:l1=-1": OptionValueError,
    "adam:1e-3; *: l1=inf": OptionValueError,
    "adam:bound=0": OptionValueError,
    "adam:1e-3; *: bound=-1": OptionValueError,
    "adam:clip_value=0": OptionValueError,
    "adam:clip_norm=-1": OptionValueError,
    "adam:epsilon=0": OptionValueError,
    "adam:loss_scale=0": OptionValueError,
    "adam:loss_scale=much": UnknownOptimizerError,
    "adam:0.1; fc1: lr=-1": OptionValueError,
}


def program_of(optimizer, make=recurrent):
    return lower(make(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=optimizer, loss_output="y")


@pytest.mark.parametrize("text", READ)
def test_texts_are_read_and_objects_survive_the_folder(text):
    assert parse_optimizer(text) == READ[text]
    assert from_data(to_data(READ[text])) == READ[text]


def test_a_project_of_before_is_read_and_a_plain_one_is_written_as_before():
    assert to_data(Adam(0.01)) == {"lr": 0.01, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "name": "adam"}
    assert from_data({"lr": 0.1, "momentum": 0.5, "name": "sgd"}) == SGD(0.1, 0.5)
    for broken in ({"lr": "0.1", "name": "sgd"}, {"lr": 0.1, "name": "sgd", "nesterov": 1}):
        with pytest.raises(ValueError, match="of the optimiser is"):
            from_data(broken)


@pytest.mark.parametrize("text", WRONG)
def test_texts_with_an_error_are_refused(text):
    with pytest.raises(WRONG[text]):
        parse_optimizer(text)


def test_two_learning_rates_are_refused():
    with pytest.raises(OptionConflictError, match="leave one of them out"):
        parse_optimizer("adamw:lr=0.1", lr=0.2)
    assert parse_optimizer("adamw:weight_decay=0.1", lr=0.2).lr == 0.2
    with pytest.raises(OptionValueError, match="nesterov looks ahead"):
        check_optimizer(snnc.SGD(0.1, nesterov=True))


def test_a_frozen_parameter_has_no_gradient_and_no_update():
    program = program_of(Adam(1e-2, groups=(Group("fc1.*", frozen=True), Group("rec.bias", frozen=True))))
    labels = {p.label: name for name, p in program.parameters.items()}
    updated = {op.parameter for op in program.update}
    assert {label for label, name in labels.items() if name in updated} == {"fc2.weight", "fc2.bias", "rec.weight"}
    assert f"d_{labels['fc1.weight']}" not in program.buffers
    engine = ReferenceEngine(program)
    before = engine.get_parameters()
    engine.train_batch(*data(program), 1e-2)
    changed = {name for name, value in engine.get_parameters().items() if not np.array_equal(value, before[name])}
    assert changed == updated


def test_a_frozen_neuron_parameter_leaves_the_adjoint():
    free, frozen = (program_of(Adam(1e-2, groups=groups), learnable) for groups in ((), (Group("hidden.*", frozen=True),)))
    names = [{p.label for name, p in program.parameters.items() if f"d_{name}" in program.buffers} for program in (free, frozen)]
    assert names[0] - names[1] == {label for label in names[0] if label.startswith("hidden.")} != set()


def test_groups_that_hold_nothing_and_networks_that_are_all_frozen_are_refused():
    with pytest.raises(EmptyGroupError, match=r"'nothing\.\*'.*fc1\.weight"):
        program_of(Adam(1e-2, groups=(Group("nothing.*"),)))
    with pytest.raises(EmptyGroupError, match="earlier groups do not match"):
        program_of(Adam(1e-2, groups=(Group("*.bias"), Group("fc1.bias"))))
    with pytest.raises(NothingToLearnError):
        program_of(Adam(1e-2, groups=(Group("*", frozen=True),)))


def test_a_training_goes_on_from_the_moments_in_a_file(tmp_path):
    program = program_of(RMSprop(1e-2, momentum=0.9, centered=True, weight_decay=0.1))
    whole, first, second = (BackendSession(ReferenceEngine(program), program) for _ in range(3))
    batches = [data(program, seed=seed) for seed in range(4)]
    for inputs, labels in batches:
        whole.engine.train_batch(inputs, labels, 1e-2)
    for inputs, labels in batches[:2]:
        first.engine.train_batch(inputs, labels, 1e-2)
    first.save(tmp_path / "half.safetensors", optimizer=True)
    second.load(tmp_path / "half.safetensors", optimizer=True)
    for inputs, labels in batches[2:]:
        second.engine.train_batch(inputs, labels, 1e-2)
    assert set(second.engine.get_optimizer().moments) == {"moment1", "moment2", "moment3"}
    for name, value in whole.state_dict().items():
        np.testing.assert_array_equal(second.state_dict()[name], value)
