// The recurrent core of a population in one pass: the choice among its compiled shapes, and the launch.
#ifndef SNNC_RECURRENT_CORE_HPP
#define SNNC_RECURRENT_CORE_HPP

#include "launch.hpp"
#include "recurrent_choice.hpp"
#include "teams.hpp"

#include <algorithm>

namespace snnc {

/// Runs the steps of a segment, forward or back.
template <class Net> class RecurrentCore {
public:
  explicit RecurrentCore(CoreShapes<Net> compiled) : shapes(compiled) {}

  /// Chooses a shape for `batch` samples, or the shape with the given number; false if the device can run none. The choice depends on the
  /// device only through the shapes that it cannot run, so results of a network and a batch have the same bits on any number of multiprocessors.
  bool choose(int batch, int number = -1) {
    constexpr int STEPS = 100;
    chosen = {};
    for (int at = 0; at < shapes.count; ++at) {
      const CoreShape<Net> &shape = shapes.first[at];
      if (shape.kernel != nullptr && (number < 0 || number == at) && runs(shape) &&
          (chosen.kernel == nullptr || recurrent_seconds(shape.plan, batch, STEPS) < seconds(batch, STEPS)))
        chosen = shape;
    }
    if (chosen.kernel != nullptr && chosen.plan.over_memory) {
      teams = teams_of(chosen);
      memory.make_room(static_cast<std::size_t>(teams) * static_cast<std::size_t>(COUNTER_WORDS + chosen.words));
    }
    return chosen.kernel != nullptr;
  }

  void run(const Net &net, const Run &run) {
    const int groups = (run.batch + chosen.plan.samples - 1) / chosen.plan.samples;
    if (!chosen.plan.over_memory)
      return launch_clusters(chosen.kernel, groups, size(chosen.plan), net, run);
    const int running = std::min(groups, teams);
    Run shared = run;
    shared.counters = memory.data();
    memory.clear_first(static_cast<std::size_t>(running * COUNTER_WORDS));
    launch_resident(chosen.kernel, running * chosen.plan.blocks, chosen.plan.warps * LANES, chosen.plan.shared, net, shared);
  }

  double seconds(int batch, int steps) const { return recurrent_seconds(chosen.plan, batch, steps); }
  std::string text() const { return recurrent_text(chosen.plan); }

private:
  const CoreShapes<Net> shapes;
  CoreShape<Net> chosen;
  /// Number of resident teams, if their blocks communicate through memory.
  int teams = 0;
  device::Array<unsigned> memory;

  static ClusterSize size(const RecurrentPlan &plan) { return {plan.blocks, plan.warps * LANES, plan.shared}; }
  static int teams_of(const CoreShape<Net> &of) {
    return resident_blocks(address_of(of.kernel), of.plan.warps * LANES, of.plan.shared) / of.plan.blocks;
  }
  static bool runs(const CoreShape<Net> &of) {
    if (of.plan.tensor_cores && !has_fragments())
      return false;
    if (!of.plan.over_memory)
      return runs_clusters(address_of(of.kernel), size(of.plan));
    return !(of.link == Link::OLD_DEVICE && has_clusters()) && teams_of(of) > 0;
  }
};

} // namespace snnc

#endif
