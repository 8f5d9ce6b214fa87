// Definitions of operation_graph.hpp.
#include "operation_graph.hpp"

#include "views.hpp"

#include <algorithm>
#include <stdexcept>

namespace snnc {

void OperationGraph::add(poplar::program::Sequence &to, const poplar::program::Program &program) const {
  to.add(rounded_values);
  given_values.end(to, "F0 parameters and states");
  add_pass(to, program);
}

void OperationGraph::add_pass(poplar::program::Sequence &to, const poplar::program::Program &program) const {
  statistics.end(to, "F0 statistics");
  to.add(program);
}

poplar::Tensor OperationGraph::create(const std::string &name, const poplar::DebugNameAndId &label) const {
  const Place &place = places.at(name);
  std::size_t elements = 1, last = 0;
  for (std::size_t d : place.shape)
    elements *= d;
  if (place.order.empty())
    return graph.clone(place.on_device, label).reshape(place.shape);
  for (std::uint32_t i : inverse(place.order, elements))
    last = std::max<std::size_t>(last, i + 1);
  const poplar::Tensor own = graph.clone(place.on_device.slice(0, last), label);
  return in_order(own, Order(place.order.begin(), place.order.begin() + static_cast<std::ptrdiff_t>(last)), elements).reshape(place.shape);
}

poplar::Tensor OperationGraph::seen(const std::string &name) const { return made.at(name); }

OperationGraph::OperationGraph(poplar::Graph &owner, const std::string &project, unsigned samples, unsigned tiles)
    : folder(project), graph(owner), layout(owner, samples), batch(samples), plan_tiles(tiles),
      zero(owner.addConstant<float>(poplar::FLOAT, {1}, 0.0f)) {
  graph.setTileMapping(zero, 0);
  if (graph.getTarget().getNumTiles() < tiles)
    throw std::runtime_error("this network was placed on " + std::to_string(tiles) + " tiles, but the device has " +
                             std::to_string(graph.getTarget().getNumTiles()) + "; compile it for that device");
  graph.addCodelets(folder + "/codelets.cpp");
}

void OperationGraph::place(const std::string &name, const std::vector<std::size_t> &shape, const poplar::Tensor &on_device,
                           const Order &order) {
  places.emplace(name, Place{shape, on_device.flatten(), order});
}

bool OperationGraph::placed() const { return !places.empty(); }

void OperationGraph::tensor(const std::string &name, Role role, const std::vector<std::size_t> &shape, const poplar::Tensor &on_device,
                            const Order &order, bool) {
  std::size_t elements = 1;
  for (std::size_t d : shape)
    elements *= d;
  if (role == SNNC_PARAMETER || role == SNNC_STATE)
    return take(name, role, elements, on_device.flatten(), order);
  made.emplace(name, in_order(on_device, order, elements).reshape(shape));
}

void OperationGraph::parameter_of_blocks(const std::string &name, const std::vector<std::size_t> &, const poplar::Tensor &on_device,
                                         const Order &order) {
  copy(given.at(name).flatten(), on_device.flatten(), order, statistics);
}

void OperationGraph::half_state(const std::string &name, const std::vector<std::size_t> &shape, const poplar::Tensor &on_device,
                                const Order &order) {
  const poplar::Tensor flat = on_device.flatten(), rounded = this->rounded(name);
  const std::size_t copies = shape[0] * shape[1] / rounded.numElements();
  const poplar::Tensor all = rounded.expand({0}).broadcast(static_cast<unsigned>(copies), 0).flatten();
  for (const Patch &p : patches_of(order))
    given_values.add(patch_of(all, p), flat.slice(p.place, p.place + p.rows * p.columns));
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] == NOWHERE)
      given_values.add(rounded.slice(0, 1), flat.slice(i, i + 1)); // padding is not read
}

