// Products over a whole sequence, by the kernels that are faster on this device. Independent of the network, so compiled once.
#include "whole_products.hpp"

#include "whole_starts.cuh"
#include "whole_trial.cuh"

namespace snnc {

std::size_t prepared_bytes(WholeUse use, Factors factors, int inputs, int outputs) {
  const PreparedWeights of{use, factors, inputs, outputs, nullptr};
  return plane_bytes(of) + static_cast<std::size_t>(pieces(outputs_of(of), STRIP)) * STRIP * sizeof(float);
}

namespace {

Split split_of(const PreparedWeights &to) {
  if (to.use == WholeUse::SPIKES)
    return to.factors == Factors::ROUNDED ? Split::SPIKES_ROUNDED : to.factors == Factors::TF32 ? Split::SPIKES_TF32 : Split::SPIKES;
  const int parts = parts_of(to.use, to.factors);
  return to.factors == Factors::HALF_WEIGHTS ? Split::HALF_WEIGHTS
         : parts == 1                        ? Split::NUMBERS_ROUNDED
         : parts == 2                        ? Split::NUMBERS
                                             : Split::NUMBERS_THREE;
}

WeightTask task_of(const Preparation &of, int first_block) {
  constexpr int MAX_BLOCKS = 264;
  const PreparedWeights &to = of.to;
  const bool back = to.use == WholeUse::BACK;
  const std::size_t down = static_cast<std::size_t>(of.from.outputs);
  const WeightView view{of.from.data, depths_of(to), outputs_of(to), back ? 1 : down, back ? down : 1};
  const int steps = steps_of(to), chunks = pieces(view.outputs, STRIP) * (STRIP / LANES), warps = MAX_THREADS / LANES;
  // Each block of a group that splits 32 columns for spikes finds their ranges by itself.
  const int shares = most_blocks(std::max(1, std::min(pieces(steps * 4, warps), MAX_BLOCKS / chunks)));
  const int blocks = to.use == WholeUse::SPIKES ? chunks * shares : most_blocks(std::min(MAX_BLOCKS, pieces(chunks * steps * 4, warps)));
  return {{view, steps, static_cast<char *>(to.memory), scales_of(to)}, split_of(to), shares, first_block + blocks};
}

} // namespace

void prepare_weights(std::initializer_list<Preparation> all) {
  WeightTasks of{};
  int count = 0, end = 0;
  for (const Preparation *one = all.begin(); one != all.end(); ++one) {
    of.tasks[count] = task_of(*one, end);
    end = of.tasks[count++].end;
    if (count == MAX_TASKS || one + 1 == all.end()) {
      launch_blocks(split_weights, end, MAX_THREADS, MAX_THREADS * sizeof(float), of);
      count = end = 0;
    }
  }
}

int whole_slice_rows(int rows, int inputs, int outputs) {
  // Clocks of a step of a tile, other clocks of a block, and bytes per clock and multiprocessor for writing and reading slices.
  // They are always those of one device model, so that sums are the same on all devices.
  constexpr double PROCESSORS = 132, BESIDE = 3000, BYTES = 10;
  constexpr int MAX_SLICES = 128;
  const double step = outputs <= NARROW ? 350 : 1100;
  const double tiles = static_cast<double>(pieces(inputs, TILE_ROWS)) * pieces(outputs, outputs <= NARROW ? NARROW : WIDE);
  double fewest = -1;
  int best = rows;
  for (int slices = 1; slices <= MAX_SLICES; ++slices) {
    const int length = pieces(pieces(std::max(rows, 1), slices), STEP_DEPTH) * STEP_DEPTH, count = pieces(std::max(rows, 1), length);
    const double rounds = std::ceil(tiles * count / PROCESSORS), bytes = 8.0 * count * inputs * outputs;
    const double clocks = rounds * (length / STEP_DEPTH * step + BESIDE) + bytes / (BYTES * PROCESSORS);
    if (fewest < 0 || clocks < fewest) {
      fewest = clocks;
      best = length;
    }
  }
  return best;
}

bool products_by_groups() { return products_by() == By::GROUPS; }

void whole_forward(const std::uint32_t *spikes, int rows, const PreparedWeights &weights, const DenseSums &sums) {
  forward(spikes, rows, weights, sums, products_by());
}
void whole_forward(const float *numbers, int rows, const PreparedWeights &weights, const DenseSums &sums) {
  forward(numbers, rows, weights, sums, products_by());
}
void whole_back(const float *deltas, int rows, int shift, int limit, const PreparedWeights &weights, const DenseSums &sums) {
  back(deltas, rows, shift, limit, weights, sums, products_by());
}
void whole_back(const Short<BFloat16> *deltas, int rows, int shift, int limit, const PreparedWeights &weights, const DenseSums &sums) {
  back(deltas, rows, shift, limit, weights, sums, products_by());
}
void whole_gradient(const std::uint32_t *spikes, const float *deltas, int rows, int inputs, int outputs, Factors factors,
                    const Slices &to) {
  gradient(spikes, deltas, rows, inputs, outputs, factors, to, products_by());
}
void whole_gradient(const std::uint32_t *spikes, const Short<BFloat16> *deltas, int rows, int inputs, int outputs, Factors factors,
                    const Slices &to) {
  gradient(spikes, deltas, rows, inputs, outputs, factors, to, products_by());
}
void whole_gradient(const float *numbers, const float *deltas, int rows, int inputs, int outputs, Factors factors, const Slices &to) {
  gradient(numbers, deltas, rows, inputs, outputs, factors, to, products_by());
}
void whole_gradient(const float *numbers, const Short<BFloat16> *deltas, int rows, int inputs, int outputs, Factors factors,
                    const Slices &to) {
  gradient(numbers, deltas, rows, inputs, outputs, factors, to, products_by());
}

} // namespace snnc
