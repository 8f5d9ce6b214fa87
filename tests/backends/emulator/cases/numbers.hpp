// Programs whose inputs are read from stdin, and whose results are printed by name.
#pragma once

#include "case.hpp"

#include <popnn/codelets.hpp>
#include <popops/Cast.hpp>
#include <popops/codelets.hpp>
#include <poplin/codelets.hpp>
#include <poprand/codelets.hpp>
#include <popsparse/codelets.hpp>
#include <poputil/TileMapping.hpp>
#include <poputil/exceptions.hpp>

#include <cstdio>

namespace {

using Shape = std::vector<std::size_t>;

std::vector<std::string> arguments;

/// The next arguments: a number, or numbers up to a ";".
std::size_t number() {
  const std::string text = arguments.at(0);
  arguments.erase(arguments.begin());
  return std::size_t(std::stol(text));
}
template <class T = std::size_t> std::vector<T> numbers() {
  std::vector<T> found;
  while (arguments.at(0) != ";")
    found.push_back(T(number()));
  arguments.erase(arguments.begin());
  return found;
}

struct World {
  Device device;
  Graph graph{device};
  Sequence prog;
  Type type;
  std::vector<std::pair<std::string, std::vector<float>>> written;
  std::vector<std::pair<std::string, Tensor>> shown;

  explicit World(Type t = FLOAT, unsigned ipus = 1, unsigned tiles = 5) : device(smallDevice(ipus, tiles)), type(t) {
    popops::addCodelets(graph);
    poplin::addCodelets(graph);
    popnn::addCodelets(graph);
    popsparse::addCodelets(graph);
    poprand::addCodelets(graph);
  }
  /// The next numbers of stdin.
  Tensor input(const Shape &shape) {
    const std::string name = "in" + std::to_string(written.size());
    const Tensor t = graph.addVariable(FLOAT, shape, name);
    poputil::mapTensorLinearly(graph, t, 3, 1);
    graph.createHostWrite(name, t);
    std::vector<float> values(t.numElements());
    for (float &v : values)
      if (std::scanf("%f", &v) != 1)
        std::cerr << "too few numbers\n";
    written.emplace_back(name, values);
    return type == FLOAT ? t : popops::cast(graph, t, type, prog);
  }
  /// Numbers that the program has computed for a tensor that the library made.
  void into(const Tensor &t, const std::vector<float> &values) {
    const std::string name = "in" + std::to_string(written.size());
    if (values.size() != t.numElements())
      std::cerr << values.size() << " numbers for " << t.shapeToString() << "\n";
    const Tensor from = graph.addVariable(FLOAT, {values.size()}, VariableMappingMethod::LINEAR, name);
    graph.createHostWrite(name, from);
    written.emplace_back(name, values);
    prog.add(popops::cast(graph, from, t.flatten()));
  }
  /// Into a tensor that the library made.
  void into(const Tensor &t) { prog.add(Copy(input(t.shape()), t)); }
  void show(const std::string &name, const Tensor &t) {
    const Tensor f = t.elementType() == FLOAT ? t : popops::cast(graph, t, FLOAT, prog, "shown");
    graph.createHostRead(name, f);
    shown.emplace_back(name, f);
  }
  void run() {
    Engine engine(graph, prog);
    engine.load(device);
    for (const auto &w : written)
      engine.writeTensor(w.first, w.second.data(), w.second.data() + w.second.size());
    engine.run(0);
    for (const auto &s : shown) {
      std::cout << s.first << ":";
      for (float v : readBack<float>(engine, s.first, s.second.numElements()))
        std::printf("%s%.9g", " ", double(v)), std::fflush(stdout);
      std::cout << std::endl;
    }
  }
};

[[maybe_unused]] Type chosenType() { return number() ? HALF : FLOAT; }

/// Runs the scenario that argv[1] names with the arguments after it.
[[maybe_unused]] int runNumbers(const Scenarios &scenarios, int argc, char **argv) {
  arguments.assign(argv + std::min(argc, 2), argv + argc);
  try {
    return runScenario(scenarios, argc, argv);
  } catch (const poputil::poplibs_error &e) {
    std::cout << "poplibs_error: " << e.what() << "\n";
  }
  return 0;
}

} // namespace