poplar::Tensor OperationGraph::rounded(const std::string &name) {
  const poplar::Tensor wide = given.at(name).flatten();
  const std::size_t n = wide.numElements(), pairs = (n + 1) / 2;
  const poplar::Tensor halves = graph.addVariable(poplar::HALF, {2 * pairs}, name + "_half");
  const poplar::ComputeSet round = graph.addComputeSet("F0 round " + name);
  for (unsigned tile = 0; tile < plan_tiles; ++tile) {
    const std::size_t begin = 2 * (pairs * tile / plan_tiles), end = 2 * (pairs * (tile + 1) / plan_tiles);
    if (begin == end)
      continue;
    graph.setTileMapping(halves.slice(begin, end), tile);
    VertexBuilder(graph, round, "RoundValues", tile)
        .edge("values", wide.slice(begin, std::min(end, n)))
        .edge("halves", halves.slice(begin, end))
        .number("count", static_cast<unsigned>(std::min(end, n) - begin));
  }
  rounded_values.add(poplar::program::Execute(round));
  return halves.slice(0, n);
}

void OperationGraph::adjoint(const std::string &name, const poplar::Tensor &on_device, const Order &order) {
  if (given.count(name) != 0)
    copy(given.at(name).flatten(), on_device.flatten(), order);
}

void OperationGraph::counter(const std::string &name, const poplar::Tensor &counts) {
  zeros(counts.flatten());
  // PopTorch supports only floats: these contain the bits of integers.
  made.emplace(name, counts.flatten().reinterpret(poplar::FLOAT));
}

template <class Id> void OperationGraph::event_input(const std::string &name, const std::vector<std::size_t> &shape,
                                                     const std::vector<Relay> &relays, const Parts &ids, const Parts &numbers,
                                                     unsigned stored, const Ring &, poplar::program::Sequence &load) {
  const poplar::Tensor words = packed(name, shape, load);
  const poplar::ComputeSet list = graph.addComputeSet("F0 list " + name);
  for (const Relay &r : relays) {
    const poplar::Tensor own = samples_of_relay(words, r);
    VertexBuilder(graph, list, sizeof(Id) == 2 ? "ListInput<unsigned short>" : "ListInput<unsigned int>", r.tile)
        .edge("bits", own)
        .edge("ids", ids[r.index])
        .edge("numbers", numbers[r.index])
        .number("rows", static_cast<unsigned>(words.dim(0)) * r.samples)
        .number("words", static_cast<unsigned>(words.dim(2)))
        .number("room", stored);
  }
  load.add(poplar::program::Execute(list));
}
template void OperationGraph::event_input<unsigned short>(const std::string &, const std::vector<std::size_t> &, const std::vector<Relay> &,
                                                          const Parts &, const Parts &, unsigned, const Ring &,
                                                          poplar::program::Sequence &);
template void OperationGraph::event_input<unsigned>(const std::string &, const std::vector<std::size_t> &, const std::vector<Relay> &,
                                                    const Parts &, const Parts &, unsigned, const Ring &, poplar::program::Sequence &);

void OperationGraph::bit_input(const std::string &name, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays,
                               const Parts &bits, const Ring &, poplar::program::Sequence &load) {
  const poplar::Tensor words = packed(name, shape, load);
  to_relays(name, words, relays, bits, load);
}

void OperationGraph::value_input(const std::string &name, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays,
                                 const Parts &values, const Ring &, poplar::program::Sequence &load) {
  to_relays(name, steps_of(name, shape), relays, values, load);
}

template <class Id> void OperationGraph::initial_events(const std::string &, std::size_t, std::size_t, const std::vector<Relay> &,
                                                        const Parts &, const Parts &numbers, std::size_t slots, std::size_t) {
  zeros(first_slots(numbers, slots));
}
template void OperationGraph::initial_events<unsigned short>(const std::string &, std::size_t, std::size_t, const std::vector<Relay> &,
                                                             const Parts &, const Parts &, std::size_t, std::size_t);
