// A check that no operation reads elements that are undefined since WriteUndef.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "view.hpp"

namespace poplar::core {

struct GraphData;
struct Superstep;

/// Whether SNNC_CHECK_UNDEFINED requests the check.
bool checksUndefined();

/// The undefined elements.
class UndefinedElements {
public:
  explicit UndefinedElements(const GraphData &graph);
  void define(const std::vector<Block> &blocks) { mark(blocks, false); }
  void undefine(const std::vector<Block> &blocks) { mark(blocks, true); }
  /// Throws application_runtime_error if an element is undefined; user() describes the reader.
  template <class User> void require(const std::vector<Block> &blocks, User &&user) const {
    for (const Block &block : blocks)
      if (const Index at = firstIn(block); at >= 0)
        fail(block.var, at, user());
  }
  void copy(const std::vector<Block> &from, const std::vector<Block> &to) { setStates(to, statesOf(from)); }
  /// For each element of the blocks, in order, whether it is undefined; empty if all are defined.
  std::vector<bool> statesOf(const std::vector<Block> &blocks) const;
  void setStates(const std::vector<Block> &blocks, const std::vector<bool> &states);
  void beforeStep(const Superstep &step) const;
  void afterStep(const Superstep &step);
  void clear();

private:
  void mark(const std::vector<Block> &blocks, bool value);
  Index firstIn(const Block &block) const;
  [[noreturn]] void fail(std::uint32_t var, Index at, const std::string &user) const;

  const GraphData &graph_;
  std::vector<std::vector<bool>> undefined_;
};

} // namespace poplar::core
