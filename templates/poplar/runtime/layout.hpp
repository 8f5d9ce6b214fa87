// Variables on tiles, divided by the blocks of populations, and the order of their elements.
#ifndef SNNC_LAYOUT_HPP
#define SNNC_LAYOUT_HPP

#include "populations.hpp"

namespace snnc {

/// A part of a variable: its tile and the number of its elements.
struct Sized {
  unsigned tile;
  std::size_t elements;
};

/// Returns the parts of a variable that has `size(item)` elements on the tile of each item.
template <class Items, class Size> std::vector<Sized> sizes_of(const Items &items, const Size &size) {
  std::vector<Sized> found;
  for (const auto &item : items)
    found.push_back({item.tile, size(item)});
  return found;
}

/// Creates a variable and maps its parts.
Parts parts_of(poplar::Graph &graph, const std::vector<Sized> &sizes, const poplar::Type &type, const std::string &name);

/// Creates and maps the variables of a graph.
class Layout {
public:
  Layout(poplar::Graph &made, unsigned samples);

  /// [per_cell][samples][count] for each block.
  Parts cells(const Population &p, const poplar::Type &type, const char *name, std::size_t per_cell);

  /// [slots][samples][count] as half for each block; rows are padded to whole words.
  Parts half_cells(const Population &p, const char *name, std::size_t slots);

  /// [slots][samples][mask words] for each block, with `unit` words per unit.
  Parts block_words(const Population &p, const char *name, std::size_t slots, unsigned unit);

  /// [rows][count] for each block: sums over its samples.
  Sums block_rows(const Population &p, const char *name, std::size_t rows);

  /// [rows][count] for each group: parameters.
  Parts rows(const Population &p, const char *name, std::size_t rows);

  /// [inputs][count] for each group: weights, with columns in pairs (see order_of_weights).
  Parts weights(const Population &p, const char *name, std::size_t inputs);

  /// Weights as in `weights`, stored as half.
  Parts half_weights(const Population &p, const char *name, std::size_t inputs);

  /// Sums over the samples of each block, in the order of `weights`.
  Sums block_weights(const Population &p, const char *name, std::size_t inputs);

  /// Each group's share of `values`, for optimiser values.
  Parts shares(const Population &p, const char *name, const Parts &values);

  /// One number per block.
  Parts block_numbers(const Population &p, const char *name);

  /// Two numbers for each neuron of a block: its mean, and the sum of squared distances from it.
  Parts block_moments(const Population &p, const char *name);

  /// One number per group: the copies of a shared parameter.
  Parts group_numbers(const Population &p, const char *name);

  /// [per_sample][samples] for each relay.
  Parts kept(const std::vector<Relay> &relays, const poplar::Type &type, const char *name, std::size_t per_sample);

  /// `each` numbers per relay, one by default.
  Parts relay_numbers(const std::vector<Relay> &relays, const poplar::Type &type, const char *name, std::size_t each = 1);

  /// [pieces][2] for each relay: the numbers of ids that its workers find in the masks.
  Parts piece_counts(const std::vector<Relay> &relays, const char *name, unsigned workers);

  /// [batch][width] on the relays: the window that all consumers read in a step.
  poplar::Tensor window(const std::vector<Relay> &relays, const poplar::Type &type, const char *name, std::size_t width);

  /// [neurons][batch], written by blocks and read by others: all samples of a block's neurons are exchanged as one piece.
  Matrix matrix(const Population &p, const char *name);

  /// A matrix as in `matrix`, stored as half; blocks have an even number of samples, so that two samples share a word.
  Matrix half_matrix(const Population &p, const char *name);

  /// [tiles][samples][row], written by blocks for relays.
  Sent sent(const Population &p, const poplar::Type &type, const char *name, std::size_t row);

  /// [samples][entries] for each block.
  Parts sample_rows(const Population &p, const char *name, std::size_t entries);

  /// [count][batch][width], with each of `items` on its tile.
  template <class Pieces> poplar::Tensor pieces(const Pieces &items, const char *name, std::size_t count, std::size_t width) {
    const poplar::Tensor made = graph.addVariable(poplar::FLOAT, {count, batch, width}, name);
    for (const auto &p : items)
      graph.setTileMapping(part_of(made, p), p.tile);
    return made;
  }

  /// Returns the elements of such a piece.
  template <class Piece> static poplar::Tensor part_of(const poplar::Tensor &all, const Piece &p) {
    return all.slice(p.part, p.part + 1, 0).slice(p.sample, p.sample + p.samples, 1).slice(p.entry, p.entry + p.entries, 2).flatten();
  }

  /// [outputs] for each neuron of each group: the rows of outgoing weights are stored with their source.
  Parts source_rows(const Population &p, const char *name, std::size_t outputs);

  /// Rows as in `source_rows`, stored as half, in rows of even length.
  Parts half_source_rows(const Population &p, const char *name, std::size_t outputs);

  /// One half value per neuron of each group: the weights of one-to-one connections, stored with their source.
  Parts half_numbers(const Population &p, const char *name);

  /// [count][columns] for each packer: packed rows of weights.
  Parts packed_rows(const std::vector<Packer> &packers, const char *name);

  poplar::Tensor on_tile(const poplar::Type &type, const std::vector<std::size_t> &shape, const char *name, unsigned tile);

  /// An integer on each of the first IPUs.
  OnIpus on_ipus(const char *name, unsigned ipus);
  OnIpus on_ipus(int value, unsigned ipus);

  /// Constants on one tile.
  poplar::Tensor constants(const std::vector<unsigned> &values, unsigned tile);
  poplar::Tensor numbers(const std::vector<float> &values, unsigned tile);

