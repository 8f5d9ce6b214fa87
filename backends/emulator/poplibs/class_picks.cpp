// Vertices of popnn that programs add by name: the largest or smallest of some numbers, and its label.
#include <type_traits>

#include <poplar/HalfFloat.hpp>
#include <poplar/VertexIntrospector.hpp>

#include "builtin.hpp"
#include "class_picks.hpp"

namespace poplibs {

using poplar::core::Direction;

namespace {

struct ClassPick {
  Type type;
  bool smallest;
};
template <class Archive> void describe(Archive &a, ClassPick &p) { a(p.type)(p.smallest); }

/// Stores the largest (smallest) number and its label; of equal numbers, the first.
template <class T> void pickFrom(const State &state, bool smallest) {
  using Compared = std::conditional_t<std::is_integral_v<T>, T, float>;
  const T *values = state.slots[0].as<T>();
  const std::uint32_t *labels = state.slots[1].as<std::uint32_t>();
  std::uint32_t best = 0;
  for (std::uint32_t i = 1; i < state.slots[0].count; ++i) {
    const Compared value = Compared(values[i]), held = Compared(values[best]);
    if (smallest ? value < held : value > held)
      best = i;
  }
  *state.slots[2].as<T>() = values[best];
  *state.slots[3].as<std::uint32_t>() = labels[best];
}

void runClassPick(const State &state) {
  const ClassPick &pick = *static_cast<const ClassPick *>(state.shared);
  if (pick.type == poplar::FLOAT)
    pickFrom<float>(state, pick.smallest);
  else if (pick.type == poplar::HALF)
    pickFrom<half>(state, pick.smallest);
  else if (pick.type == poplar::INT)
    pickFrom<std::int32_t>(state, pick.smallest);
  else
    pickFrom<std::uint32_t>(state, pick.smallest);
}

/// A load, a comparison and a branch per number.
std::uint64_t pickCycles(const poplar::VertexIntrospector &vertex, const poplar::Target &target) {
  return (20 + 3 * vertex.getFieldInfo("activations").size()) * target.getNumWorkerContexts();
}

} // namespace

const BuiltinKind classPickKind{"popnn.classPick", &runClassPick, &readShared<ClassPick>};

void addClassPicks(Graph &graph) {
  for (bool smallest : {false, true})
    for (const Type &type : {poplar::FLOAT, poplar::HALF, poplar::INT, poplar::UNSIGNED_INT})
      for (const Type &label : {poplar::UNSIGNED_INT, poplar::INT}) {
        const std::string which = smallest ? "Min" : "Max", small = smallest ? "min" : "max";
        const std::string name = "popnn::Reduce" + which + "ClassSparse<" + type.toString() + "," + label.toString() + ">";
        if (hasType(graph, name))
          continue;
        builtinType(graph, name,
                    {{"activations", Direction::Input, type},
                     {"labels", Direction::Input, label},
                     {small + "Value", Direction::Output, type, true},
                     {small + "Index", Direction::Output, label, true}},
                    classPickKind, ClassPick{type, smallest}, 120);
        graph.registerPerfEstimator(name, pickCycles);
      }
}

} // namespace poplibs
