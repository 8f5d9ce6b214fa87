// Base of the network if another program owns the graph: tensors that a session would read and write are passed in and out here.
#ifndef SNNC_OPERATION_GRAPH_HPP
#define SNNC_OPERATION_GRAPH_HPP

#include "layout.hpp"
#include "vertices.hpp"

#include <poplar/DebugContext.hpp>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace snnc {

/// The role of a tensor in the network.
enum Role { SNNC_PARAMETER, SNNC_STATE, SNNC_RECORD, SNNC_GRADIENT };

/// All steps of an input arrive at once, so there is no ring.
struct Ring {};

/// Tensors in the model's own order, by name.
using Named = std::map<std::string, poplar::Tensor>;

class OperationGraph {
public:
  /// Adds copies of the given tensors to the variables of the network, and `program`. The given tensors are not modified.
  void add(poplar::program::Sequence &to, const poplar::program::Program &program) const;

  /// Adds copies of the statistics of batch normalisations alone, and `program`: a further pass of the same operation.
  void add_pass(poplar::program::Sequence &to, const poplar::program::Program &program) const;

  /// Creates a tensor for a parameter, in the model's order, with its elements on the tiles that read them first, in reading order.
  poplar::Tensor create(const std::string &name, const poplar::DebugNameAndId &label) const;

  /// Returns a record or a gradient in the model's order; its elements stay on their tiles.
  poplar::Tensor seen(const std::string &name) const;

protected:
  OperationGraph(poplar::Graph &owner, const std::string &project, unsigned samples, unsigned tiles);

  /// Registers where a parameter is stored, in all replicas.
  void place(const std::string &name, const std::vector<std::size_t> &shape, const poplar::Tensor &on_device, const Order &order);
  bool placed() const;

  void tensor(const std::string &name, Role role, const std::vector<std::size_t> &shape, const poplar::Tensor &on_device,
              const Order &order, bool);

  /// Registers a statistic of a batch normalisation, which may change between the passes of an operation.
  void parameter_of_blocks(const std::string &name, const std::vector<std::size_t> &shape, const poplar::Tensor &on_device,
                           const Order &order);

  /// Registers initial values of states that tiles store as half; they are given as floats, for one sample.
  void half_state(const std::string &name, const std::vector<std::size_t> &shape, const poplar::Tensor &on_device, const Order &order);

  /// Registers the gradient of a record, which arrives in the model's order.
  void adjoint(const std::string &name, const poplar::Tensor &on_device, const Order &order);

  /// Adds a counter of dropped spikes.
  void counter(const std::string &, const poplar::Tensor &counts);

  template <class Id> void event_input(const std::string &name, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays,
                                       const Parts &ids, const Parts &numbers, unsigned stored, const Ring &,
                                       poplar::program::Sequence &load);

  void bit_input(const std::string &name, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays, const Parts &bits,
                 const Ring &, poplar::program::Sequence &load);

  void value_input(const std::string &name, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays, const Parts &values,
                   const Ring &, poplar::program::Sequence &load);

  /// Does nothing: there are no spikes before step 0.
  template <class Id> void initial_events(const std::string &, std::size_t, std::size_t, const std::vector<Relay> &, const Parts &,
                                          const Parts &numbers, std::size_t slots, std::size_t);
  void initial_bits(const std::string &, std::size_t, std::size_t, const std::vector<Relay> &, const Parts &bits, std::size_t slots);

  poplar::Tensor constant(int value);

  std::string folder;
  poplar::Graph &graph;
  Layout layout;
  Named given;

private:
  struct Place {
    std::vector<std::size_t> shape;
    poplar::Tensor on_device;
    Order order;
  };

  Named made;
  std::map<std::string, Place> places;
  std::size_t batch;
  unsigned plan_tiles;
  poplar::Tensor zero;
  Copies given_values, statistics;
  poplar::program::Sequence rounded_values;

  /// Registers a given tensor: parameters are [shape]; states are given for one sample, [neurons].
  void take(const std::string &name, Role role, std::size_t elements, const poplar::Tensor &flat, const Order &order);

  /// Returns a given tensor as half; all tiles of the plan round equal parts.
  poplar::Tensor rounded(const std::string &name);

  void copy(const poplar::Tensor &from, const poplar::Tensor &to, const Order &order) { copy(from, to, order, given_values); }
  void copy(const poplar::Tensor &from, const poplar::Tensor &to, const Order &order, Copies &copies);

  /// Sets 32-bit elements to 0 initially.
  void zeros(const poplar::Tensor &flat) { zeros(flat, given_values); }
  void zeros(const poplar::Tensor &flat, Copies &copies);

  /// Returns an input as [steps][batch][width]; it is given as [batch][steps] or [batch], followed by its own shape.
  poplar::Tensor steps_of(const std::string &name, const std::vector<std::size_t> &shape) const;

  /// Returns an input as one bit per value, [steps][batch][words]; all tiles of the plan pack equal parts.
  poplar::Tensor packed(const std::string &name, const std::vector<std::size_t> &shape, poplar::program::Sequence &load);

  static poplar::Tensor samples_of_relay(const poplar::Tensor &steps, const Relay &r);

  void to_relays(const std::string &name, const poplar::Tensor &steps, const std::vector<Relay> &relays, const Parts &to,
                 poplar::program::Sequence &load);
};

} // namespace snnc

#endif
