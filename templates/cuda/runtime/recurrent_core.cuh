// A population with a dense recurrence, one way through time: its shapes, the choice among them, and the launch.
#ifndef SNNC_RECURRENT_CORE_CUH
#define SNNC_RECURRENT_CORE_CUH

#include "launch.hpp"
#include "recurrent_choice.hpp"
#include "recurrent_float32.cuh"
#include "recurrent_mma.cuh"

#include <algorithm>

namespace snnc {

/// Shapes of a population, each a kernel of its own.
template <class... Shapes> struct ShapeList {};

/// The shapes that are compiled for a population, of which one is chosen: two at most, since each takes the compiler's time. Up to 256
/// neurons one of them needs no clusters.
template <class Way> struct ShapesOf {
  static constexpr int WORDS = parts_of(Way::SIZE, 32);
  /// A block keeps all weights in its registers.
  using SmallMma = MmaShape<Way, 1, 1, (WORDS <= 2 ? 8 : 16)>;
  /// Factors that are to be rounded are rounded whatever the batch.
  using Small = std::conditional_t<Way::PARTS == 1, ShapeList<SmallMma>, ShapeList<Float32Shape<Way, 1, 8>, SmallMma>>;
  /// For few samples eight blocks share the neurons; for many each block has eight samples, and second halves of weights in shared memory.
  using Middle = ShapeList<MmaShape<Way, 8, 1, 8>, MmaShape<Way, 1, 1, 16>>;
  using Large = ShapeList<MmaShape<Way, 8, 1, 16>>;
  using Largest = ShapeList<MmaShape<Way, 16, 1, 16>, MmaShape<Way, 16, 2, 16>>;
  using All =
      std::conditional_t<(WORDS <= 4), Small, std::conditional_t<(WORDS <= 8), Middle, std::conditional_t<(WORDS <= 16), Large, Largest>>>;
};

/// What the prediction asks of a shape.
template <class Shape> RecurrentPlan plan_of(bool tensor_cores, bool back, double products, double words) {
  return {tensor_cores,
          back,
          Shape::BLOCKS,
          Shape::SAMPLES,
          Shape::WARPS,
          products,
          words,
          Shape::Exchange::SENT_BYTES,
          Shape::Own::OF_WARP,
          static_cast<double>(Shape::NEURONS) * Shape::INPUTS,
          Shape::Room::BYTES};
}
template <class Way, int BLOCKS, int GROUPS, int WARPS> RecurrentPlan plan_of(const MmaShape<Way, BLOCKS, GROUPS, WARPS> &) {
  using Shape = MmaShape<Way, BLOCKS, GROUPS, WARPS>;
  const int products = Way::PARTS == 1 ? 1 : Way::BACK ? 3 : 2;
  const double words = static_cast<double>(Shape::traffic(Shape::TILE_GROUPS)) * Shape::SAMPLES +
                       (Shape::LOW_SHARED ? Shape::FRAGMENTS * WARPS * 128.0 : 0.0);
  return plan_of<Shape>(true, Way::BACK, static_cast<double>(products) * Shape::FRAGMENTS * WARPS * GROUPS, words);
}
template <class Way, int BLOCKS, int WARPS> RecurrentPlan plan_of(const Float32Shape<Way, BLOCKS, WARPS> &) {
  using Shape = Float32Shape<Way, BLOCKS, WARPS>;
  return plan_of<Shape>(false, Way::BACK, static_cast<double>(Shape::REGISTERS) * Shape::THREADS, 2.0 * WARPS * Shape::NEURONS);
}

/// Runs the steps of a segment, forward (ForwardWay) or back (BackWay).
template <class Way, class Shapes = typename ShapesOf<Way>::All> class RecurrentCore {
public:
  using Net = typename Way::Net;

  /// Chooses a shape for so many samples, or takes the one of that number; false where the device can run none. Which one depends on the
  /// device only by what it cannot run: results of a network and a batch are the same bits on any number of multiprocessors.
  bool choose(int batch, int number = -1) { return choose_of(batch, number, Shapes()); }

  void run(const Net &net, const Run &run) const {
    launch_clusters(kernel, (run.batch + plan.samples - 1) / plan.samples, size(), net, run);
  }

  double seconds(int batch, int steps) const { return recurrent_seconds(plan, batch, steps); }
  std::string text() const { return recurrent_text(plan); }

private:
  using Kernel = void (*)(WHOLE_GRID Net, WHOLE_GRID Run);
  Kernel kernel = nullptr;
  RecurrentPlan plan{};

  ClusterSize size() const { return {plan.blocks, plan.warps * LANES, plan.shared}; }

  template <class... Each> bool choose_of(int batch, int number, ShapeList<Each...>) {
    constexpr int STEPS = 100;
    kernel = nullptr;
    RecurrentCore best;
    int at = -1;
    const auto consider = [&](auto shape) {
      using Shape = decltype(shape);
      ++at;
      if constexpr (Shape::FITS) {
        plan = plan_of(shape);
        kernel = recurrent_kernel<Way, Shape>;
        if ((number < 0 || number == at) && runs(plan) && (best.kernel == nullptr || seconds(batch, STEPS) < best.seconds(batch, STEPS)))
          best = *this;
      }
    };
    (consider(Each()), ...);
    *this = best;
    return kernel != nullptr;
  }

  bool runs(const RecurrentPlan &of) const { return (!of.tensor_cores || has_fragments()) && runs_clusters(kernel, size()); }
};

} // namespace snnc

#endif
