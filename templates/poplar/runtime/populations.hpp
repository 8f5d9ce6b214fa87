// Blocks, groups and relays of populations, and variables that are divided by them.
#ifndef SNNC_POPULATIONS_HPP
#define SNNC_POPULATIONS_HPP

#include "constants.hpp"
#include "snnc_files.hpp"

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace snnc {

/// Neurons [first, first + count) of the samples [sample, sample + samples), on one worker of a tile.
struct Block {
  unsigned tile, first, count, sample, samples;
  std::size_t index, group, replica;
};

/// The blocks [begin, end) of one tile with the same neurons; they share weights.
struct Group {
  unsigned tile, first, count;
  std::size_t begin, end, index, replica;
};

/// The groups [begin, end) of one tile: the neurons [first, first + count) of a replica.
struct Home {
  unsigned tile, first, count;
  std::size_t begin, end, replica;
};

/// All neurons for the samples [sample, sample + samples).
struct Replica {
  unsigned sample, samples;
};

/// Samples [sample, sample + samples) of a source, stored on a tile.
struct Relay {
  unsigned tile, sample, samples;
  std::size_t index;
};

/// A tile of a target replica that packs rows [first, first + count) of groups [begin, end) for the homes [home_begin, home_end) of the source's first
/// replica.
struct Packer {
  unsigned tile, first, count, columns;
  std::size_t begin, end, home_begin, home_end, replica, index;
};

/// The groups [begin, end) and neurons [first, first + count) of a tile, which are the same in each replica.
struct TileGroups {
  std::size_t begin, end;
  unsigned first, count;
};

/// Blocks in the order of replicas, tiles, neurons, samples. All replicas divide the neurons in the same way.
struct Population {
  unsigned neurons = 0;
  std::vector<Block> blocks;
  std::vector<Group> groups;
  std::vector<Home> homes;
  std::vector<Replica> replicas;
  std::vector<TileGroups> tiles;
  /// Index in `tiles` of each group of a replica.
  std::vector<std::size_t> tile_of;

  explicit Population(const Table &table);

  /// Returns the maximum number of neurons per tile.
  unsigned most_neurons() const;
  /// Returns the mask units per tile, such that each group has as many as the largest group needs; a unit has 32 neurons.
  unsigned units() const;
  /// Returns the first neuron of each unit, tile by tile, then the total number of neurons.
  std::vector<unsigned> first_of_unit() const;
  /// Returns the first neuron of each tile, then the total number of neurons.
  std::vector<unsigned> first_of_tile() const;
  /// Returns the mask units [begin, end) that a group writes; the last group of a tile also writes the unused ones.
  std::pair<unsigned, unsigned> own_units(const Block &b) const;
  unsigned words_of(const Block &b, unsigned unit) const;
  /// Returns the number of groups of a replica.
  std::size_t cuts() const;
  /// Returns the group of a replica with the same neurons as `g`.
  const Group &twin(const Group &g, std::size_t replica) const;

private:
  unsigned largest = 0;

  unsigned units_of_group() const;

  template <class Size> unsigned most(const Size &size) const;

  void add_group(unsigned tile, unsigned first, unsigned count);
};

/// Returns, for each run of tiles of a replica with equal groups: the number of tiles, neurons and groups per tile, and neurons per group.
std::vector<unsigned> runs_of_tiles(const Population &p);

std::vector<Relay> relays_of(const Table &table);

/// Returns the division of the mask units of a relay's samples among its workers, as one list: the first piece of each worker (and the end of
/// the last one's); then, for each piece, its sample, the position of its first unit in the received data, the number of consecutive units
/// there, the number of all its units, the index of the first of them among the units of a sample, begin and end of its ids in the relay's
/// list of found ids, and the first and last piece (plus one) of its sample.
std::vector<unsigned> relay_pieces(const Population &p, const Relay &r, unsigned workers);

/// A tile of a table.
struct Place {
  unsigned tile;
};

std::vector<Place> places(const Table &table);

/// A tile that reads words [first, last), which other tiles write.
struct Reader {
  unsigned tile, first, last;
  std::size_t index;
};

std::vector<Reader> readers_of(const Table &table);

/// One number per IPU, on its first tile, so that the IPU's vertices read it locally.
struct OnIpus {
  poplar::Tensor all;
  std::vector<Place> places;
  unsigned tiles_per_ipu;

  /// Returns the number on a tile's IPU.
  const poplar::Tensor operator[](unsigned tile) const { return all[tile / tiles_per_ipu]; }
  /// Returns the numbers on the IPUs of relays.
  poplar::Tensor at(const std::vector<Relay> &relays) const;
};

/// A flat variable; each part is on one tile.
struct Parts {
  poplar::Tensor all;
  std::vector<std::size_t> begin;

  poplar::Tensor operator[](std::size_t part) const;
  poplar::Tensor range(std::size_t first, std::size_t last) const;
  std::size_t size(std::size_t part) const { return begin[part + 1] - begin[part]; }
};

/// Returns the concatenated parts of several variables, in the order of a table of (variable, part).
poplar::Tensor in_order(const std::vector<const Parts *> &from, const Table &table);

/// A sum per block: those of the first block of each group, which add the other sums and which the host reads, and those of the other blocks.
struct Sums {
  const Population *population;
  Parts first, others;

  poplar::Tensor operator[](std::size_t block) const;
  poplar::Tensor of_others(const Group &g) const;
};

/// [rows][batch] with a variable for each replica, so that a tile's part of it is contiguous.
struct Matrix {
  std::vector<poplar::Tensor> parts;
  std::vector<Replica> replicas;

  /// Returns rows [first, last) of samples [sample, sample + samples), flat.
  poplar::Tensor region(std::size_t first, std::size_t last, std::size_t sample, std::size_t samples) const;
  std::size_t rows() const;
};

/// Data that blocks send to relays, [tiles][samples][row] with a variable for each replica: consecutive samples of a tile are contiguous.
struct Sent {
  std::vector<poplar::Tensor> parts;
  std::vector<Replica> replicas;

  /// Returns [tiles][samples][row] of a relay's samples, flat.
  poplar::Tensor to(const Relay &r) const;

  /// Returns what a tile of a replica sends, flat.
  poplar::Tensor of_tile(const Population &p, const Home &h) const;

  /// Returns [samples][elements] of a block: the elements [begin, end) of its tile's rows, flat.
  poplar::Tensor of(const Population &p, const Block &b, unsigned begin, unsigned end) const;
};

/// Returns the mask words that a block writes, with `unit` words per unit.
poplar::Tensor own_mask(const Sent &mask, const Population &p, const Block &b, unsigned unit);

/// Returns the values that a block writes.
poplar::Tensor own_values(const Sent &values, const Population &p, const Block &b);

/// Device element i is element order[i] of the host's tensor; NOWHERE marks padding.
using Order = std::vector<std::uint32_t>;
constexpr std::uint32_t NOWHERE = 0xffffffffu;

/// Returns the numbers 0 to `numbers` - 1, repeated to fill `elements` elements.
Order repeated(std::uint32_t numbers, std::size_t elements);

/// Copies that run together, in one exchange.
class Copies {
public:
  void add(const poplar::Tensor &source, const poplar::Tensor &destination);

  void end(poplar::program::Sequence &program, const char *name) const;

private:
  std::vector<poplar::Tensor> from, to;
};

/// Returns the elements of an array, rounded up to whole pairs so that the next array is also aligned.
std::size_t even(std::size_t elements);

/// Elements [begin, end) of a group's parameters, which one of its replicas updates.
struct Share {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

/// Returns a replica's share, in whole pairs, so that each share is aligned.
Share share_of(const Population &p, std::size_t elements, std::size_t replica);

} // namespace snnc

// Compiled once, in populations.cpp.
extern template class std::vector<snnc::Block>;
extern template class std::vector<snnc::Group>;
extern template class std::vector<snnc::Home>;
extern template class std::vector<snnc::Place>;
extern template class std::vector<snnc::Relay>;
extern template class std::vector<snnc::Replica>;
extern template class std::vector<snnc::Table>;
extern template class std::vector<snnc::TileGroups>;

#endif
