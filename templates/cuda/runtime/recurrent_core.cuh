// The recurrent core of a population in one pass: its shapes, the choice among them, and the launch.
#ifndef SNNC_RECURRENT_CORE_CUH
#define SNNC_RECURRENT_CORE_CUH

#include "launch.hpp"
#include "recurrent_choice.hpp"
#include "recurrent_float32.cuh"
#include "recurrent_mma.cuh"

#include <algorithm>

namespace snnc {

/// Shapes of a population; each is a separate kernel.
template <class... Shapes> struct ShapeList {};

/// The shapes that are compiled for a population, one of which is chosen at run time: at most two plus one for older devices, because each
/// takes compile time. For up to 256 neurons, one of them needs no clusters.
template <class Way> struct ShapesOf {
  static constexpr int WORDS = parts_of(Way::SIZE, 32);
  /// A single block keeps all weights in its registers.
  using SmallMma = MmaShape<Way, 1, 1, (WORDS <= 2 ? 8 : 16)>;
  /// If factors are to be rounded, they are rounded for any batch size, so there is no float32 shape.
  using Small = std::conditional_t<Way::PARTS == 1, ShapeList<SmallMma>, ShapeList<Float32Shape<Way, 1, 8>, SmallMma>>;
  /// For few samples, eight blocks share the neurons; for many, each block has eight samples and keeps the low halves of weights in shared memory.
  using Middle = ShapeList<MmaShape<Way, 8, 1, 8>, MmaShape<Way, 1, 1, 16>>;
  /// A block has 32 neurons; the last shape of these lists is for devices without clusters.
  template <Link LINK> using Over = MmaShape<Way, WORDS, 1, 16, LINK>;
  using Large = ShapeList<MmaShape<Way, 8, 1, 16>, Over<Link::OLD_DEVICE>>;
  using Largest = ShapeList<MmaShape<Way, 16, 1, 16>, MmaShape<Way, 16, 2, 16>, Over<Link::OLD_DEVICE>>;
  /// For weights that do not fit in the blocks of a cluster.
  using Beyond = ShapeList<Over<Link::MEMORY>>;
  using UpToClusters = std::conditional_t<(WORDS <= 16), Large, std::conditional_t<(WORDS <= 32), Largest, Beyond>>;
  using All = std::conditional_t<(WORDS <= 4), Small, std::conditional_t<(WORDS <= 8), Middle, UpToClusters>>;
};

/// Returns the properties of a shape for the prediction.
template <class Shape> RecurrentPlan plan_of(bool tensor_cores, bool back, double products, double words) {
  return {tensor_cores,
          back,
          Shape::OVER_MEMORY,
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
template <class Way, int BLOCKS, int GROUPS, int WARPS, Link LINK>
RecurrentPlan plan_of(const MmaShape<Way, BLOCKS, GROUPS, WARPS, LINK> &) {
  using Shape = MmaShape<Way, BLOCKS, GROUPS, WARPS, LINK>;
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

  /// Chooses a shape for `batch` samples, or the shape with the given number; false if the device can run none. The choice depends on the
  /// device only through the shapes that it cannot run, so results of a network and a batch have the same bits on any number of multiprocessors.
  bool choose(int batch, int number = -1) { return choose_of(batch, number, Shapes()); }

  void run(const Net &net, const Run &run) {
    const int groups = (run.batch + chosen.plan.samples - 1) / chosen.plan.samples;
    if (!chosen.plan.over_memory)
      return launch_clusters(chosen.kernel, groups, size(chosen.plan), net, run);
    const int teams = std::min(groups, chosen.teams);
    Run shared = run;
    shared.counters = memory.data();
    memory.clear_first(static_cast<std::size_t>(teams * COUNTER_WORDS));
    launch_resident(chosen.kernel, teams * chosen.plan.blocks, chosen.plan.warps * LANES, chosen.plan.shared, net, shared);
  }

  double seconds(int batch, int steps) const { return recurrent_seconds(chosen.plan, batch, steps); }
  std::string text() const { return recurrent_text(chosen.plan); }

private:
  using Kernel = void (*)(WHOLE_GRID Net, WHOLE_GRID Run);
  /// A chosen shape; if its blocks communicate through memory, the number of resident teams, and the words of memory per team.
  struct Choice {
    Kernel kernel = nullptr;
    RecurrentPlan plan{};
    int teams = 0, words = 0;
  };
  Choice chosen;
  device::Array<unsigned> memory;

  static ClusterSize size(const RecurrentPlan &plan) { return {plan.blocks, plan.warps * LANES, plan.shared}; }

  template <class... Each> bool choose_of(int batch, int number, ShapeList<Each...>) {
    constexpr int STEPS = 100;
    chosen = {};
    int at = -1;
    const auto consider = [&](auto shape) {
      using Shape = decltype(shape);
      ++at;
      // A check on the CPU has clusters, so shapes for devices without clusters are not compiled.
      if constexpr (Shape::FITS && !(ON_HOST && Shape::LINK == Link::OLD_DEVICE)) {
        Choice made{recurrent_kernel<Way, Shape>, plan_of(shape)};
        if constexpr (Shape::OVER_MEMORY)
          made.words = MemoryRing<typename Shape::Exchange, typename Shape::Own, Way::DELAY>::WORDS;
        if ((number < 0 || number == at) && runs(made, Shape::LINK) &&
            (chosen.kernel == nullptr || recurrent_seconds(made.plan, batch, STEPS) < seconds(batch, STEPS)))
          chosen = made;
      }
    };
    (consider(Each()), ...);
    if (chosen.plan.over_memory)
      memory.make_room(static_cast<std::size_t>(chosen.teams) * static_cast<std::size_t>(COUNTER_WORDS + chosen.words));
    return chosen.kernel != nullptr;
  }

  static bool runs(Choice &of, Link link) {
    if (of.plan.tensor_cores && !has_fragments())
      return false;
    if (!of.plan.over_memory)
      return runs_clusters(of.kernel, size(of.plan));
    if (link == Link::OLD_DEVICE && has_clusters())
      return false;
    of.teams = resident_blocks(of.kernel, of.plan.warps * LANES, of.plan.shared) / of.plan.blocks;
    return of.teams > 0;
  }
};

} // namespace snnc

#endif
