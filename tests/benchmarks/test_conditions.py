"""IPU and GPU columns of one row: the same weights, the same data, and activities that differ by at most 5 %."""

from dataclasses import asdict, replace

import numpy as np
import pytest

from snnc.benchmarks.conditions import conditions_differ, digest
from snnc.benchmarks.cpu.oracle import reference_step
from snnc.benchmarks.cpu.problem import make_problem
from snnc.benchmarks.cpu.workloads import DenseLayer, Workload
from snnc.benchmarks.cuda import paper
from snnc.benchmarks.cuda.paper_step import step_conditions
from snnc.benchmarks.matched import conditions_of, drawn_inputs, drawn_labels, matched_problem, of_workload, predict_matched
from snnc.benchmarks.nets import benchmark
from snnc.benchmarks.reproduce.figures.gpu import IPU, NETS, OTHER, matched_row, points
from snnc.benchmarks.reproduce.measured import measured_steps
from snnc.driver.activity import measure_activity

SMALL = Workload("small", 0.1, 12, 3, (30,), (DenseLayer(20, True), DenseLayer(10)), 4)
GPU = {step.net: step.conditions for step in measured_steps() if step.program == "snnc"}


def ipu_conditions(problem):
    counted = measure_activity(problem.program, problem.inputs, "here")
    return conditions_of(problem.program, problem.weight_names, problem.inputs, problem.labels, counted)


def same_columns(gpu, ipu):
    """The check itself: what differs between the columns of a row."""
    return conditions_differ(gpu, ipu)


# ---- the check -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("net", "hidden"), [(n, "hidden1") for n in NETS[:3]] + [pytest.param(n, "hidden2", marks=pytest.mark.wide) for n in NETS[3:]]
)
def test_ipu_and_gpu_columns_of_one_row_have_the_same_weights_data_and_realised_activity(net, hidden):
    ipu = ipu_conditions(matched_problem(net))
    assert hidden in ipu.activity
    assert same_columns(GPU[net], ipu) == ""


@pytest.mark.parametrize("factor", [0.94, 1.06])
@pytest.mark.parametrize("layer", ["input", "hidden1"])
def test_columns_whose_activity_differs_by_more_than_5_percent_are_found(factor, layer):
    ipu = GPU["w1-5"]
    doctored = replace(ipu, activity={**ipu.activity, layer: factor * ipu.activity[layer]})
    assert layer in same_columns(doctored, ipu)
    near = replace(ipu, activity={**ipu.activity, layer: 0.96 * ipu.activity[layer]})
    assert same_columns(near, ipu) == ""


def test_columns_with_other_weights_or_data_are_found():
    problem = of_workload(SMALL, "gc200")
    right = ipu_conditions(problem)
    (key,) = problem.inputs
    moved = problem.inputs[key].copy()
    moved[0, 0, 0] = 1 - moved[0, 0, 0]
    assert "data" in same_columns(ipu_conditions(replace(problem, inputs={key: moved})), right)
    name, one = next((k, p) for k, p in problem.program.parameters.items() if p.label in problem.weight_names)
    weight = one.value.copy()
    weight.reshape(-1)[0] += np.float32(1e-6)
    program = replace(problem.program, parameters={**problem.program.parameters, name: replace(one, value=weight)})
    assert "weights" in same_columns(ipu_conditions(replace(problem, program=program)), right)
    assert "hidden2" in same_columns(replace(right, activity={k: v for k, v in right.activity.items() if k != "hidden2"}), right)


def test_a_hash_depends_on_names_shapes_and_values_and_not_on_order_or_type():
    a, b = np.arange(6, dtype=np.float32), np.ones(2, np.float32)
    assert digest({"a": a, "b": b}) == digest({"b": b.astype(np.int64), "a": a})
    others = [{"a": a}, {"a": a, "c": b}, {"a": a.reshape(2, 3), "b": b}, {"a": a + np.float32(1e-6), "b": b}]
    assert len({digest(one) for one in [*others, {"a": a, "b": b}]}) == 5


# ---- where conditions come from ----------------------------------------------------------------------------------------


