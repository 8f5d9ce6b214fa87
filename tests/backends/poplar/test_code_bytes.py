"""Declared code sizes of codelets: read by the emulator, and comparable to the compiled size."""

import re

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile
from nets import join, linear
from poplar_projects import BATCH, STEPS, machine, project

from snnc.backends.emulator import build, popc
from snnc.backends.poplar.emit import emit_poplar
from snnc.compiler.ir.graph import Graph, Input, Output, Population
from snnc.compiler.losses import parse_loss
from snnc.compiler.losses.optimizers import Adam
from snnc.compiler.lowering.lower import lower
from snnc.compiler.neurons.library import ALIF, LI
from snnc.compiler.tiles.mapper import make_plan

pytestmark = pytest.mark.usefixtures("codelets_as_for_users")

SOURCE = """
#include <poplar/Vertex.hpp>
class Said : public poplar::Vertex {
public:
  static constexpr unsigned code_bytes = 1236, code_bytes_shared = 400;
  poplar::Output<float> out;
  bool compute() { *out = 1.0f; return true; }
};
class Silent : public poplar::Vertex {
public:
  static constexpr unsigned other = 7;
  poplar::Output<float> out;
  bool compute() { *out = 2.0f; return true; }
};
"""


def table(source):
    """Path of the compiled library, bytes by class, and bytes by shared function."""
    found = popc.compile_codelets(source, build.library())
    lines = [line.split("\t") for line in found.read_text().splitlines()]
    classes = {line[1]: int(line[5]) for line in lines if line[0] == "vertex"}
    return found.with_name("codelets.so"), classes, {line[1]: int(line[2]) for line in lines if line[0] == "code"}


def test_the_emulator_takes_what_a_class_says_and_else_the_size_of_its_machine_code(tmp_path):
    (tmp_path / "codelets.cpp").write_text(SOURCE)
    _, classes, shared = table(tmp_path / "codelets.cpp")
    assert classes["Said"] == 1236
    assert shared == {"code_bytes_shared": 400}
    assert 0 < classes["Silent"] < 200


@pytest.mark.representative("exact")
@pytest.mark.parametrize("name", ["recurrent", "exact", "lstm"])
def test_the_cost_models_instructions_are_of_the_size_of_compiled_code(name):
    library, classes, shared = table(project(name).folder / "codelets.cpp")
    with library.open("rb") as file:
        compiled = ELFFile(file).get_section_by_name(".text")["sh_size"]
    assert all(size >= 32 for size in classes.values())
    assert compiled / 3 < sum(classes.values()) + sum(shared.values()) < 3 * compiled


def adaptive(layers, hidden=30, classes=5):
    """Layers of ALIF neurons of one width, each with its own constants and connected to itself."""
    random, graph = np.random.default_rng(3), Graph("adaptive")
    graph.add("x", Input((hidden,), "spikes"))
    names = [f"h{k}" for k in range(layers)]
    for k, (before, name) in enumerate(zip(["x", *names], names, strict=False)):
        graph.add(name, Population(ALIF(beta=0.8 + 0.02 * k, threshold=1 + 0.1 * k), (hidden,)))
        join(graph, f"in{k}", linear(random, hidden, hidden, bias=True, gain=3), before, name)
        join(graph, f"rec{k}", linear(random, hidden, hidden), name, name, delay=1)
    graph.add("readout", Population(LI(0.9), (classes,)))
    join(graph, "out", linear(random, classes, hidden, bias=True), names[-1], "readout")
    graph.add("y", Output())
    graph.connect("readout", "y")
    return graph


def test_layers_with_one_kernel_share_their_code_whatever_their_constants(tmp_path):
    target, found = machine(1), []
    for layers in (1, 6):
        program = lower(adaptive(layers), loss=parse_loss("ce_mean_membrane"), loss_output="y", optimizer=Adam(1e-3), steps=STEPS)
        plan = make_plan(program, target, steps=STEPS, batch=BATCH, quick=True)
        lines = (emit_poplar(program, plan, tmp_path / str(layers)) / "codelets.cpp").read_text().splitlines()
        # Comments name the layers that use a class.
        found.append(("\n".join(line for line in lines if not line.startswith("//")), plan.memory["code"]))
    (source, predicted), more = found
    assert (source, predicted) == more
    said = {name: int(size) for name, size in re.findall(r"\b(code_bytes_\w+) = (\d+)", source)}
    classes = {name: int(size) for name, size in re.findall(r"class (\w+) :.*?\bcode_bytes = (\d+)", source, re.DOTALL)}
    # One replica has no private gradients, so no tile holds the class that sums them.
    assert predicted[0] == target.fixed_tile_bytes + sum(said.values()) + sum(classes.values()) - classes["SumPrivate"]
