// The shapes of a recurrent core that are compiled for a population in one pass.
#ifndef SNNC_RECURRENT_SHAPES_CUH
#define SNNC_RECURRENT_SHAPES_CUH

#include "recurrent_float32.cuh"
#include "recurrent_mma.cuh"

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

template <class Way, class Shape> CoreShape<typename Way::Net> core_shape(const Shape &shape) {
  CoreShape<typename Way::Net> made;
  // A check on the CPU usually has clusters; it then needs no shapes for devices without them.
  if constexpr (Shape::FITS && !(ON_HOST && !CHECKS_OLD_DEVICE && Shape::LINK == Link::OLD_DEVICE)) {
    made = {recurrent_kernel<Way, Shape>, plan_of(shape), Shape::LINK, 0};
    if constexpr (Shape::OVER_MEMORY)
      made.words = MemoryRing<typename Shape::Exchange, typename Shape::Own, Way::DELAY>::WORDS;
  }
  return made;
}

/// Static, because a process shares the variables of other functions among the projects that it loads, whose networks have the same names.
template <class Way, class... Shapes> static CoreShapes<typename Way::Net> core_shapes_of(ShapeList<Shapes...>) {
  static const CoreShape<typename Way::Net> all[] = {core_shape<Way>(Shapes())...};
  return {all, sizeof...(Shapes)};
}

/// Returns the compiled shapes of a population.
template <class Way, class Shapes = typename ShapesOf<Way>::All> CoreShapes<typename Way::Net> core_shapes() {
  return core_shapes_of<Way>(Shapes());
}

} // namespace snnc

#endif
