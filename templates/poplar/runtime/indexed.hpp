// Indexed connections: tables of runs on tiles, and weights that some tiles own and others copy.
#ifndef SNNC_INDEXED_HPP
#define SNNC_INDEXED_HPP

#include "layout.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace snnc {

/// Elements [first, first + count) of some array.
struct Range {
  std::size_t first, count;
};

/// Elements [first, first + count) of a connection's weights, on the tile that updates them.
struct Owner {
  unsigned tile;
  std::size_t first, count;
  bool learned;
  std::size_t index;
};

std::vector<Owner> owners_of(const Table &table);

std::vector<Owner> learned_owners(const std::vector<Owner> &owners);

/// A worker's share of the pieces that an owner sums; the first worker adds the sums of the others.
struct SumShare {
  unsigned tile;
  std::size_t owner, count, part, parts;
};

std::vector<SumShare> shares_of_sums(const std::vector<Owner> &owners, std::size_t parts);

/// Returns the owners of elements in [first, last).
std::vector<Owner> owners_between(const std::vector<Owner> &owners, std::size_t first, std::size_t last);

Order order_of_table(const Table &table);

/// Returns the position of each element of an owner in the host's array.
std::vector<unsigned> places_of(const Owner &owner, const Table &order);

/// Creates a variable whose parts are on the tiles of groups, blocks or owners.
template <class Items, class Size>
Parts parts_on(poplar::Graph &graph, const Items &items, const char *name, const Size &size, const poplar::Type &type = poplar::FLOAT) {
  return parts_of(graph, sizes_of(items, size), type, name);
}

/// Creates the first `weights` elements as half; each owner has whole words, padded if its number of elements is odd.
Parts half_theta(poplar::Graph &graph, const std::vector<Owner> &owners, const char *name, std::size_t weights);

/// Returns the same elements without padding.
poplar::Tensor without_padding(const Parts &theta, const std::vector<Owner> &owners, std::size_t weights);

/// The tables of an indexed connection on the side of one of its populations, from plan.bin, for the groups of one replica. The first table
/// contains where the numbers of each group begin. The others contain, for all groups: where the runs of each row begin; the runs (place,
/// weight, length); the elements of the weights that a group uses; the targets that it reads; the keys of rows that are found by key.
class Side {
public:
  Side(const Population &population, const std::vector<Table> &tables, std::size_t at);

  template <class Part> unsigned low(const Part &part) const;
  template <class Part> unsigned span(const Part &part) const;
  /// Returns the number of elements in a group's copy of the weights.
  template <class Part> unsigned size(const Part &part) const;
  /// Returns how many of these are among the first `last` elements.
  unsigned size(const Block &b, std::size_t last) const;
  /// Returns the elements of the weights that a group uses, in order.
  template <class Part> std::vector<Range> used(const Part &part) const;
  template <class Part> std::vector<Range> read(const Part &part) const;

  template <class Number> Parts rows(poplar::Graph &graph, const poplar::Type &type) const;

  /// Returns the source of each row, if rows are found by key.
  template <class Number> Parts keys(poplar::Graph &graph, const poplar::Type &type) const;

  /// Returns a column of the runs: 0: places, 1: weights, 2: lengths.
  template <class Number> Parts runs(poplar::Graph &graph, const poplar::Type &type, std::size_t column) const;

  /// Returns constant weights, selected for each group from `values` (bits of floats).
  Parts constants(poplar::Graph &graph, const Table &values) const;

  /// Creates a copy of the weights that each group uses, or of those that are in [first, last).
  Parts copies(poplar::Graph &graph, const char *name) const;
  Parts copies(poplar::Graph &graph, const char *name, const poplar::Type &type, std::size_t first, std::size_t last) const;

  /// Returns the source of the copies; `weights` contains the elements [first, last).
  poplar::Tensor from(const poplar::Tensor &weights) const;
  poplar::Tensor from(const poplar::Tensor &weights, std::size_t first, std::size_t last) const;

  /// Creates the private gradients of each block.
  Parts private_sums(poplar::Graph &graph, const char *name) const;

  /// Returns the rows of a matrix that a group reads, for the samples of its replica; one row if it reads none.
  poplar::Tensor rows_of(const Matrix &matrix, const Block &b) const;

private:
  enum Column : std::size_t { LOW, SPAN, ROWS, RUNS, USED, READ, SIZE, KEYS };
  const Population &p;
  const Table &groups, &row_starts, &all_runs, &used_ranges, &read_ranges, &all_keys;

  unsigned at(std::size_t group, Column column) const;
  std::size_t cut(const Group &g) const;
  std::size_t cut(const Block &b) const;

  std::vector<Range> ranges(const Table &table, std::size_t group, Column column) const;
  template <class Part> std::vector<Range> used_between(const Part &part, std::size_t first, std::size_t last) const;
};

/// The partial gradients for each owner in the groups of all replicas, and their positions.
class Shares {
public:
  Shares(const Population &p, const Side &side, const std::vector<Owner> &owners, const Parts &sums);

  /// Returns the pieces of a share of an owner's gradient; if there are none, a placeholder that is not read.
  poplar::Tensor of(const SumShare &s, const poplar::Tensor &instead) const;
  std::vector<unsigned> place(const SumShare &s) const;
  std::size_t number(const SumShare &s) const;

private:
  std::ptrdiff_t begin(const SumShare &s, std::size_t part) const;

  std::vector<std::vector<poplar::Tensor>> pieces;
  std::vector<std::vector<unsigned>> places;
};

/// Returns where a share is summed: the first share in the gradient itself.
poplar::Tensor summed(const Parts &total, const Parts &rest, const SumShare &s);

/// Returns the groups with several blocks, whose private sums must be added.
std::vector<Group> with_several_blocks(const Population &p);

} // namespace snnc

#endif
