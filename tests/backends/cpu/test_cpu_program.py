"""Guarantees of the C++ program besides correct numbers: reproducible bits, any sizes, clear refusals, no undefined behaviour."""

import multiprocessing
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from cpu_projects import LEVEL, assert_same_records, assert_same_training, data, opened, wide
from indexed_nets import choosing, convolutional, pooled, sparse_recurrent
from nets import delayed, learnable, recurrent
from sanitizers import SANITIZERS, preloading

from snnc.backends.cpu import operations
from snnc.backends.cpu.build import build_cpu
from snnc.backends.cpu.emit import emit_cpu
from snnc.backends.cpu.engine import CpuEngine
from snnc.backends.native.library import NativeError
from snnc.backends.reference.engine import ReferenceEngine
from snnc.backends.runtime.errors import MemoryNeededError, NotTrainableError
from snnc.backends.session import BackendSession
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import SGD, Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import LI

STEPS, BATCH = 9, 5


def windowed(random):
    return wide(random, LI(0.9))


def program_of(make, trained=True):
    options = {"loss": parse_loss("ce_mean_membrane"), "optimizer": Adam(1e-2), "loss_output": "y"} if trained else {}
    if make is windowed:
        options["gradient_window"] = (-0.3, float("inf"))
    return lower(make(np.random.default_rng(3)), **options)


def train(engine, program, updates=4):
    for step in range(updates):
        inputs, target = data(program, STEPS, BATCH, seed=step)
        engine.train_batch(inputs, target, 1e-2)
    return engine.get_parameters()


@pytest.mark.representative("3")
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_training_gives_the_same_bits_again(threads):
    program = program_of(recurrent)
    with opened(program, threads) as first, opened(program, threads) as second:
        one, other = train(first, program), train(second, program)
        for name, value in one.items():
            np.testing.assert_array_equal(value, other[name])


def test_the_number_of_threads_changes_gradients_by_rounding_only():
    program = program_of(convolutional)
    inputs, target = data(program, STEPS, BATCH)
    found = []
    for threads in (1, 2, 4):
        with opened(program, threads) as engine:
            engine.train_batch(inputs, target, 1e-2)
            found.append(engine.gradients())
            assert engine.profile()["threads"] == threads
    for name, gradient in found[0].items():
        for other in found[1:]:
            np.testing.assert_allclose(other[name], gradient, atol=1e-5 * max(1.0, np.abs(gradient).max()))


def test_more_threads_than_samples_are_as_many_as_samples():
    program = program_of(recurrent)
    with opened(program, threads=8) as engine:
        inputs, target = data(program, STEPS, 1)
        wanted = ReferenceEngine(program).train_batch(inputs, target, 1e-2)
        assert engine.train_batch(inputs, target, 1e-2) == pytest.approx(wanted, rel=1e-5)
        assert engine.profile()["threads"] == 1


def test_sizes_change_from_one_sequence_to_the_next():
    program = program_of(delayed)
    with opened(program) as engine:
        reference = ReferenceEngine(program)
        for steps, batch in ((9, 5), (3, 7), (1, 1), (12, 2)):
            inputs, target = data(program, steps, batch)
            assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
            assert engine.train_batch(inputs, target, 0.0) == pytest.approx(reference.train_batch(inputs, target, 0.0), rel=1e-5)
            assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))


@pytest.mark.representative("delayed", "choosing")
@pytest.mark.parametrize("make", [delayed, sparse_recurrent, choosing])
def test_single_steps_are_those_of_the_whole_sequence(make):
    program = program_of(make, trained=False)
    inputs, _ = data(program, 8, 3)
    with opened(program) as engine:
        whole = engine.forward(inputs, {})
        for _ in range(2):
            engine.reset(3, {})
            for t in range(8):
                found = engine.step({id_: array[t] for id_, array in inputs.items()})
                assert_same_records(found, {id_: record[t] for id_, record in whole.items()})
        assert_same_records(engine.forward(inputs, {}), whole)


def test_single_steps_begin_with_the_states_that_were_given():
    program = program_of(recurrent, trained=False)
    inputs, _ = data(program, 4, 3)
    initial = {f"{program.populations[0].label}.v": np.linspace(-1, 1, 24).reshape(3, 8)}
    with opened(program) as engine:
        sessions = [BackendSession(e, program) for e in (engine, ReferenceEngine(program))]
        for session in sessions:
            session.reset(3, initial)
        for t in range(4):
            found, wanted = (s.step({i.label: inputs[i.id][t] for i in program.inputs}) for s in sessions)
            assert_same_records(found, wanted)


