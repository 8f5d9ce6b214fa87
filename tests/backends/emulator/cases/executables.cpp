// A program that is compiled and written by one process and run by another.
#include "case.hpp"

#include <poplar/Executable.hpp>
#include <poplin/MatMul.hpp>
#include <poplin/codelets.hpp>
#include <popops/DynamicSlice.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Loop.hpp>
#include <popops/Reduce.hpp>
#include <popops/TopK.hpp>
#include <popops/codelets.hpp>
#include <poprand/RandomGen.hpp>
#include <poprand/codelets.hpp>
#include <poputil/TileMapping.hpp>

#include <fstream>

namespace {

Tensor mapped(Graph &graph, Type type, std::vector<std::size_t> shape, const std::string &name) {
  Tensor t = graph.addVariable(type, shape, name);
  poputil::mapTensorLinearly(graph, t);
  return t;
}

/// One of each kind of vertex, program, stream and host access.
Executable compile(const Device &device, bool libraries, const OptionFlags &options = {}) {
  Graph graph(device);
  graph.addCodelets(CODELETS);
  Tensor x = mapped(graph, FLOAT, {8}, "x"), y = mapped(graph, FLOAT, {8}, "y"), column = mapped(graph, FLOAT, {4, 2}, "column");
  graph.setInitialValue(y, std::vector<float>{1, 2, 3, 4, 5, 6, 7, 8});
  const ComputeSet scale = graph.addComputeSet("scale"), add = graph.addComputeSet("add");
  for (unsigned tile = 0; tile < 4; ++tile) {
    const VertexRef s = graph.addVertex(scale, "Scale", {{"data", x.slice(2 * tile, 2 * tile + 2)}});
    graph.setInitialValue(s["factor"], 1.5f + float(tile));
    graph.setPerfEstimate(s, 40 + tile, 2);
    graph.setTileMapping(s, tile);
    // What no single stride describes.
    const Tensor odd = concat({x.slice(tile, tile + 1), y.reverse(0).slice(tile, tile + 1)});
    const VertexRef a = graph.addVertex(add, "Add<float>", {{"a", odd}, {"b", y.slice(tile, tile + 2)}, {"out", column[tile]}});
    graph.setTileMapping(a, tile);
  }
  const DataStream in = graph.addHostToDeviceFIFO("in", FLOAT, 8), out = graph.addDeviceToHostFIFO("out", FLOAT, 8);
  const RemoteBuffer rows = graph.addRemoteBuffer("rows", FLOAT, 8, 2);
  const Tensor row = graph.addConstant<unsigned>(UNSIGNED_INT, {1}, {1});
  graph.setTileMapping(row, 0);
  graph.createHostWrite("y", y);
  graph.createHostRead("y", y);
  const Function twice = graph.addFunction(Repeat(2, Execute(scale)));
  Sequence first(Copy(in, x), Call(twice), Execute(add), Copy(column.transpose().flatten(), out), PrintTensor("column", column));
  Sequence second(Copy(x, rows, row), Copy(rows, y, row), Switch(row[0], {{0, Abort()}, {1, Copy(x.reverse(0), y)}}));
  if (libraries) {
    popops::addCodelets(graph);
    poplin::addCodelets(graph);
    poprand::addCodelets(graph);
    const Tensor m = poplin::matMul(graph, column, column.transpose(), second, "product");
    const Tensor noisy = popops::add(graph, m, poprand::uniform(graph, nullptr, 7, m, FLOAT, 0, 1, second, "noise"), second, "noisy");
    const Tensor sums = popops::reduce(graph, noisy, {1}, {popops::Operation::ADD}, second, "sums");
    const Tensor sorted = popops::topK(graph, second, sums, {4, true, popops::SortOrder::DESCENDING}, "sorted");
    const Tensor offset = graph.addConstant<unsigned>(UNSIGNED_INT, {1}, {2});
    graph.setTileMapping(offset, 1);
    const Tensor part = popops::dynamicSlice(graph, sorted, offset, {0}, {2}, second, "part");
    const Tensor total = popops::map(graph, popops::expr::_1 * 2.f + popops::expr::_2, {part[0], part[1]}, second, "total");
    second.add(popops::countedLoop(graph, 3, [&](const Tensor &) { return Sequence(Copy(total, y[0])); }, "loop"));
  }
  return compileGraph(graph, {first, second}, options);
}

void run(const Executable &executable, const Device &device) {
  Engine engine(executable);
  engine.load(device);
  engine.setPrintTensorStream(std::cout);
  std::vector<float> in{1, -2, 3, -4, 5, -6, 7, -8}, out(8);
  engine.connectStream("in", in.data(), in.data() + in.size());
  engine.connectStream("out", out.data(), out.data() + out.size());
  engine.run(0);
  show(out);
  std::vector<float> remote(8);
  engine.run(1);
  engine.copyFromRemoteBuffer("rows", remote.data(), 1);
  show(remote);
  show(readBack<float>(engine, "y", 8));
  std::cout << engine.getEmulatorProfile().cycles << "\n";
}

std::string whole(const char *path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The class of what is thrown, or "none".
std::string errorOf(const std::string &bytes) {
  std::istringstream stream(bytes);
  try {
    Executable::deserialize(stream);
  } catch (const graph_object_load_error &error) {
    return "graph_object_load_error";
  } catch (const std::exception &error) {
    return error.what();
  }
  return "none";
}

void damage(const std::string &bytes) {
  std::map<std::string, unsigned> errors;
  for (std::size_t keep = 0; keep < bytes.size(); keep += 1 + keep / 8)
    ++errors[errorOf(bytes.substr(0, keep))];
  for (std::size_t at = 0; at < bytes.size(); at += 1 + at / 16)
    if (at < 12 || at >= 16) { // not the bytes of the header that mean nothing
      std::string changed = bytes;
      changed[at] = char(changed[at] ^ (1 << at % 8));
      ++errors[errorOf(changed)];
    }
  for (const auto &[name, count] : errors)
    std::cout << name << " " << (count > 20 ? "many" : "few") << "\n";
}

} // namespace

int main(int argc, char **argv) {
  const char *file = argc > 2 ? argv[2] : "";
  const Device device = smallDevice();
  return runScenario({{"write",
                       [&] {
                         const Executable executable = compile(device, argc > 3, {{"debug.instrument", "true"}});
                         std::ofstream stream(file, std::ios::binary);
                         executable.serialize(stream);
                         stream << "behind";
                         run(executable, device);
                       }},
                      {"read",
                       [&] {
                         std::ifstream stream(file, std::ios::binary);
                         const Executable executable = Executable::deserialize(stream);
                         std::string rest;
                         stream >> rest;
                         std::cout << rest << "\n";
                         run(executable, device);
                         // Once more through bytes.
                         std::stringstream bytes;
                         executable.serialize(bytes);
                         run(Executable::deserialize(std::make_unique<std::istringstream>(bytes.str())), device);
                       }},
                      {"other-device", [&] { Engine(Executable::deserialize(std::make_unique<std::ifstream>(file, std::ios::binary))).load(smallDevice(1, 8)); }},
                      {"damage", [&] { damage(whole(file)); }},
                      {"tensors",
                       [&] {
                         Graph from(device), to(device);
                         const Tensor a = from.addVariable(FLOAT, {4, 6}, "a"), unmapped = from.addVariable(HALF, {3}, "b");
                         for (unsigned tile = 0; tile < 4; ++tile)
                           from.setTileMapping(a[tile], tile);
                         const SerializationFormat format = std::string(file) == "JSON" ? SerializationFormat::JSON : SerializationFormat::Binary;
                         std::stringstream bytes;
                         from.serializeTensors(bytes, {a.transpose().slice(1, 3), concat({a[0], a[3]}), unmapped}, format);
                         mapped(to, INT, {5}, "first");
                         for (const Tensor &t : to.deserializeTensors(bytes, format)) {
                           bool complete = false;
                           const auto tiles = to.getTileMapping(t, &complete);
                           std::cout << t.getName() << t.shapeToString() << t.elementType() << (complete ? " mapped" : " not mapped");
                           for (const Interval &i : tiles[0])
                             std::cout << " " << i.begin() << "-" << i.end();
                           std::cout << "\n";
                         }
                         std::cout << to.getNumVars() << "\n";
                       }},
                      {"tensorsAsJson",
                       [&] {
                         Graph graph(device);
                         mapped(graph, INT, {1}, "not written");
                         const Tensor x = mapped(graph, FLOAT, {4, 3}, "an \"archive\": \"");
                         graph.serializeTensors(std::cout, {x.transpose()[1], x.slice(1, 3).flatten()}, SerializationFormat::JSON);
                       }},
                      {"damagedTensors",
                       [&] {
                         Graph graph(device);
                         std::stringstream text;
                         graph.serializeTensors(text, {mapped(graph, FLOAT, {4}, "x")}, SerializationFormat::JSON);
                         const std::string whole = text.str();
                         const std::size_t key = whole.find("\"archive\"");
                         std::string digit = whole;
                         digit[key + 80] = digit[key + 80] == '7' ? '6' : '7';
                         for (const std::string &damaged : {std::string("{}"), whole.substr(0, key + 9), whole.substr(0, key + 40), digit,
                                                            whole.substr(0, key + 20) + "g" + whole.substr(key + 21)}) {
                           std::istringstream stream(damaged);
                           try {
                             graph.deserializeTensors(stream, SerializationFormat::JSON);
                             std::cout << "accepted\n";
                           } catch (const graph_object_load_error &error) {
                             std::cout << "refused\n";
                           }
                         }
                       }},
                      {"json",
                       [&] {
                         Graph graph(device);
                         graph.addCodelets(CODELETS);
                         const Tensor x = mapped(graph, FLOAT, {4}, "x \"quoted\"");
                         const VertexRef v = graph.addVertex(graph.addComputeSet("scale"), "Scale", {{"data", x.slice(0, 2)}});
                         graph.setTileMapping(v, 1);
                         graph.serialize(std::cout, SerializationFormat::JSON);
                       }},
                      {"empty", [&] { Executable().serialize(std::cout); }},
                      {"load", [&] { std::cout << errorOf(whole(file)) << "\n"; }}},
                     argc, argv);
}
