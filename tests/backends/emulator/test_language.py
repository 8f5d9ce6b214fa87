"""Programs written for C++11 and C++14, as many public ones are, compile, link and run with the emulator's headers."""

import subprocess

import pytest

from snnc.backends.emulator import build

CODELET_HEADERS = {
    "AvailableVTypes.h", "StackSizeDefs.hpp", "Alignment.hpp", "AvailableVTypes.hpp", "Builtins.hpp", "FieldTypes.hpp", "HalfFloat.hpp",
    "InOutTypes.hpp", "Loops.hpp", "QuarterFloat.hpp", "ShortVectors.hpp", "VectorListTypes.hpp", "VectorTypes.hpp", "Vertex.hpp",
}  # fmt: skip
"""Headers of codelets, which popc compiles in a standard of its own."""

MAIN = """
#include <poplar/Engine.hpp>
#include <popops/Expr.hpp>
#include <popops/codelets.hpp>
#include <popops/ElementWise.hpp>
#include <poputil/DebugInfo.hpp>
#include <poputil/VertexTemplates.hpp>
#include <iostream>
using namespace poplar;
poplar::Tensor twice(Graph &graph, const Tensor &t, program::Sequence &prog);
Type &chosen(int which);
int main() {
  Graph graph(Target::createCPUTarget());
  popops::addCodelets(graph);
  Tensor t = graph.addConstant<float>(FLOAT, {4}, {1, 2, 3, 4.5});
  Tensor one = graph.addConstant(INT, {}, 7);
  graph.setTileMapping(t, 0);
  graph.setTileMapping(one, 0);
  program::Sequence prog;
  Tensor out = twice(graph, t, prog);
  graph.createHostRead("out", out);
  Engine engine(graph, program::Sequence(prog, program::Sequence()));
  engine.load(Device::createCPUDevice());
  engine.run(0);
  std::vector<float> values(4);
  engine.readTensor("out", values.data(), values.data() + 4);
  for (float value : values)
    std::cout << value << " ";
  const Type &half = chosen(1);
  std::cout << (&half == &HALF) << (chosen(0) == FLOAT) << " " << poputil::templateVertex("V", FLOAT, true, 3) << " "
            << poputil::argumentsOf("a, b", 1, "x")[1].n << " " << TypeTraits::make<double>().isFloat << "\\n";
  ProfileValue value(2.5);
  try {
    value.asString();
  } catch (const std::bad_cast &) {
    std::cout << value.asDouble() << " is no text\\n";
  }
}
"""
OTHER = """
#include <poplar/Graph.hpp>
#include <popops/ElementWise.hpp>
poplar::Tensor twice(poplar::Graph &graph, const poplar::Tensor &t, poplar::program::Sequence &prog) {
  using namespace popops::expr;
  return popops::map(graph, _1 + _1 * Const(1), {t}, prog);
}
poplar::Type &chosen(int which) { return which ? poplar::HALF : poplar::FLOAT; }
"""


def host_headers():
    folder = build.include_dir()
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.hpp") if p.name not in CODELET_HEADERS)


def test_host_headers_compile_as_cpp11_without_warnings():
    command = [*build.compiler(), "-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{build.include_dir()}"]
    source = "".join(f"#include <{header}>\n" for header in host_headers())
    result = subprocess.run([*command, "-x", "c++", "-"], input=source, text=True, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.representative("c++11")
@pytest.mark.parametrize("standard", ["c++11", "c++14"])
def test_a_program_of_an_older_standard_links_and_runs(standard, tmp_path, sanitizer_flags):
    (tmp_path / "main.cpp").write_text(MAIN)
    (tmp_path / "other.cpp").write_text(OTHER)
    prefix = build.complete_prefix()
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Werror", f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    sources = [tmp_path / "main.cpp", tmp_path / "other.cpp"]
    command = [*build.compiler(), *flags, *sanitizer_flags, *sources, "-lpopops", "-lpoputil", "-lpoplar", "-o", tmp_path / "made"]
    subprocess.run(command, check=True)
    lines = subprocess.run([tmp_path / "made"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert lines == ["2 4 6 9 11 V<float,true,3> b 1", "2.5 is no text"]
