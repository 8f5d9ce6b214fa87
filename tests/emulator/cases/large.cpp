// Prints the seconds that a large graph takes: 10,000 vertices over slices of 2 M elements and over columns, and their engine.
#include "case.hpp"

#include <chrono>

namespace {
double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
} // namespace

int main() {
  const Device device = IPUModel("ipu2").createDevice();
  Graph graph(device);
  graph.addCodelets(CODELETS);
  const double begin = now();
  const Tensor t = graph.addVariable(INT, {2000000}, "t"), m = graph.addVariable(INT, {32, 20000}, "m");
  const ComputeSet rows = graph.addComputeSet("rows"), columns = graph.addComputeSet("columns");
  for (unsigned i = 0; i < 10000; ++i) {
    const Tensor row = t.slice(i * 200, (i + 1) * 200), column = m.slice(2 * i, 2 * i + 2, 1).flatten();
    for (const auto &[cs, data] : {std::pair(rows, row), std::pair(columns, column)}) {
      graph.setTileMapping(data, i % 1472);
      graph.setTileMapping(graph.addVertex(cs, "AddOne", {{"data", data}}), i % 1472);
    }
  }
  const double built = now();
  Engine engine(graph, Sequence(Execute(rows), Execute(columns)));
  std::cout << built - begin << " " << now() - built << "\n";
}
