// What every case needs: a small machine, errors as text, vectors in and out.
#ifndef SNNC_CASE_HPP
#define SNNC_CASE_HPP

#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>
#include <poplar/exceptions.hpp>

#include <cstdlib>
#include <cxxabi.h>
#include <functional>
#include <iostream>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <typeinfo>
#include <vector>

using namespace poplar;
using namespace poplar::program;

inline Device smallDevice(unsigned ipus = 1, unsigned tiles = 4) {
  IPUModel model("ipu2");
  model.numIPUs = ipus;
  model.tilesPerIPU = tiles;
  return model.createDevice();
}

inline void map(Graph &graph, std::initializer_list<Tensor> tensors, unsigned tile) {
  for (const Tensor &t : tensors)
    graph.setTileMapping(t, tile);
}

template <class T> std::vector<T> readBack(Engine &engine, const std::string &handle, std::size_t n) {
  std::vector<T> values(n);
  engine.readTensor(handle, values.data(), values.data() + n);
  return values;
}

template <class T> void write(Engine &engine, const std::string &handle, const std::vector<T> &values) {
  engine.writeTensor(handle, values.data(), values.data() + values.size());
}

template <class T> void show(const std::vector<T> &values) {
  for (std::size_t i = 0; i < values.size(); ++i)
    std::cout << (i ? " " : "") << +values[i];
  std::cout << "\n";
}

using Scenarios = std::map<std::string, std::function<void()>>;

/// Runs the scenario that argv[1] names; an error of the API is printed as "class: message".
inline int runScenario(const Scenarios &scenarios, int argc, char **argv) {
  const auto found = argc > 1 ? scenarios.find(argv[1]) : scenarios.end();
  if (found == scenarios.end()) {
    std::cerr << "no such scenario\n";
    return 2;
  }
  try {
    found->second();
  } catch (const poplar_error &e) {
    char *name = abi::__cxa_demangle(typeid(e).name(), nullptr, nullptr, nullptr);
    std::cout << name << ": " << e.what() << "\n";
    std::free(name);
  }
  return 0;
}

/// One of many scenarios: a table of function pointers compiles in a third of the time of as many `std::function`s.
struct Scenario {
  const char *name;
  void (*run)();
};

inline int runScenario(std::initializer_list<Scenario> table, int argc, char **argv) {
  Scenarios scenarios;
  for (const Scenario &scenario : table)
    scenarios[scenario.name] = scenario.run;
  return runScenario(scenarios, argc, argv);
}

#endif