def test_the_columns_of_a_workload_agree_with_spikes_counted_by_hand():
    problem = make_problem(SMALL)
    w = problem.weights
    sent = [np.zeros((SMALL.batch, n), np.float32) for n in (20, 10)]
    v = [np.zeros_like(s) for s in sent]
    total = [0.0, 0.0]
    for t in range(SMALL.steps):
        first = problem.x[t] @ w["hidden1.weight"].T + w["hidden1.bias"] + sent[0] @ w["hidden1.recurrent"].T
        v[0] = 0.9 * v[0] * (1 - sent[0]) + first
        sent[0] = (v[0] > 1).astype(np.float32)
        v[1] = 0.9 * v[1] * (1 - sent[1]) + sent[0] @ w["hidden2.weight"].T + w["hidden2.bias"]
        sent[1] = (v[1] > 1).astype(np.float32)
        total = [n + s.sum() for n, s in zip(total, sent, strict=True)]
    counted = {"input": problem.x.mean()} | {f"hidden{i + 1}": total[i] / (SMALL.steps * SMALL.batch * n) for i, n in enumerate((20, 10))}
    assert all(rate > 0.01 for rate in counted.values())
    gpu, ipu = reference_step(problem).conditions, ipu_conditions(of_workload(SMALL, "gc200"))
    assert gpu.activity == pytest.approx(counted)
    assert same_columns(gpu, ipu) == ""


def test_the_columns_of_a_network_of_the_paper_hash_the_engines_own_weights():
    case = replace(benchmark("shd-n2-b3-a5"), steps=3, batch=2)
    program = case.program()
    inputs, labels = drawn_inputs(case, program), drawn_labels(case, program)
    weights = {name: p.value for name, p in program.parameters.items()}
    one = step_conditions(program, weights, inputs, labels)
    assert one == step_conditions(program, {}, inputs, labels)
    name = next(name for name, p in program.parameters.items() if p.label.endswith(".weight"))
    other = step_conditions(program, weights | {name: 2 * weights[name]}, inputs, labels)
    assert "weights" in conditions_differ(one, other)


# ---- what is made of it ----------------------------------------------------------------------------------------------


def test_a_measured_step_under_other_conditions_leaves_the_column_of_the_prediction():
    row = {"fits": True, "step_ms": 2.0, "conditions": asdict(GPU["w1-5"])}
    results = {matched_row("w1-5").key: row}
    steps = [step for step in measured_steps() if step.net == "w1-5"]

    def column(measured):
        return {p.series for p in points(results, measured) if p.x == "w1-5"}

    assert IPU in column(steps)
    assert "GPU, snnc (measured)" in column(steps)
    assert "GPU, prototype (measured)" not in column(steps)
    busy = {**GPU["w1-5"].activity, "hidden1": 1.06 * GPU["w1-5"].activity["hidden1"]}
    doctored = [replace(step, conditions=replace(step.conditions, activity=busy)) for step in steps]
    assert column(doctored) == {IPU}
    (apart,) = (p for p in points(results, doctored) if p.series == "GPU, snnc (measured)")
    assert apart.x == f"w1-5{OTHER}"
    assert "hidden1 has 4.72 %" in apart.note


def test_the_suite_paper_compares_no_columns_under_different_conditions():
    gpu = {"kind": paper.MEASURED, "device": "NVIDIA H200", "ms": 2.5, "conditions": asdict(GPU["logged-h2-a5"])}
    ipu = {"kind": paper.PREDICTED, "target": "gc200", "ms": 3.0, "conditions": asdict(GPU["logged-h2-a5"])}
    assert paper.comparable(gpu, [ipu]) == gpu
    moved = ipu | {"conditions": ipu["conditions"] | {"data": "another"}}
    found = paper.comparable(gpu, [ipu, moved])
    assert (found["kind"], found["ms"]) == (paper.NOT_COMPARED, None)
    assert found["reason"].startswith("not compared with gc200: different data")


def test_a_matched_row_is_planned_for_what_was_counted(monkeypatch):
    small = replace(SMALL, name="small-one")
    monkeypatch.setattr("snnc.benchmarks.matched.CUDA_WORKLOADS", (small,))
    found = predict_matched(small.label)
    assert found["fits"]
    assert found["conditions"] == asdict(reference_step(make_problem(small)).conditions) | {
        "activity": pytest.approx(reference_step(make_problem(small)).conditions.activity)
    }
