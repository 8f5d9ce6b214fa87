// Blocks, groups and relays of populations, and the variables that are cut along them.
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

/// The blocks [begin, end) of one tile that hold the same neurons; they share weights.
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

/// Packs the rows [first, first + count) of the groups [begin, end) of a target for the homes [home_begin, home_end) of the source's first
/// replica, on a tile of a replica of the target.
struct Packer {
  unsigned tile, first, count, columns;
  std::size_t begin, end, home_begin, home_end, replica, index;
};

/// Contents of a tile in each replica: the groups [begin, end) of a replica, the neurons [first, first + count).
struct TileGroups {
  std::size_t begin, end;
  unsigned first, count;
};

/// Blocks in the order of replicas, tiles, neurons, samples. All replicas cut the neurons in the same way.
struct Population {
  unsigned neurons = 0;
  std::vector<Block> blocks;
  std::vector<Group> groups;
  std::vector<Home> homes;
  std::vector<Replica> replicas;
  std::vector<TileGroups> tiles;
  /// The index in `tiles` of each group of a replica.
  std::vector<std::size_t> tile_of;

  explicit Population(const Table &table);

  /// Neurons on the fullest tile.
  unsigned most_neurons() const;
  /// Mask units of a tile: for each of its groups as many as the largest group needs, with 32 neurons per unit.
  unsigned units() const;
  /// The first neuron of each unit, tile after tile, then the total number of neurons.
  std::vector<unsigned> first_of_unit() const;
  /// The first neuron of each tile, then the total number of neurons.
  std::vector<unsigned> first_of_tile() const;
  /// The mask units [begin, end) that a group writes; the last group of a tile also writes those that no group needs.
  std::pair<unsigned, unsigned> own_units(const Block &b) const;
  unsigned words_of(const Block &b, unsigned unit) const;
  /// Groups of one replica.
  std::size_t cuts() const;
  /// The group of a replica with the same neurons as `g`.
  const Group &twin(const Group &g, std::size_t replica) const;

private:
  unsigned largest = 0;

  unsigned units_of_group() const;

  template <class Size> unsigned most(const Size &size) const;

  void add_group(unsigned tile, unsigned first, unsigned count);
};

/// For each run of tiles of a replica with the same groups: the number of tiles, neurons and groups of a tile, neurons of each group.
std::vector<unsigned> runs_of_tiles(const Population &p);

std::vector<Relay> relays_of(const Table &table);

/// How the workers of a relay share the mask units of its samples, as one list of numbers: where the pieces of each worker begin (and where
/// the last one's end); then for each piece its sample, the position of its first unit in the received data, the number of consecutive
/// units there, the number of all its units, the index of the first of them among the units of a sample, the begin and end of its ids in the
/// relay's list of found ids, and the first and last piece (plus one) of its sample.
std::vector<unsigned> relay_pieces(const Population &p, const Relay &r, unsigned workers);

/// A tile of a table.
struct Place {
  unsigned tile;
};

std::vector<Place> places(const Table &table);

/// A tile that reads the words [first, last) written by other tiles.
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

  /// The number on a tile's IPU.
  const poplar::Tensor operator[](unsigned tile) const { return all[tile / tiles_per_ipu]; }
  /// The numbers on the relays' IPUs.
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

/// Parts of several variables one after another, in the order of a table of (variable, part).
poplar::Tensor in_order(const std::vector<const Parts *> &from, const Table &table);

/// A sum for each block: those of the first blocks of all groups, which add the others and which the host sees, and those of the others.
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

  /// The rows [first, last) of the samples [sample, sample + samples), flat.
  poplar::Tensor region(std::size_t first, std::size_t last, std::size_t sample, std::size_t samples) const;
  std::size_t rows() const;
};

/// Data that blocks send to relays, [tiles][samples][row] with a variable for each replica: consecutive samples of a tile are contiguous.
struct Sent {
  std::vector<poplar::Tensor> parts;
  std::vector<Replica> replicas;

  /// [tiles][samples][row] of a relay's samples, flat.
  poplar::Tensor to(const Relay &r) const;

  /// What a tile of a replica sends, flat.
  poplar::Tensor of_tile(const Population &p, const Home &h) const;

  /// [samples][elements] of a block, the elements [begin, end) of its tile's rows, flat.
  poplar::Tensor of(const Population &p, const Block &b, unsigned begin, unsigned end) const;
};

/// The mask words that a block writes, with `unit` words per unit.
poplar::Tensor own_mask(const Sent &mask, const Population &p, const Block &b, unsigned unit);

/// The values that a block writes.
poplar::Tensor own_values(const Sent &values, const Population &p, const Block &b);

/// Device element i is element order[i] of the tensor that the host sees; NOWHERE marks padding.
using Order = std::vector<std::uint32_t>;
constexpr std::uint32_t NOWHERE = 0xffffffffu;

/// The numbers 0 to `numbers` - 1, repeated to fill `elements` elements.
Order repeated(std::uint32_t numbers, std::size_t elements);

/// Copies that run together, in one exchange.
class Copies {
public:
  void add(const poplar::Tensor &source, const poplar::Tensor &destination);

  void end(poplar::program::Sequence &program, const char *name) const;

private:
  std::vector<poplar::Tensor> from, to;
};

/// Elements of an array rounded up to whole pairs, so that the next array is aligned, too.
std::size_t even(std::size_t elements);

/// Elements [begin, end) of a group's parameters, which one of its replicas updates.
struct Share {
  std::size_t begin, end;
  std::size_t size() const { return end - begin; }
};

/// Whole pairs, so that each share is aligned.
Share share_of(const Population &p, std::size_t elements, std::size_t replica);

} // namespace snnc

#endif
