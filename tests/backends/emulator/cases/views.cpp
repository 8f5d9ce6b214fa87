// Reads a script of view operations and shows each resulting tensor's elements, got in four ways.
//   var D…      a new variable; its elements are numbered on through all variables
//   pick I      pushes view I of the chain again
//   <operation> arguments, on the last view
//   end         closes the chain
#include "case.hpp"

namespace {

struct Chain {
  Tensor view, copied, gathered, scattered;
  std::string name;
};

class Script {
public:
  Script() {
    graph.addCodelets(CODELETS);
    edges = graph.addComputeSet("edges");
  }

  void read(std::istream &in) {
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string operation;
      words >> operation;
      std::vector<std::size_t> n;
      for (std::size_t x; words >> x;)
        n.push_back(x);
      apply(operation, n);
    }
  }

  void run() {
    Sequence program(Execute(edges), copies);
    Engine engine(graph, program);
    engine.load(device);
    for (std::size_t i = 0; i < variables.size(); ++i) {
      std::vector<int> values(variables[i].numElements());
      std::iota(values.begin(), values.end(), firsts[i]);
      write(engine, "var" + std::to_string(i), values);
    }
    engine.run();
    for (const Chain &c : chains) {
      const std::size_t n = c.view.numElements();
      std::cout << c.name << " shape";
      for (std::size_t d : c.view.shape())
        std::cout << " " << d;
      std::cout << "\n";
      for (const char *way : {"view", "copied", "gathered", "scattered"})
        show(readBack<int>(engine, c.name + way, n));
    }
  }

private:
  Tensor variable(const std::string &name, std::vector<std::size_t> shape, unsigned tile) {
    Tensor t = graph.addVariable(INT, shape, name);
    graph.setTileMapping(t, tile);
    return t;
  }

  void apply(const std::string &op, const std::vector<std::size_t> &n) {
    if (op == "var") {
      Tensor t = graph.addVariable(INT, n, "var");
      const Tensor flat = t.flatten();
      const std::size_t half = flat.numElements() / 2;
      graph.setTileMapping(flat.slice(0, half), 0);
      graph.setTileMapping(flat.slice(half, flat.numElements()), 1);
      graph.createHostWrite("var" + std::to_string(variables.size()), t);
      firsts.push_back(next);
      next += int(flat.numElements());
      variables.push_back(t);
      stack.push_back(t);
    } else if (op == "pick") {
      stack.push_back(stack.at(n.at(0)));
    } else if (op == "end") {
      finish(stack.back());
      stack.assign(variables.begin(), variables.end());
    } else {
      stack.push_back(derive(op, n));
    }
  }

  Tensor derive(const std::string &op, const std::vector<std::size_t> &n) const {
    const Tensor t = stack.back();
    if (op == "slice")
      return t.slice(n[0], n[1], unsigned(n[2]));
    if (op == "index")
      return t[n[0]];
    if (op == "reshape")
      return t.reshape(n);
    if (op == "flatten")
      return t.flatten(unsigned(n[0]), unsigned(n[1]));
    if (op == "dimShuffle")
      return t.dimShuffle(std::vector<unsigned>(n.begin(), n.end()));
    if (op == "dimRoll")
      return t.dimRoll(unsigned(n[0]), unsigned(n[1]));
    if (op == "transpose")
      return t.transpose();
    if (op == "expand")
      return t.expand({n[0]});
    if (op == "squeeze")
      return t.squeeze({n[0]});
    if (op == "subSample")
      return t.subSample(unsigned(n[0]), unsigned(n[1]));
    if (op == "broadcast")
      return t.broadcast(unsigned(n[0]), unsigned(n[1]));
    if (op == "upsample")
      return t.upsample(unsigned(n[0]), unsigned(n[1]));
    if (op == "reverse")
      return t.reverse(unsigned(n[0]));
    if (op == "concat")
      return concat(stack.at(n[0]), t, unsigned(n[1]));
    throw std::runtime_error("unknown operation " + op);
  }

  /// The view read by the host, by a Copy, by an Input edge; and a plain tensor written through the same view of a twin.
  void finish(const Tensor &view) {
    Chain c;
    c.view = view;
    c.name = "chain" + std::to_string(chains.size());
    const std::size_t n = view.numElements();
    c.copied = variable(c.name + "c", view.shape(), 2);
    copies.add(Copy(view, c.copied));
    c.gathered = variable(c.name + "g", {n}, 3);
    VertexRef v = graph.addVertex(edges, "CopyIn", {{"in", view.flatten()}, {"out", c.gathered}});
    graph.setTileMapping(v, 3);
    // Written through a strided edge, then read by a copy: every other element, from the back.
    const Tensor wide = variable(c.name + "w", {n, 2}, 1);
    c.scattered = wide.slice(1, 2, 1).flatten().reverse(0);
    VertexRef s = graph.addVertex(edges, "CopyIn", {{"in", view.flatten()}, {"out", c.scattered}});
    graph.setTileMapping(s, 2);
    for (const auto &way : {std::make_pair("view", view), std::make_pair("copied", c.copied), std::make_pair("gathered", c.gathered),
                            std::make_pair("scattered", c.scattered)})
      graph.createHostRead(c.name + way.first, way.second);
    chains.push_back(c);
  }

  Device device = smallDevice();
  Graph graph{device.getTarget()};
  ComputeSet edges;
  Sequence copies;
  std::vector<Tensor> variables, stack;
  std::vector<int> firsts;
  int next = 0;
  std::vector<Chain> chains;
};

} // namespace

int main() {
  Script script;
  script.read(std::cin);
  script.run();
  return 0;
}
