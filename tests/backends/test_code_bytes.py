"""What codelets say of the bytes of their code: read by the emulator, of the size of what a compiler makes of them."""

import pytest
from elftools.elf.elffile import ELFFile
from poplar_projects import project

from snnc.backends.emulator import build, popc

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


@pytest.mark.parametrize("name", ["recurrent", "exact", "lstm"])
def test_the_cost_models_instructions_are_of_the_size_of_compiled_code(name):
    library, classes, shared = table(project(name).folder / "codelets.cpp")
    with library.open("rb") as file:
        compiled = ELFFile(file).get_section_by_name(".text")["sh_size"]
    assert all(size >= 32 for size in classes.values())
    assert compiled / 3 < sum(classes.values()) + sum(shared.values()) < 3 * compiled
