"""Schedules have the values of torch.optim.lr_scheduler, update by update."""

import math

import pytest

from snnc.backends.training.schedules import (
    ByEpoch,
    ConstantSchedule,
    Cosine,
    Exponential,
    LinearSchedule,
    OneCycle,
    Plateau,
    ScheduleError,
    StepSchedule,
    TrainingPosition,
    WarmUp,
    parse_schedule,
    schedule_text,
    value_at,
)

torch = pytest.importorskip("torch")
from torch.optim import lr_scheduler  # noqa: E402

UPDATES = 40


def of_torch(base, make, updates=UPDATES):
    """The learning rate before each update, as the scheduler sets it."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=base)
    scheduler = make(optimizer)
    found = []
    for _ in range(updates):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


CASES = {
    "linear": (LinearSchedule(0.1, 0.025, updates=13), 0.1, lambda o: lr_scheduler.LinearLR(o, 1.0, 0.25, total_iters=13), UPDATES),
    "linear up": (LinearSchedule(0.01, 0.1, updates=7), 0.1, lambda o: lr_scheduler.LinearLR(o, 0.1, 1.0, total_iters=7), UPDATES),
    "steps": (StepSchedule(0.3, updates=[5, 11, 12]), 0.3, lambda o: lr_scheduler.MultiStepLR(o, [5, 11, 12]), UPDATES),
    "steps by half": (StepSchedule(0.3, 0.5, updates=[9]), 0.3, lambda o: lr_scheduler.MultiStepLR(o, [9], 0.5), UPDATES),
    "cosine": (Cosine(0.2, 0.01, updates=15), 0.2, lambda o: lr_scheduler.CosineAnnealingLR(o, 15, 0.01), 16),
    "cosine that rises": (Cosine(0.2, 0.01, updates=15, rises=True), 0.2, lambda o: lr_scheduler.CosineAnnealingLR(o, 15, 0.01), UPDATES),
    "exponential": (Exponential(0.3, factor=0.8), 0.3, lambda o: lr_scheduler.ExponentialLR(o, 0.8), UPDATES),
    "one cycle": (
        OneCycle(0.5, updates=UPDATES), 0.5, lambda o: lr_scheduler.OneCycleLR(o, 0.5, UPDATES, cycle_momentum=False), UPDATES - 1
    ),
    "one linear cycle": (
        OneCycle(0.5, pct_start=0.4, div_factor=10, final_div_factor=100, anneal="linear", updates=23),
        0.5,
        lambda o: lr_scheduler.OneCycleLR(
            o, 0.5, 23, pct_start=0.4, anneal_strategy="linear", cycle_momentum=False, div_factor=10, final_div_factor=100
        ),
        22,
    ),
    "warm-up": (
        WarmUp(Cosine(0.2, updates=30), factor=0.1, updates=6),
        0.2,
        lambda o: lr_scheduler.SequentialLR(
            o, [lr_scheduler.LinearLR(o, 0.1, 1.0, total_iters=6), lr_scheduler.CosineAnnealingLR(o, 30)], milestones=[6]
        ),
        36,
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.filterwarnings("ignore:The epoch parameter")
def test_values_are_those_of_pytorch(case):
    schedule, base, make, updates = CASES[case]
    wanted = of_torch(base, make, updates)
    assert len(set(wanted)) > 1
    assert [schedule(update) for update in range(updates)] == pytest.approx(wanted, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("case", [c for c in CASES if c not in ("linear up", "steps by half", "exponential")])
def test_a_length_in_epochs_is_that_many_updates(case):
    schedule = CASES[case][0]
    text = schedule_text(schedule)
    for batches in (1, 3):
        epochs = parse_schedule(text.replace("updates=", "epochs="))
        with pytest.raises(ScheduleError, match=r"SNNC-E590: .*give updates="):
            epochs(0)
        for update in range(0, UPDATES * batches, batches):
            found = value_at(epochs, TrainingPosition(update, update // batches, batches))
            if batches == 1:
                assert found == schedule(update)
            elif not case.startswith("one"):  # of a cycle, the last update counts, not the number of updates
                assert found == pytest.approx(schedule(update // batches), rel=1e-12)


LOSSES = [1.0, 0.9, 0.91, 0.9, 0.8999, 0.95, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.3, 0.4, math.nan, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"patience": 0},
        {"patience": 2, "factor": 0.5, "cooldown": 2},
        {"patience": 1, "threshold": 0.05, "threshold_mode": "abs", "min_lr": 0.004},
        {"patience": 0, "factor": 0.9, "eps": 0.05},
    ],
)
def test_a_plateau_reduces_as_pytorch_does(given):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler = lr_scheduler.ReduceLROnPlateau(optimizer, **given)
    schedule = Plateau(0.1, **given)
    for epoch, loss in enumerate(LOSSES):
        assert schedule.at(TrainingPosition(epoch, epoch, 1, LOSSES[:epoch])) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
        scheduler.step(loss)
    with pytest.raises(ScheduleError, match="validation"):
        schedule(0)


def test_by_epoch_asks_a_function_of_the_epoch():
    schedule = ByEpoch(lambda epoch: 10 + epoch)
    assert [schedule.at(TrainingPosition(update, update // 4, 4)) for update in range(9)] == [10] * 4 + [11] * 4 + [12]
    torchs = of_torch(0.1, lambda o: lr_scheduler.CosineAnnealingLR(o, 5), 5)
    by_epoch = ByEpoch(Cosine(0.1, updates=5))
    assert [by_epoch.at(TrainingPosition(3 * epoch + 2, epoch, 3)) for epoch in range(5)] == pytest.approx(torchs)


def test_values_of_steps_are_the_given_ones():
    schedule = StepSchedule(-100, values=[-10, -1, 0.9], updates=[2, 4, 5])
    assert [schedule(update) for update in range(7)] == [-100, -100, -10, -10, -1, 0.9, 0.9]


def test_an_exponential_goes_half_way_to_its_limit_with_each_update():
    published = Exponential(-101, -0.1)
    second = -101.0
    for update in range(60):
        assert published(update) == pytest.approx(second, rel=1e-12)
        second += (-0.1 - second) / 2
    assert published(100_000) == -0.1


TEXTS = {
    "exponential:-101,-0.1": Exponential(-101, -0.1),
    "exponential:0.1,factor=0.9": Exponential(0.1, factor=0.9),
    "0.25": ConstantSchedule(0.25),
    "constant:3": ConstantSchedule(3),
    "linear:-100,0.9,updates=50": LinearSchedule(-100, 0.9, updates=50),
    "linear:last=0.9, first=1, epochs=1.5": LinearSchedule(1, 0.9, epochs=1.5),
    "steps:0.1,factor=0.5,epochs=30/60": StepSchedule(0.1, 0.5, epochs=[30, 60]),
    "steps:0.1,values=0.05/0.01,updates=3/6": StepSchedule(0.1, values=[0.05, 0.01], updates=[3, 6]),
    "cosine:1e-3,updates=8": Cosine(1e-3, updates=8),
    "cosine:1e-3,0,rises=true,updates=8": Cosine(1e-3, 0, rises=True, updates=8),
    "one_cycle:0.1,anneal=linear,epochs=4": OneCycle(0.1, anneal="linear", epochs=4),
    "plateau:0.1,0.5,patience=3": Plateau(0.1, 0.5, patience=3),
    "warm_up:epochs=2,factor=0.1+cosine:1e+1,epochs=18": WarmUp(Cosine(10, epochs=18), factor=0.1, epochs=2),
    "by_epoch:linear:0.1,0,updates=20": ByEpoch(LinearSchedule(0.1, 0, updates=20)),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_says_a_schedule_and_comes_back_from_it(text):
    assert parse_schedule(text) == TEXTS[text]
    assert parse_schedule(schedule_text(TEXTS[text])) == TEXTS[text]


def test_functions_have_no_text():
    assert schedule_text(lambda update: 0.1) is None
    assert schedule_text(WarmUp(lambda update: 0.1, updates=3)) is None
    assert WarmUp(0.5, updates=2)(1) == 0.25


WRONG = [
    "", "fast", "sine:0.1", "linear:0.1", "linear:0.1,0.2", "linear:0.1,0.2,updates=0", "linear:0.1,0.2,updates=1.5",
    "linear:0.1,0.2,updates=3,epochs=4", "linear:0.1,0.2,0.3,4,5", "linear:0.1,nan,updates=3", "linear:0.1,x,updates=3",
    "linear:0.1,0.2,until=3", "linear:0.1,first=0.2,updates=3", "steps:0.1", "steps:0.1,updates=4/3", "steps:0.1,values=1,updates=1/2",
    "steps:0.1,factor=0.1,values=1,updates=1", "one_cycle:0.1,anneal=fast,updates=3", "one_cycle:0.1,pct_start=2,updates=3",
    "plateau:0.1,factor=1", "plateau:0.1,patience=-1", "warm_up:updates=3", "warm_up:updates=3+fast", "by_epoch:fast",
    "cosine:0.1,epochs=-1", "one_cycle:0.1,div_factor=0,updates=3",
]  # fmt: skip


@pytest.mark.parametrize("text", WRONG)
def test_a_text_that_is_none_is_refused(text):
    with pytest.raises(ScheduleError, match="SNNC-E590"):
        parse_schedule(text)
