// Predicted time of a recurrent core, from rates measured on an H100; it chooses one of the few shapes of a population.
#ifndef SNNC_RECURRENT_CHOICE_HPP
#define SNNC_RECURRENT_CHOICE_HPP

#include "recurrent_plan.hpp"

#include <algorithm>
#include <string>

namespace snnc {

/// Clusters that are resident on an H100 with one block per multiprocessor. The choice always uses this device, so that it is the same on all
/// devices that can run a shape, and results are the same bits.
inline int nominal_clusters(int blocks) { return blocks <= 1 ? 132 : blocks <= 2 ? 66 : blocks <= 4 ? 30 : blocks <= 8 ? 15 : 7; }

/// Teams on that device whose blocks communicate through memory: one block per multiprocessor.
inline int nominal_teams(int blocks) { return std::max(1, 132 / blocks); }

/// Number of blocks of a shape that fit on a multiprocessor.
inline int blocks_on_processor(const RecurrentPlan &plan) {
  if (plan.over_memory)
    return 1;
  constexpr int THREADS = 512, SHARED = 232448;
  return std::max(1, std::min(THREADS / (plan.warps * 32), static_cast<int>(SHARED / (plan.shared + 1024))));
}

/// Clocks of a step if `resident` blocks share a multiprocessor: fitted to measured parts of steps on an H100 (256 neurons; clusters of 2, 4
/// and 8 blocks; 8 and 16 samples), within 15 % of them. Everything outside this range is an extrapolation.
inline double recurrent_step_clocks(const RecurrentPlan &plan, int resident) {
  // Clocks of a multiprocessor for a product of fragments, a float32 multiplication, and a word of shared memory.
  constexpr double FRAGMENT = 2048 / 1213.0, NUMBER = 1 / 128.0, WORD = 1 / 32.0;
  // Clocks of a block barrier, of the arrival of words from other blocks, and per byte of these.
  constexpr double BARRIER = 60, ARRIVAL = 270, BYTE = 0.028;
  // Through memory: clocks until a count by one thread is visible to another, with the block barriers; bytes per clock from L2.
  constexpr double COUNT = 1660 + 3 * BARRIER, MEMORY_BYTES = 30;
  const double exchange = plan.over_memory   ? COUNT + plan.exchanged / MEMORY_BYTES
                          : plan.blocks == 1 ? BARRIER
                                             : ARRIVAL + BYTE * plan.exchanged;
  const double products = plan.tensor_cores ? (plan.back ? 140 : 95) : (plan.back ? 120 : 30);
  const double work = std::max(plan.products * (plan.tensor_cores ? FRAGMENT * (plan.back ? 1.16 : 1.0) : NUMBER), plan.words * WORD);
  const double neurons = (plan.back ? 130 : 110) + (plan.back ? 235 : 155) * plan.units + (plan.tensor_cores ? 0 : 60);
  return exchange + products + neurons + work * resident;
}

/// Returns the seconds of a run of `batch` samples and `steps` steps.
inline double recurrent_seconds(const RecurrentPlan &plan, int batch, int steps) {
  // The launch and the loading of a block's weights come first.
  constexpr double CLOCKS = 1.66e9, START = 1.5e-6, WEIGHT = 2.6e-10;
  const int clusters = (batch + plan.samples - 1) / plan.samples, each = blocks_on_processor(plan);
  const int one = plan.over_memory ? nominal_teams(plan.blocks) : nominal_clusters(plan.blocks), all = one * each;
  const int rounds = (clusters + all - 1) / all, resident = std::min(each, (std::min(clusters, all) + one - 1) / one);
  return START + rounds * (plan.weights * WEIGHT + steps * recurrent_step_clocks(plan, resident) / CLOCKS);
}

inline std::string recurrent_text(const RecurrentPlan &plan) {
  return std::string(plan.tensor_cores ? "tensor cores" : "float32") +
         (plan.blocks == 1 ? ", single blocks, "
                           : (plan.over_memory ? ", teams of " : ", clusters of ") + std::to_string(plan.blocks) + " blocks, ") +
         std::to_string(plan.samples) + (plan.samples == 1 ? " sample" : " samples") + " each";
}

} // namespace snnc

#endif
