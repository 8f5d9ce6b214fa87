// What the emulator finds when it is asked to look.
#include "case.hpp"

#include <array>
#include <chrono>
#include <future>
#include <thread>

namespace {

struct World {
  Device device = smallDevice();
  Graph graph{device.getTarget()};
  ComputeSet cs = graph.addComputeSet("work");
  Tensor a = graph.addVariable(FLOAT, {8}, "a"), b = graph.addVariable(FLOAT, {8}, "b");
  World() {
    graph.addCodelets(CODELETS);
    map(graph, {a, b}, 1);
  }
  void vertex(const std::string &type, std::initializer_list<ConnectionDesc> edges, int at = -1) {
    const VertexRef v = graph.addVertex(cs, type, edges);
    graph.setTileMapping(v, 1);
    if (at >= 0)
      graph.setInitialValue(v["at"], at);
  }
  void run(const Program &program) {
    Engine engine(graph, program);
    engine.loadAndRun(device);
    std::cout << "ran\n";
  }
};

void overrun(int at) {
  World w;
  w.vertex("Overrun", {{"in", w.a.slice(0, 4)}, {"out", w.b.slice(0, 4)}}, at);
  w.run(Execute(w.cs));
}

void copyVertex(World &w) { w.vertex("Overrun", {{"in", w.a}, {"out", w.b}}, 0); }

const std::initializer_list<Scenario> scenarios = {
    {"inside", [] { overrun(3); }},
    {"beyond", [] { overrun(4); }},
    {"farBeyond", [] { overrun(9); }},
    {"before", [] { World w; w.vertex("Underrun", {{"out", w.b.slice(4, 8)}}); w.run(Execute(w.cs)); }},
    {"input", [] { World w; w.vertex("WriteInput", {{"in", w.a}, {"out", w.b}}); w.run(Execute(w.cs)); }},
    {"undefined", [] { World w; copyVertex(w); w.run(Sequence(WriteUndef(w.a), Execute(w.cs))); }},
    {"undefinedPart", [] { World w; copyVertex(w); w.run(Sequence(WriteUndef(w.a), Copy(w.b.slice(0, 7), w.a.slice(0, 7)), Execute(w.cs))); }},
    {"undefinedCopy", [] { World w; Tensor c = w.graph.clone(w.a, "c"); copyVertex(w); w.run(Sequence(WriteUndef(c), Copy(c, w.a), Execute(w.cs))); }},
    {"undefinedPrint", [] { World w; w.run(Sequence(WriteUndef(w.a), PrintTensor("a", w.a))); }},
    {"redefined", [] { World w; copyVertex(w); w.run(Sequence(WriteUndef(w.a), Copy(w.b, w.a), WriteUndef(w.b), Execute(w.cs), PrintTensor("b", w.b))); }},
    {"memory", [] {
       IPUModel model("ipu2");
       model.tilesPerIPU = 2;
       model.memoryBytesPerTile = 10000;
       const Device device = model.createDevice();
       Graph graph(device);
       const Tensor big = graph.addVariable(FLOAT, {3000}, "big");
       graph.setTileMapping(big, 1);
       graph.createHostRead("big", big);
       Engine engine(graph, Sequence(), {{"debug.allowOutOfMemory", std::getenv("ALLOW") ? "true" : "false"}});
       engine.loadAndRun(device);
       std::cout << "ran\n";
     }},
    {"supervisor", [] {
       World w;
       const Tensor t = w.graph.addVariable(INT, {3}, "t");
       map(w.graph, {t}, 1);
       w.graph.createHostRead("t", t);
       w.vertex("Supervise", {{"data", t}});
       Engine engine(w.graph, Execute(w.cs));
       engine.loadAndRun(w.device);
       show(readBack<int>(engine, "t", 3));
       std::cout << engine.getEmulatorProfile().steps[0].computeCyclesBusiest << "\n";
     }},
    {"error", [] { World w; w.run(ErrorProgram("it went wrong", w.a.slice(0, 2))); }},
    {"prefetch", [] {
       struct Callback : StreamCallback {
         int next = 0;
         Result prefetch(void *to) override { return put(to, "prefetch"), next < 4 ? Result::Success : Result::NotAvailable; }
         void fetch(void *to) override { put(to, "fetch"); }
         void complete() override { std::cout << "complete "; }
         void put(void *to, const char *how) {
           std::cout << how << " ";
           *static_cast<float *>(to) = float(next++);
         }
       };
       World w;
       const DataStream in = w.graph.addHostToDeviceFIFO("in", FLOAT, 1);
       Sequence prog;
       for (unsigned i = 0; i < 4; ++i)
         prog.add(Copy(in, w.a.slice(i, i + 1)));
       w.graph.createHostRead("a", w.a);
       Engine engine(w.graph, prog, {{"exchange.streamBufferOverlap", "none"}});
       engine.connectStreamToCallback("in", std::make_unique<Callback>());
       engine.loadAndRun(w.device);
       std::cout << "\n";
       show(readBack<float>(engine, "a", 8));
     }},
    {"prefetchOnThread", [] {
       // Each value depends on what the program sends to the host after the transfer before, which a request ahead has to await.
       struct Source : StreamCallback {
         explicit Source(std::array<std::promise<float>, 3> &sent) : sent(sent) {}
         std::array<std::promise<float>, 3> &sent;
         unsigned requests = 0;
         Result prefetch(void *to) override {
           std::future<float> last = sent[requests++].get_future();
           if (last.wait_for(std::chrono::seconds(5)) != std::future_status::ready)
             return Result::NotAvailable;
           *static_cast<float *>(to) = last.get() + 10;
           return Result::Success;
         }
         void fetch(void *to) override { *static_cast<float *>(to) = 1; }
       };
       World w;
       const DataStream in = w.graph.addHostToDeviceFIFO("in", FLOAT, 1), out = w.graph.addDeviceToHostFIFO("out", FLOAT, 1);
       const Tensor first = w.a.slice(0, 1);
       std::array<std::promise<float>, 3> sent;
       unsigned sends = 0;
       Engine engine(w.graph, Sequence(Copy(in, first), Copy(first, out)),
                     {{"exchange.streamBufferOverlap", "none"}, {"streamCallbacks.multiThreadMode", "collaborative"}, {"streamCallbacks.numWorkerThreads", "2"}});
       engine.connectStreamToCallback("in", std::make_unique<Source>(sent));
       engine.connectStreamToCallback("out", [&](void *value) {
         std::cout << *static_cast<float *>(value) << " ";
         sent[sends++].set_value(*static_cast<float *>(value));
       });
       engine.load(w.device);
       for (int i = 0; i < 3; ++i)
         engine.run(0);
     }},
    {"threadOfRequests", [] {
       struct Source : StreamCallback {
         explicit Source(std::thread::id &requester) : requester(requester) {}
         std::thread::id &requester;
         Result prefetch(void *) override { return requester = std::this_thread::get_id(), Result::NotAvailable; }
         void fetch(void *to) override { *static_cast<float *>(to) = 1; }
       };
       std::thread::id requester;
       World w;
       const DataStream in = w.graph.addHostToDeviceFIFO("in", FLOAT, 8);
       Engine engine(w.graph, Sequence(Copy(in, w.a), Copy(in, w.a)),
                     {{"exchange.streamBufferOverlap", "none"}, {"streamCallbacks.multiThreadMode", std::getenv("MODE")},
                      {"streamCallbacks.numWorkerThreads", std::getenv("WORKERS")}});
       engine.connectStreamToCallback("in", std::make_unique<Source>(requester));
       engine.loadAndRun(w.device);
       engine.disconnectStream("in");
       std::cout << "here " << (requester == std::this_thread::get_id()) << "\n";
     }},
};

} // namespace

int main(int argc, char **argv) { return runScenario(scenarios, argc, argv); }
