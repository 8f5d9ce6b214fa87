// A program given as text, and what of its variables is live where: variable i has 2^i elements on one tile, so that bytes tell a set.
//
//   variables visible-mask program
//   program: s N programs | r COUNT program | w program program | i program program | f IN OUT | h IN OUT (half of OUT) | a VARIABLE | u VARIABLE
#include "case.hpp"

namespace {

class Reader {
public:
  Reader() : graph(device.getTarget()) {
    graph.addCodelets(CODELETS);
    unsigned visible = 0;
    for (std::cin >> count >> visible; made.size() < count;) {
      const std::size_t i = made.size();
      made.push_back(graph.addVariable(INT, {std::size_t(1) << i}, "v" + std::to_string(i)));
      graph.setTileMapping(made[i], 0);
      if (visible >> i & 1)
        graph.createHostRead("v" + std::to_string(i), made[i]);
    }
    predicate = graph.addVariable(BOOL, {}, "predicate");
    graph.setTileMapping(predicate, 1);
    graph.createHostWrite("predicate", predicate);
  }

  Program next() {
    std::string kind;
    unsigned n = 0, m = 0;
    std::cin >> kind;
    if (kind == "s") {
      Sequence all;
      for (std::cin >> n; n > 0; --n)
        all.add(next());
      return all;
    }
    if (kind == "r") {
      std::cin >> n;
      return Repeat(n, next());
    }
    if (kind == "w" || kind == "i") {
      const Program a = next(), b = next();
      if (kind == "w")
        return RepeatWhileTrue(a, predicate, b);
      return If(predicate, a, b);
    }
    std::cin >> n;
    if (kind == "u")
      return WriteUndef(made.at(n));
    const ComputeSet set = graph.addComputeSet(kind);
    VertexRef v;
    if (kind == "a") {
      v = graph.addVertex(set, "AddOne", {{"data", made.at(n)}});
    } else {
      std::cin >> m;
      const Tensor out = made.at(m);
      v = graph.addVertex(set, "Fill", {{"in", made.at(n)}, {"out", kind == "h" ? out.slice(0, (out.numElements() + 1) / 2) : out}});
    }
    graph.setTileMapping(v, 0);
    return Execute(set);
  }

  Device device = smallDevice();
  Graph graph;

private:
  unsigned count = 0;
  std::vector<Tensor> made;
  Tensor predicate;
};

} // namespace

int main() {
  Reader reader;
  const Program program = reader.next();
  Engine engine(reader.graph, program);
  engine.load(reader.device);
  std::cout << engine.getEmulatorProfile().toJson();
}
