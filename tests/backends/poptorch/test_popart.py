"""The substitute for PopART runs operations written as in its user guide, and refuses invalid ones; permutations become few views."""

import ctypes
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from poptorch_packages import package

from snnc.backends.emulator.projects import build_project
from snnc.backends.poptorch import build
from snnc.backends.poptorch.build import SOURCES, operation_flags, popart_library
from snnc.backends.poptorch.errors import PopArtError
from snnc.backends.poptorch.popart import GradientInput, load_operation, open_operation

NOWHERE = 0xFFFFFFFF


@pytest.fixture(scope="module")
def case(tmp_path_factory):
    """The operations of popart_case.cpp, compiled like that of a package, with the precompiled headers and objects of all packages."""
    folder, runtime = tmp_path_factory.mktemp("popart"), popart_library()
    shutil.copytree(package("hostile").folder, folder, dirs_exist_ok=True)
    shutil.copy(Path(__file__).with_name("popart_case.cpp"), folder)
    link = (str(runtime), f"-Wl,-rpath,{runtime.parent}")
    output = build_project(folder, replace(SOURCES, own="popart_case.cpp"), "libcase.so", "-O0", operation_flags(runtime), link)
    load_operation(output)
    return ctypes.CDLL(str(output))


def opened(name, shape=(5,)):
    return open_operation("test", name, 1, {}, [shape], machine="ipu2", tiles=3)


def test_a_changed_header_changes_the_flags_of_operations(tmp_path, monkeypatch):
    shutil.copytree(build.POPART, tmp_path / "popart")
    monkeypatch.setattr(build, "POPART", tmp_path / "popart")
    monkeypatch.setattr(build, "cached_file", lambda name, file, _: tmp_path / name / file)
    before = operation_flags(popart_library())
    with next((tmp_path / "popart" / "include").rglob("*.hpp")).open("a") as header:
        header.write("// changed\n")
    assert operation_flags(popart_library()) != before


def test_an_operation_and_its_gradient_run(case):
    operation = opened("Turn", (40, 3))
    x = np.random.default_rng(0).random((40, 3)).astype(np.float32)
    assert np.array_equal(operation.run([x])[0], x[::-1])
    gradient = operation.gradient()
    assert (gradient.sources, gradient.targets) == ((GradientInput("gradient", 0), GradientInput("in", 0)), (0,))
    assert np.array_equal(gradient.run([2 * x, x])[0], 2 * x[::-1])
    operation.close()


def test_writing_an_input_in_place_is_an_error(case):
    with pytest.raises(PopArtError, match=r"test\.Spoil:1 writes its input 0 in place"):
        opened("Spoil").run([np.arange(5, dtype=np.float32)])


def test_an_operation_that_gives_no_output_is_an_error(case):
    with pytest.raises(PopArtError, match=r"test\.Lose:1 did not return output 0"):
        opened("Lose")


def test_an_output_of_another_shape_than_setup_said_is_an_error(case):
    with pytest.raises(PopArtError, match=r"test\.Shorten:1 returns output 0 with a shape other"):
        opened("Shorten")


def test_an_operation_without_a_gradient_says_so(case):
    with pytest.raises(PopArtError, match="has no gradient"):
        opened("Spoil").gradient()


@st.composite
def orders(draw):
    """Places of all elements once: rows and columns of groups as weights lie, records, shuffled pieces; holes anywhere."""
    rows, columns = draw(st.integers(1, 6)), draw(st.integers(1, 7))
    whole = np.arange(rows * columns).reshape(rows, columns)
    cut = sorted(draw(st.lists(st.integers(0, columns), max_size=3)))
    groups = [whole[:, a:b] for a, b in zip([0, *cut], [*cut, columns], strict=True)]
    turned = [g.T if draw(st.booleans()) else g for g in groups]
    order = np.concatenate([g.reshape(-1) for g in draw(st.permutations(turned))])
    if draw(st.booleans()):
        order = np.array(draw(st.permutations(order.tolist())))
    for place in draw(st.lists(st.integers(0, rows * columns), max_size=3)):
        order = np.insert(order, min(place, len(order)), NOWHERE)
    return order.astype(np.uint32), rows * columns


@settings(max_examples=60, deadline=None)
@given(orders())
def test_every_element_goes_to_its_place_and_back(case, drawn):
    order, elements = drawn
    placed, back = np.zeros(len(order), np.float32), np.zeros(elements, np.float32)
    sizes = ctypes.c_size_t(len(order)), ctypes.c_size_t(elements)
    case.views(ctypes.c_void_p(order.ctypes.data), *sizes, ctypes.c_void_p(placed.ctypes.data), ctypes.c_void_p(back.ctypes.data))
    wanted = np.where(order == NOWHERE, -1.0, order.astype(np.float64))
    assert np.array_equal(placed, wanted)
    assert np.array_equal(back, np.arange(elements))


def test_weights_of_a_group_are_one_view(case):
    """[outputs][inputs] kept as [inputs][count] for each group: as many views as groups, not as rows."""
    whole = np.arange(600 * 40).reshape(40, 600)
    order = np.concatenate([whole[g : g + 8].T.reshape(-1) for g in range(0, 40, 8)]).astype(np.uint32)
    case.patches.restype = ctypes.c_size_t
    assert case.patches(ctypes.c_void_p(order.ctypes.data), ctypes.c_size_t(order.size)) == 5