def test_sessions_of_one_process_run_at_the_same_time_from_several_threads():
    program = program_of(recurrent)
    with opened(program, threads=1) as first, opened(program, threads=1) as second, opened(program, threads=1) as alone:
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda engine: train(engine, program, 8), (first, second)))
        wanted = train(alone, program, 8)
        for name, value in wanted.items():
            np.testing.assert_array_equal(found[0][name], value)
            np.testing.assert_array_equal(found[1][name], value)


def _losses_of_child(engine, inputs, labels, to):
    to.send([engine.train_batch(inputs, labels, 1e-2) for _ in range(3)])


def test_a_forked_process_goes_on_with_a_session_whose_threads_stayed_behind():
    program = program_of(recurrent)
    with opened(program) as engine, opened(program) as alone:
        inputs, labels = data(program)
        before = engine.train_batch(inputs, labels, 1e-2)
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        child = context.Process(target=_losses_of_child, args=(engine, inputs, labels, there))
        child.start()
        assert here.poll(60)
        found = here.recv()
        child.join(60)
        assert child.exitcode == 0
        assert [before, *found] == [alone.train_batch(inputs, labels, 1e-2) for _ in range(4)]
        assert found == [engine.train_batch(inputs, labels, 1e-2) for _ in range(3)]


def test_threads_are_made_and_ended_as_sizes_change():
    def running():
        return len(list(Path("/proc/self/task").iterdir()))

    program = program_of(recurrent)
    before = running()
    with opened(program, threads=4) as engine:
        for batch, further in ((6, 3), (2, 1), (6, 3), (1, 0), (3, 2)):
            engine.train_batch(*data(program, STEPS, batch), 1e-2)
            assert running() - before == further
    assert running() == before


def test_weights_set_in_the_models_order_are_those_that_are_used_saved_and_read(tmp_path):
    from safetensors.numpy import load_file

    program = program_of(learnable)
    with opened(program) as engine:
        random = np.random.default_rng(0)
        values = {name: random.normal(size=v.shape).astype(np.float32) for name, v in engine.get_parameters().items() if v.ndim == 2}
        engine.set_parameters(values)
        reference = ReferenceEngine(program)
        reference.set_parameters(values)
        inputs, _ = data(program)
        assert_same_records(engine.forward(inputs, {}), reference.forward(inputs, {}))
        engine.session.save(tmp_path / "saved.safetensors")
        saved = load_file(tmp_path / "saved.safetensors")
        for name, value in engine.get_parameters().items():
            np.testing.assert_array_equal(saved[name].reshape(value.shape), value)
            np.testing.assert_array_equal(value, values.get(name, value))


def test_the_program_refuses_what_does_not_fit():
    program = program_of(sparse_recurrent)
    with opened(program) as engine:
        inputs, _ = data(program, STEPS, BATCH)
        engine.forward(inputs, {})
        with pytest.raises(NativeError, match="0 or 1"):
            engine.session.set("x0", np.full((STEPS, BATCH, 24), 0.5))
        with pytest.raises(NativeError, match="classes"):
            engine.session.set("labels", np.full(BATCH, 99))
        with pytest.raises(NativeError, match="1 or more"):
            engine.session.set("steps", np.zeros(1))
        with pytest.raises(NativeError, match="cannot be set"):
            engine.session.set("loss", np.zeros(1))
        engine.session.set("batch", np.full(1, 3))
        with pytest.raises(NativeError, match="was not set"):
            engine.session.run()


def test_inference_projects_hold_no_backward_code_and_refuse_training(tmp_path):
    program = program_of(recurrent, trained=False)
    folder = emit_cpu(program, tmp_path / "project")
    text = (folder / "network.cpp").read_text() + (folder / "neurons.cpp").read_text()
    assert "_backward(" not in text
    assert "weight_gradient" not in text
    with opened(program) as engine:
        with pytest.raises(NotTrainableError):
            engine.train_batch(*data(program), 0.1)
        with pytest.raises(NativeError, match="inference"):
            engine.session.train_step()