  /// `each` elements on each tile of a table.
  Parts on_tiles(const Table &tiles, const poplar::Type &type, const char *name, std::size_t each);

  /// Equal constants on each tile of a table.
  std::vector<poplar::Tensor> constants_on_tiles(const Table &tiles, const std::vector<unsigned> &values);

  /// Returns the rows of a block's neurons, from `offset` on, for its samples.
  static poplar::Tensor own(const Matrix &matrix, const Block &b, std::size_t offset = 0);

  /// Returns all rows for the samples of a block's replica.
  static poplar::Tensor of_replica(const Matrix &rows, const Population &p, const Block &b);

  /// Returns the rows of the samples of a block or relay.
  template <class Part> static poplar::Tensor samples(const poplar::Tensor &window, const Part &part) {
    return window.slice(part.sample, part.sample + part.samples, 0).flatten();
  }

  /// Returns the rows of weights for a tile of their source: from each group of the target replica with the closest samples, the rows of
  /// the paired columns and, if the number of columns is odd, those of the last one.
  static poplar::Tensor rows_of(const Population &source, const Home &h, const Population &target, const Parts &weights,
                                std::size_t inputs);

  /// Returns rows [first, last) of groups [begin, end) of a target, in the same way.
  static poplar::Tensor rows_between(const Population &target, std::size_t begin, std::size_t end, const Parts &weights, std::size_t inputs,
                                     std::size_t first, std::size_t last);

  /// Returns the replica of a target whose samples are closest to those of a replica of its source.
  static std::size_t nearest(const Population &source, const Population &target, std::size_t replica);

  /// Returns the tensor from which the rows of all replicas are copied if weights have one value per neuron: that of the targets
  /// [offset, offset + source.neurons) of the target replica with the closest samples.
  static poplar::Tensor pairs_of(const Population &source, const Population &target, const Parts &weights, std::size_t offset);

private:
  poplar::Graph &graph;
  std::size_t batch;

  OnIpus on_ipus(const std::vector<poplar::Tensor> &each) const;

  Matrix by_replica(const Population &p, const poplar::Type &type, const char *name, std::size_t rows);

  template <class Size> Sums sums(const Population &p, const std::string &name, const Size &size);
  template <class Items, class Size> Parts parts(const Items &items, const poplar::Type &type, const std::string &name, const Size &size);
};

// ---- orders: device order of host tensors, which have the model's layout -----------------------------------------------

/// [steps][batch][n], stored as [samples][steps][count] for each block.
Order order_of_records(const Population &p, std::size_t steps, std::size_t batch);

/// [batch][n], stored as [samples][count] for each block.
Order order_of_states(const Population &p);

/// [batch][n], stored as half in rows of even length, for each block.
Order order_of_half_states(const Population &p);

/// [outputs][inputs], stored as [inputs][count] for each group: all rows of the paired columns, then, if the number is odd, all rows of the last column.
Order order_of_weights(const Population &p, std::size_t inputs);

/// [n], stored with the targets [offset, offset + n) of a population.
Order order_of_pairs(const Population &p, std::size_t n, std::size_t offset);

/// Returns `order` with the elements of each group padded to an even number.
Order padded(const Population &p, const Order &order);

/// [n], stored for each replica of a population.
Order order_of_neurons(const Population &p);

/// Returns the part of an order that belongs to the first replica.
Order first_replica(const Population &p, Order order);

/// Returns one sample of a record: [steps][count] for each group.
poplar::Tensor of_sample(const Population &p, const Parts &records, std::size_t steps, std::size_t sample);

/// Returns the beginning of each class in such a sample, and the distance between its steps.
std::vector<unsigned> class_offsets(const Population &p, unsigned steps);

std::vector<unsigned> class_strides(const Population &p);

std::vector<std::size_t> samples_of(std::size_t batch);

// ---- replicas: each updates its share of a group's parameters and sends it to the others ----------------------------------------

/// Returns a group's share of its own parameters, or of any array with the same layout.
poplar::Tensor own_share(const Population &p, const Parts &parts, const Group &g);

/// Returns the share of a group in which gradients are summed, in its first block.
poplar::Tensor summed_share(const Population &p, const Sums &sums, const Group &g);

/// Returns the other summands: private sums of the other blocks or, with replicas, the parts of this share in other replicas.
poplar::Tensor other_sums(const Population &p, const Sums &sums, const Group &g);

std::size_t summands(const Population &p, const Group &g);

/// Returns the groups whose share is not empty, or whose private sums must be added before replicas exchange them.
std::vector<Group> with_share(const Population &p, const Parts &parts);
std::vector<Group> with_private_sums(const Population &p);

/// Returns all gradients once, in the order of the first replica's parameters.
poplar::Tensor totals(const Population &p, const Sums &sums);

/// Returns all optimiser values once, in the same order; `shares` has a share for each group.
poplar::Tensor all_shares(const Population &p, const Parts &shares);

/// Adds the copies of updated shares to the other replicas.
void spread(const Population &p, const Parts &values, Copies &copies);

/// Returns slot 0 of each part of an array with `slots` slots.
poplar::Tensor first_slots(const Parts &parts, std::size_t slots);

/// Marks tensors as undefined, so that other variables may use their memory until they are written again.
void forget(poplar::program::Sequence &program, const std::vector<poplar::Tensor> &tensors);

} // namespace snnc

// Compiled once, in layout.cpp.
extern template class std::vector<poplar::Tensor>;
extern template class std::vector<poplar::program::Program>;
extern template class std::vector<snnc::Sized>;

#endif
