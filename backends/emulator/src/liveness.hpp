// Liveness of variables: a variable is live where its current value may still be read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "usage.hpp"

namespace poplar::core {

/// Backward over the control flow: a variable is live from its overwriting to its last possible read. Variables that the host sees are live
/// everywhere; those that a program reads before it overwrites them are also live between two runs.
class Liveness {
public:
  Liveness(const EngineData &engine, const Usage &usage);

  /// Called with the program, an operation in it, the variables that must exist during the operation, and those live after it.
  using Visit = std::function<void(std::uint32_t program, std::uint32_t op, const Set &during, const Set &after)>;
  /// Visits every operation of every program, the last one first, once for each set of variables that is live after it.
  void walk(const Visit &visit) const;
  /// Live between two runs.
  const Set &between() const { return between_; }

private:
  using Place = std::pair<std::uint32_t, Set>;
  struct Walk {
    const Visit &visit;
    std::uint32_t program;
    std::set<Place> done;
  };

  Set before(std::uint32_t op, const Set &after, Walk *walk) const;
  Set beforeComposite(std::uint32_t op, const Set &after, Walk *walk) const;
  Set beforeLoop(const Op &op, std::size_t site, std::uint32_t number, const Set &after, Walk *walk) const;
  Set beforeChoice(const Op &op, std::size_t site, std::uint32_t number, const Set &after, Walk *walk) const;

  const EngineData &engine_;
  const Usage &usage_;
  Set between_;
  /// Returns the variables that are live before a program, given those that are live after it.
  mutable std::map<Place, Set> known_;
};

} // namespace poplar::core