def test_an_unreadable_folder_is_an_error_not_a_crash(tmp_path):
    from snnc.backends.native.library import NativeSession

    folder = emit_cpu(program_of(recurrent), tmp_path / "project")
    library = build_cpu(folder, level=LEVEL)
    with pytest.raises(NativeError, match="cannot be opened"):
        NativeSession(library, tmp_path)
    (folder / "weights.safetensors").write_bytes(b"")
    with pytest.raises(NativeError, match="truncated"):
        NativeSession(library, folder)


@pytest.mark.wide
@pytest.mark.parametrize("library", SANITIZERS)
def test_sanitizers_find_nothing(tmp_path, root, library, monkeypatch):
    """The programs are built here and trained in a process of its own, because the sanitizer's library has to be loaded first."""
    surroundings = preloading(library)
    flags = (SANITIZERS[library], "-fno-sanitize-recover=all")
    arguments = []
    for make in (delayed, sparse_recurrent, convolutional, pooled, choosing, windowed):
        folder = emit_cpu(program_of(make), tmp_path / make.__name__)
        arguments += [str(folder), str(build_cpu(folder, flags, "-O1"))]
    # Threads share the gradients of large weights alone, and only those are not copied between checkpoints.
    monkeypatch.setattr(operations, "SHARED", 0)
    monkeypatch.setattr(operations, "COPIED", 0)
    for make in (delayed, convolutional):
        folder = emit_cpu(program_of(make), tmp_path / f"shared_{make.__name__}")
        arguments += [str(folder), str(build_cpu(folder, flags, "-O1"))]
    found = subprocess.run(
        [sys.executable, str(root / "tests" / "backends" / "cpu" / "cpu_sanitized.py"), *arguments],
        env=surroundings,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-4000:]
    assert "trained 8 networks" in found.stdout


def test_a_sequence_that_no_memory_holds_is_refused_before_it_is_taken():
    program = program_of(recurrent)
    with opened(program) as engine:
        much = np.broadcast_to(np.zeros(1, np.float32), (1 << 22, 1 << 14, 6))
        with pytest.raises(MemoryNeededError, match="fewer steps"):
            engine.forward({"x0": much}, {})
        assert_same_records(engine.forward(data(program)[0], {}), ReferenceEngine(program).forward(data(program)[0], {}))


def test_training_after_an_error_goes_on():
    program = program_of(recurrent)
    with opened(program) as engine:
        with pytest.raises(NativeError):
            engine.session.train_step()
        assert_same_training(engine, program, updates=2)


def test_a_project_opened_again_holds_its_weights(tmp_path):
    program = program_of(recurrent)
    folder = emit_cpu(program, tmp_path / "project", steps=4, batch=2)
    library = build_cpu(folder, level=LEVEL)
    engine = CpuEngine(library, folder)
    assert engine.session.tensors["x0"].shape == (4, 2, 6)
    for name, parameter in program.parameters.items():
        np.testing.assert_array_equal(engine.get_parameters()[name], parameter.value)


def test_twenty_updates_in_a_row_stay_those_of_the_reference():
    program = lower(recurrent(np.random.default_rng(3)), loss=parse_loss("ce_mean_membrane"), optimizer=SGD(1e-3, 0.9), loss_output="y")
    reference = ReferenceEngine(program)
    with opened(program) as engine:
        for step in range(20):
            inputs, target = data(program, seed=step)
            assert engine.train_batch(inputs, target, 1e-3) == pytest.approx(reference.train_batch(inputs, target, 1e-3), rel=1e-4)
        for name, value in reference.get_parameters().items():
            np.testing.assert_allclose(engine.get_parameters()[name], value, atol=1e-4)


@pytest.mark.parametrize("trained", [False, True])
def test_sequences_that_go_on_are_one_sequence(trained):
    """Pieces shorter than the longest delay: rows that are used in turn move to places of rows that are still to be moved."""
    program = program_of(delayed, trained)
    inputs, _ = data(program, STEPS - 1, BATCH)
    with opened(program) as engine:
        whole = engine.forward(inputs, {})
        for piece in (1, 2, 4):
            found = {name: [] for name in whole}
            for first in range(0, STEPS - 1, piece):
                engine._setting("steps", piece)
                engine._setting("resume", int(first > 0))
                engine._set_arrays({name: x[first : first + piece] for name, x in inputs.items()})
                engine.session.run()
                for name, record in engine._records().items():
                    found[name].append(record)
            for name, record in whole.items():
                np.testing.assert_array_equal(np.concatenate(found[name]), record)
