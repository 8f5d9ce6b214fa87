// Halves of codelets and of the libraries: bits are read from stdin, and results are printed as bits.
#include "case.hpp"

#include <popops/Cast.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Reduce.hpp>
#include <popops/codelets.hpp>

namespace {

std::vector<unsigned> bits() {
  std::vector<unsigned> found;
  for (unsigned b; std::cin >> b;)
    found.push_back(b);
  return found;
}

struct World {
  Device device = smallDevice(1, 3);
  Graph graph{device};
  Sequence prog;
  std::vector<std::pair<std::string, std::vector<unsigned>>> written;
  World() { popops::addCodelets(graph); }

  /// Values of a type by their bits.
  Tensor input(const Type &type, const std::vector<unsigned> &values) {
    const std::string name = "in" + std::to_string(written.size());
    const Tensor t = graph.addVariable(UNSIGNED_INT, {values.size()}, VariableMappingMethod::LINEAR, name);
    graph.createHostWrite(name, t);
    written.emplace_back(name, values);
    return type.size() == 4 ? t.reinterpret(type) : popops::cast(graph, t, UNSIGNED_SHORT, prog).reinterpret(type);
  }
  void show(const Tensor &t) {
    const Tensor raw = t.elementType().size() == 4 ? t.reinterpret(UNSIGNED_INT) : popops::cast(graph, t.reinterpret(UNSIGNED_SHORT), UNSIGNED_INT, prog);
    graph.createHostRead("out", raw);
    Engine engine(graph, prog);
    engine.load(device);
    for (const auto &w : written)
      write(engine, w.first, w.second);
    engine.run(0);
    ::show(readBack<unsigned>(engine, "out", raw.numElements()));
  }
};

/// Half of the numbers are a, the others b; a vertex of the codelets makes "out" of both.
void codelet(const std::string &file, const std::string &vertex, const Type &outType) {
  World w;
  w.graph.addCodelets(file);
  const std::vector<unsigned> values = bits();
  const std::size_t n = values.size() / 2;
  const Tensor a = w.input(HALF, {values.begin(), values.begin() + std::ptrdiff_t(n)}), b = w.input(HALF, {values.begin() + std::ptrdiff_t(n), values.end()});
  const Tensor out = w.graph.addVariable(outType, {n}, "out");
  w.graph.setTileMapping(out, 1);
  const ComputeSet set = w.graph.addComputeSet();
  w.graph.setTileMapping(w.graph.addVertex(set, vertex, {{"a", a}, {"b", b}, {"out", out}}), 1);
  w.prog.add(Execute(set));
  w.show(out);
}

void library(const std::string &what) {
  namespace pe = popops::expr;
  World w;
  const std::vector<unsigned> values = bits();
  if (what == "widen")
    return w.show(popops::cast(w.graph, w.input(HALF, values), FLOAT, w.prog));
  if (what == "narrow")
    return w.show(popops::cast(w.graph, w.input(FLOAT, values), HALF, w.prog));
  const std::size_t n = values.size() / 2;
  const Tensor a = w.input(HALF, {values.begin(), values.begin() + std::ptrdiff_t(n)}), b = w.input(HALF, {values.begin() + std::ptrdiff_t(n), values.end()});
  if (what == "map")
    return w.show(popops::map(w.graph, pe::Add(pe::Mul(pe::_1, pe::_2), pe::Divide(pe::_2, pe::_1)), {a, b}, w.prog));
  w.show(popops::reduce(w.graph, a.reshape({n / 7, 7}), HALF, {1}, popops::ReduceParams(popops::Operation::ADD), w.prog));
}

} // namespace

int main(int argc, char **argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  return runScenario({{"codelet", [&] { codelet(arguments.at(1), arguments.at(2), arguments.at(3) == "float" ? FLOAT : HALF); }},
                      {"library", [&] { library(arguments.at(1)); }}},
                     argc, argv);
}
