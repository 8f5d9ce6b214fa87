// Runs a ring of leaky integrate-and-fire neurons on the tiles of one IPU and writes the spikes of every step to a file.
//
//   snnc emulate host.cpp codelets.cpp -- spikes.bin
#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/Graph.hpp>

#include <fstream>
#include <iostream>
#include <vector>

using namespace poplar;
using namespace poplar::program;

int main(int argc, char **argv) {
  const unsigned tiles = 40, perTile = 4, neurons = tiles * perTile, steps = 160;
  const auto devices = DeviceManager::createDeviceManager().getDevices(TargetType::IPU, 1);
  if (devices.empty() || argc < 2) {
    std::cerr << "usage: host FILE, with an IPU or the emulator\n";
    return 1;
  }
  Device device = devices.front();
  device.attach();
  Graph graph(device.getTarget());
  graph.addCodelets("codelets.cpp");

  Tensor drive = graph.addVariable(FLOAT, {neurons}, "drive");
  Tensor membrane = graph.addVariable(FLOAT, {neurons}, "membrane");
  Tensor before = graph.addVariable(FLOAT, {neurons}, "before");
  Tensor fired = graph.addVariable(FLOAT, {neurons}, "fired");
  ComputeSet step = graph.addComputeSet("step");
  for (unsigned tile = 0; tile < tiles; ++tile) {
    const unsigned first = tile * perTile, last = first + perTile;
    for (const Tensor &t : {drive, membrane, before, fired})
      graph.setTileMapping(t.slice(first, last), tile);
    // A tile reads the spike of one neuron of each neighbouring tile; Poplar plans the exchange.
    const unsigned left = (first + neurons - 1) % neurons, right = last % neurons;
    Tensor around = concat({before.slice(left, left + 1), before.slice(first, last), before.slice(right, right + 1)});
    VertexRef v = graph.addVertex(step, "Fire",
                                  {{"drive", drive.slice(first, last)},
                                   {"spikes", around},
                                   {"membrane", membrane.slice(first, last)},
                                   {"fired", fired.slice(first, last)}});
    graph.setInitialValue(v["decay"], 0.9f);
    graph.setInitialValue(v["coupling"], 0.55f);
    graph.setTileMapping(v, tile);
  }

  DataStream in = graph.addHostToDeviceFIFO("drive", FLOAT, neurons), out = graph.addDeviceToHostFIFO("fired", FLOAT, neurons);
  Engine engine(graph, Repeat(steps, Sequence{Copy(in, drive), Execute(step), Copy(fired, before), Copy(fired, out)}));
  engine.load(device);
  // Every neuron gets a current slightly too weak to make it fire; two neurons get a stronger current for one step, at different times.
  std::vector<float> current(steps * neurons, 0.05f), spikes(steps * neurons);
  current[40 * neurons + 40] = current[70 * neurons + 110] = 2.0f;
  engine.connectStream("drive", current.data(), current.data() + current.size());
  engine.connectStream("fired", spikes.data(), spikes.data() + spikes.size());
  engine.run(0);
  std::ofstream(argv[1], std::ios::binary).write(reinterpret_cast<const char *>(spikes.data()), spikes.size() * sizeof(float));
  std::cout << neurons << " neurons on " << tiles << " tiles, " << steps << " steps\n";
}
