// A check that nothing reads what WriteUndef left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "view.hpp"

namespace poplar::core {

struct GraphData;
struct Superstep;

/// Whether SNNC_CHECK_UNDEFINED asks for it.
bool checksUndefined();

/// Which elements hold nothing.
class UndefinedElements {
public:
  explicit UndefinedElements(const GraphData &graph);
  void define(const std::vector<Block> &blocks) { mark(blocks, false); }
  void undefine(const std::vector<Block> &blocks) { mark(blocks, true); }
  /// Throws application_runtime_error where an element holds nothing; user() says who reads.
  template <class User> void require(const std::vector<Block> &blocks, User &&user) const {
    for (const Block &block : blocks)
      if (const Index at = firstIn(block); at >= 0)
        fail(block.var, at, user());
  }
  void copy(const std::vector<Block> &from, const std::vector<Block> &to) { setStates(to, statesOf(from)); }
  /// Whether each element of the blocks holds nothing, in their order; empty where all hold something.
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