template void OperationGraph::initial_events<unsigned>(const std::string &, std::size_t, std::size_t, const std::vector<Relay> &,
                                                       const Parts &, const Parts &, std::size_t, std::size_t);

void OperationGraph::initial_bits(const std::string &, std::size_t, std::size_t, const std::vector<Relay> &, const Parts &bits,
                                  std::size_t slots) {
  zeros(first_slots(bits, slots));
}

poplar::Tensor OperationGraph::constant(int value) { return whole_number(graph, value); }

void OperationGraph::take(const std::string &name, Role role, std::size_t elements, const poplar::Tensor &flat, const Order &order) {
  const auto found = given.find(name);
  if (found == given.end())
    return zeros(flat);
  const poplar::Tensor value = found->second.flatten();
  copy(role == SNNC_STATE ? value.expand({0}).broadcast(static_cast<unsigned>(elements / value.numElements()), 0).flatten() : value, flat,
       order);
}

void OperationGraph::copy(const poplar::Tensor &from, const poplar::Tensor &to, const Order &order, Copies &copies) {
  if (order.empty())
    return copies.add(from, to);
  for (const Patch &p : patches_of(order))
    copies.add(patch_of(from, p), to.slice(p.place, p.place + p.rows * p.columns));
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] == NOWHERE)
      zeros(to.slice(i, i + 1), copies);
}

void OperationGraph::zeros(const poplar::Tensor &flat, Copies &copies) {
  if (flat.numElements() != 0)
    copies.add(zero.broadcast(static_cast<unsigned>(flat.numElements()), 0), flat.reinterpret(poplar::FLOAT));
}

poplar::Tensor OperationGraph::steps_of(const std::string &name, const std::vector<std::size_t> &shape) const {
  const std::size_t steps = shape.size() == 3 ? shape[0] : 1;
  return given.at(name).reshape({batch, steps, shape.back()}).dimShuffle({1, 0, 2});
}

poplar::Tensor OperationGraph::packed(const std::string &name, const std::vector<std::size_t> &shape, poplar::program::Sequence &load) {
  const poplar::Tensor dense = steps_of(name, shape);
  const std::size_t width = shape.back(), rows = dense.dim(0) * dense.dim(1), words = (width + 31) / 32;
  const poplar::Tensor flat = dense.reshape({rows, width}), bits = graph.addVariable(poplar::UNSIGNED_INT, {rows, words}, name + "_words");
  const poplar::ComputeSet pack = graph.addComputeSet("F0 pack " + name);
  for (unsigned tile = 0; tile < plan_tiles; ++tile) {
    const std::size_t begin = rows * tile / plan_tiles, end = rows * (tile + 1) / plan_tiles;
    if (begin == end)
      continue;
    graph.setTileMapping(bits.slice(begin, end), tile);
    VertexBuilder(graph, pack, "PackInput", tile)
        .edge("values", flat.slice(begin, end).flatten())
        .edge("bits", bits.slice(begin, end).flatten())
        .number("rows", static_cast<unsigned>(end - begin))
        .number("width", static_cast<unsigned>(width));
  }
  load.add(poplar::program::Execute(pack));
  return bits.reshape({dense.dim(0), dense.dim(1), words});
}

poplar::Tensor OperationGraph::samples_of_relay(const poplar::Tensor &steps, const Relay &r) {
  return steps.slice(r.sample, r.sample + r.samples, 1).flatten();
}

void OperationGraph::to_relays(const std::string &name, const poplar::Tensor &steps, const std::vector<Relay> &relays, const Parts &to,
                               poplar::program::Sequence &load) {
  std::vector<poplar::Tensor> pieces;
  for (const Relay &r : relays)
    pieces.push_back(samples_of_relay(steps, r));
  load.add(poplar::program::Copy(poplar::concat(pieces), to.all, false, "F0 " + name));
}

} // namespace snnc
