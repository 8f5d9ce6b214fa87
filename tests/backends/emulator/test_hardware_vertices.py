"""Vertices that a file defines only for an IPU's compiler are found beside those that it defines for all."""

import os
import subprocess

from snnc.backends.emulator import adapted, popc

CODELETS = """
#include <poplar/Vertex.hpp>
using namespace poplar;
#ifdef __IPU__
float factor() { return 100; }
float offset() { return 7; }
#else
float factor() { return 2; }
#endif
struct Scaled : Vertex { InOut<float> x; bool compute() { *x = *x * factor(); return true; } };
template <class T> struct Unused : Vertex { InOut<T> x; bool compute() { return true; } };
#ifdef __IPU__
class Shifted : public MultiVertex {
public:
  InOut<float> x;
  bool compute(unsigned worker) {
    if (worker == 0)
      *x = *x + offset();
    return true;
  }
};
class Assembled : public Vertex {
public:
  InOut<float> x;
  bool compute() { asm volatile("setzi $a0, 1"); return true; }
};
#endif
"""

HOST = """
#include <iostream>
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
using namespace poplar;
int main(int, char **argv) {
  Device device = IPUModel("ipu2").createDevice();
  Graph graph(device);
  graph.addCodelets(argv[1]);
  Tensor x = graph.addVariable(FLOAT, {}, "x");
  graph.setTileMapping(x, 0);
  graph.setInitialValue(x, 5.f);
  graph.createHostRead("x", x);
  program::Sequence prog;
  for (const char *type : {"Scaled", "Shifted"}) {
    ComputeSet set = graph.addComputeSet();
    graph.setTileMapping(graph.addVertex(set, type, {{"x", x}}), 0);
    prog.add(program::Execute(set));
  }
  Engine engine(graph, prog);
  engine.load(device);
  engine.run();
  float found;
  engine.readTensor("x", &found, &found + 1);
  std::cout << found << "\\n";
}
"""


def test_a_table_has_the_vertices_of_both_variants(cases, tmp_path):
    (tmp_path / "codelets.cpp").write_text(CODELETS)
    (tmp_path / "host.cpp").write_text(HOST)
    assert popc.main([str(tmp_path / "codelets.cpp"), "-o", str(tmp_path / "codelets.gp")]) == 0
    assert popc._vertex_names(tmp_path / "codelets.gp") == {"Scaled", "Shifted", "Assembled"}
    cases.compile(tmp_path / "host.cpp", tmp_path / "host")
    ran = subprocess.run([tmp_path / "host", tmp_path / "codelets.gp"], capture_output=True, text=True, check=False, env=os.environ)
    assert ran.stdout == "17\n", ran.stderr


def test_a_file_whose_variant_for_the_hardware_does_not_compile_keeps_its_other_vertices(cases, tmp_path):
    source = tmp_path / "codelets.cpp"
    source.write_text(CODELETS.replace("if (worker == 0)", "if (unknown_register())"))
    assert popc.main([str(source), "-o", str(tmp_path / "codelets.gp")]) == 0
    assert popc._vertex_names(tmp_path / "codelets.gp") == {"Scaled"}


def test_a_variant_for_the_hardware_that_does_not_compile_is_tried_once(cases, tmp_path, monkeypatch):
    source = tmp_path / "codelets.cpp"
    source.write_text(CODELETS.replace("if (worker == 0)", "if (unknown_register())"))
    assert popc.main([str(source)]) == 0
    monkeypatch.setattr(adapted, "compile_adapted", None)
    assert popc.main([str(source)]) == 0
