// The variables that each operation reads and writes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace poplar::core {

struct EngineData;
struct Op;

/// A set of small numbers.
class Set {
public:
  explicit Set(std::size_t size = 0) : words_((size + 63) / 64) {}
  bool has(std::size_t i) const { return words_[i / 64] >> i % 64 & 1; }
  void add(std::size_t i) { words_[i / 64] |= std::uint64_t(1) << i % 64; }
  Set &operator|=(const Set &other) { return change(other, [](std::uint64_t a, std::uint64_t b) { return a | b; }); }
  Set &operator&=(const Set &other) { return change(other, [](std::uint64_t a, std::uint64_t b) { return a & b; }); }
  Set &operator^=(const Set &other) { return change(other, [](std::uint64_t a, std::uint64_t b) { return a ^ b; }); }
  Set &operator-=(const Set &other) { return change(other, [](std::uint64_t a, std::uint64_t b) { return a & ~b; }); }
  friend Set operator|(Set a, const Set &b) { return a |= b; }
  friend Set operator-(Set a, const Set &b) { return a -= b; }
  bool operator==(const Set &other) const { return words_ == other.words_; }
  bool operator<(const Set &other) const { return words_ < other.words_; }

  template <class F> void each(F &&f) const {
    for (std::size_t w = 0; w < words_.size(); ++w)
      for (std::uint64_t left = words_[w]; left != 0; left &= left - 1)
        f(64 * w + std::size_t(__builtin_ctzll(left)));
  }

private:
  template <class F> Set &change(const Set &other, F &&f) {
    for (std::size_t w = 0; w < words_.size(); ++w)
      words_[w] = f(words_[w], other.words_[w]);
    return *this;
  }
  std::vector<std::uint64_t> words_;
};

struct TileBytes {
  std::uint32_t tile;
  std::uint64_t bytes;
};

/// Variables other than constants, by number. As in Poplar, a variable is treated as a whole: it is overwritten if one compute set, copy
/// or WriteUndef writes all its elements, and a vertex writes all of an output before it reads any of it.
struct Usage {
  /// Index among the variables of the graph, and bytes on tiles.
  std::vector<std::uint32_t> variables;
  std::vector<std::vector<TileBytes>> bytes;
  /// Variables that a site reads, writes, and writes completely; see siteOf.
  std::vector<Set> reads, writes, overwrites;
  /// Variables that the host may read or write between two runs.
  Set visible;
};

/// All operations that run the same compute set are one site; any other operation is a site by itself.
std::size_t siteOf(const EngineData &engine, std::uint32_t op);
Usage findUsage(const EngineData &engine);

} // namespace poplar::core
