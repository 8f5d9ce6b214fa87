"""Measure the overhead of the emulator: ``python benchmarks/scripts/emulator_overhead.py``.

A program repeats a compute set of empty vertices, one on each tile. The script prints the time of one run of the compute set, as wall time
and as CPU time of all threads (which depends less on other work): the minimum and the median over rounds of many runs. SNNC_THREADS sets
the number of threads.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
from pathlib import Path

from snnc.backends.emulator import build

SOURCE = """
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <sstream>
using namespace poplar;
int main(int, char **argv) {
  const unsigned vertices = std::atoi(argv[1]), runs = std::atoi(argv[2]), rounds = std::atoi(argv[3]);
  const Device device = IPUModel("ipu2").createDevice();
  Graph graph(device);
  std::stringstream source("#include <poplar/Vertex.hpp>\\nclass Empty : public poplar::Vertex { public: void compute() {} };");
  graph.addCodelets(source);
  const ComputeSet cs = graph.addComputeSet();
  for (unsigned i = 0; i < vertices; ++i)
    graph.setTileMapping(graph.addVertex(cs, "Empty"), i % graph.getTarget().getNumTiles());
  Engine engine(graph, program::Repeat(runs, program::Execute(cs)));
  engine.load(device);
  for (unsigned round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t processors = std::clock();
    engine.run();
    std::cout << std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count() / runs << " "
              << double(std::clock() - processors) * 1e6 / CLOCKS_PER_SEC / runs << "\\n";
  }
}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vertices", type=int, default=1472)
    parser.add_argument("--runs", type=int, default=2000, help="number of runs of the compute set in a round")
    parser.add_argument("--rounds", type=int, default=31)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "empty.cpp", Path(folder) / "empty"
        source.write_text(SOURCE)
        build.compile_program([source], program)
        command = [str(program), *map(str, (arguments.vertices, arguments.runs, arguments.rounds))]
        rows = [line.split() for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()]
    for kind, column in (("wall", 0), ("processor", 1)):
        times = [float(row[column]) for row in rows]
        least, middle = min(times), statistics.median(times)
        print(f"{arguments.vertices} empty vertices, {kind} time: minimum {least:.2f} us, median {middle:.2f} us (measured)")


if __name__ == "__main__":
    main()
