// Variables on tiles, and the order of their elements.
#include "layout.hpp"

#include <algorithm>

template class std::vector<poplar::Tensor>;
template class std::vector<poplar::program::Program>;
template class std::vector<snnc::Sized>;

namespace snnc {

Parts parts_of(poplar::Graph &graph, const std::vector<Sized> &sizes, const poplar::Type &type, const std::string &name) {
  Parts made;
  made.begin.push_back(0);
  for (const Sized &part : sizes)
    made.begin.push_back(made.begin.back() + part.elements);
  made.all = graph.addVariable(type, {made.begin.back()}, name);
  for (std::size_t part = 0; part < sizes.size(); ++part)
    graph.setTileMapping(made[part], sizes[part].tile);
  return made;
}

template <class Items, class Size>
Parts Layout::parts(const Items &items, const poplar::Type &type, const std::string &name, const Size &size) {
  return parts_of(graph, sizes_of(items, size), type, name);
}

template <class Size> Sums Layout::sums(const Population &p, const std::string &name, const Size &size) {
  std::vector<Block> others;
  for (const Block &b : p.blocks)
    if (b.index != p.groups[b.group].begin)
      others.push_back(b);
  const auto elements = [&](const auto &item) { return size(item.count); };
  return {&p, parts(p.groups, poplar::FLOAT, name, elements), parts(others, poplar::FLOAT, name + "_others", elements)};
}

Layout::Layout(poplar::Graph &made, unsigned samples) : graph(made), batch(samples) {}

Parts Layout::cells(const Population &p, const poplar::Type &type, const char *name, std::size_t per_cell) {
  return parts(p.blocks, type, name, [&](const Block &b) { return per_cell * b.samples * b.count; });
}

Parts Layout::half_cells(const Population &p, const char *name, std::size_t slots) {
  return parts(p.blocks, poplar::HALF, name, [&](const Block &b) { return slots * b.samples * even(b.count); });
}

Parts Layout::block_words(const Population &p, const char *name, std::size_t slots, unsigned unit) {
  return parts(p.blocks, poplar::UNSIGNED_INT, name, [&](const Block &b) { return slots * b.samples * p.words_of(b, unit); });
}

Sums Layout::block_rows(const Population &p, const char *name, std::size_t rows) {
  return sums(p, name, [&](unsigned count) { return rows * count; });
}

Parts Layout::rows(const Population &p, const char *name, std::size_t rows) {
  return parts(p.groups, poplar::FLOAT, name, [&](const Group &g) { return rows * g.count; });
}

Parts Layout::weights(const Population &p, const char *name, std::size_t inputs) {
  return parts(p.groups, poplar::FLOAT, name, [&](const Group &g) { return even(inputs * g.count); });
}

Parts Layout::half_weights(const Population &p, const char *name, std::size_t inputs) {
  return parts(p.groups, poplar::HALF, name, [&](const Group &g) { return even(inputs * g.count); });
}

Sums Layout::block_weights(const Population &p, const char *name, std::size_t inputs) {
  return sums(p, name, [&](unsigned count) { return even(inputs * count); });
}

Parts Layout::shares(const Population &p, const char *name, const Parts &values) {
  return parts(p.groups, poplar::FLOAT, name, [&](const Group &g) { return share_of(p, values.size(g.index), g.replica).size(); });
}

Parts Layout::block_numbers(const Population &p, const char *name) {
  return parts(p.blocks, poplar::FLOAT, name, [](const Block &) { return std::size_t{1}; });
}

Parts Layout::block_moments(const Population &p, const char *name) {
  return parts(p.blocks, poplar::FLOAT, name, [](const Block &b) { return std::size_t{2} * b.count; });
}

Parts Layout::group_numbers(const Population &p, const char *name) {
  return parts(p.groups, poplar::FLOAT, name, [](const Group &) { return std::size_t{1}; });
}

Parts Layout::kept(const std::vector<Relay> &relays, const poplar::Type &type, const char *name, std::size_t per_sample) {
  return parts(relays, type, name, [&](const Relay &r) { return per_sample * r.samples; });
}

Parts Layout::relay_numbers(const std::vector<Relay> &relays, const poplar::Type &type, const char *name, std::size_t each) {
  return parts(relays, type, name, [&](const Relay &) { return each; });
}

Parts Layout::piece_counts(const std::vector<Relay> &relays, const char *name, unsigned workers) {
  return parts(relays, poplar::UNSIGNED_INT, name, [&](const Relay &r) { return 2 * (r.samples + workers - 1); });
}

poplar::Tensor Layout::window(const std::vector<Relay> &relays, const poplar::Type &type, const char *name, std::size_t width) {
  const poplar::Tensor made = graph.addVariable(type, {batch, width}, name);
  for (const Relay &r : relays)
    graph.setTileMapping(made.slice(r.sample, r.sample + r.samples), r.tile);
  return made;
}

Matrix Layout::matrix(const Population &p, const char *name) {
  const Matrix made = by_replica(p, poplar::FLOAT, name, p.neurons);
  for (const Block &b : p.blocks)
    graph.setTileMapping(own(made, b), b.tile);
  return made;
}

Matrix Layout::half_matrix(const Population &p, const char *name) {
  const Matrix made = by_replica(p, poplar::HALF, name, p.neurons);
  for (const Block &b : p.blocks)
    graph.setTileMapping(own(made, b), b.tile);
  return made;
}

Sent Layout::sent(const Population &p, const poplar::Type &type, const char *name, std::size_t row) {
  Sent made;
  made.replicas = p.replicas;
  for (const Replica &r : p.replicas)
    made.parts.push_back(graph.addVariable(type, {p.tiles.size(), r.samples, row}, name));
  for (std::size_t r = 0; r < p.replicas.size(); ++r)
    for (std::size_t t = 0; t < p.tiles.size(); ++t)
      graph.setTileMapping(made.parts[r].slice(t, t + 1, 0), p.groups[r * p.cuts() + p.tiles[t].begin].tile);
  return made;
}

Parts Layout::sample_rows(const Population &p, const char *name, std::size_t entries) {
  return parts(p.blocks, poplar::FLOAT, name, [&](const Block &b) { return entries * b.samples; });
}

Parts Layout::source_rows(const Population &p, const char *name, std::size_t outputs) {
  return parts(p.groups, poplar::FLOAT, name, [&](const Group &g) { return outputs * g.count; });
}

Parts Layout::half_source_rows(const Population &p, const char *name, std::size_t outputs) {
  return parts(p.groups, poplar::HALF, name, [&](const Group &g) { return even(outputs) * g.count; });
}

Parts Layout::half_numbers(const Population &p, const char *name) {
  return parts(p.groups, poplar::HALF, name, [](const Group &g) { return std::size_t{g.count}; });
}

Parts Layout::packed_rows(const std::vector<Packer> &packers, const char *name) {
  return parts(packers, poplar::FLOAT, name, [](const Packer &p) { return std::size_t{p.count} * p.columns; });
}

poplar::Tensor Layout::on_tile(const poplar::Type &type, const std::vector<std::size_t> &shape, const char *name, unsigned tile) {
  const poplar::Tensor made = graph.addVariable(type, shape, name);
  graph.setTileMapping(made, tile);
  return made;
}

OnIpus Layout::on_ipus(const char *name, unsigned ipus) {
  std::vector<poplar::Tensor> each;
  const poplar::Tensor all = graph.addVariable(poplar::INT, {ipus}, name);
  for (unsigned ipu = 0; ipu < ipus; ++ipu)
    each.push_back(all.slice(ipu, ipu + 1));
  return on_ipus(each);
}

OnIpus Layout::on_ipus(int value, unsigned ipus) {
  std::vector<poplar::Tensor> each;
  for (unsigned ipu = 0; ipu < ipus; ++ipu)
    each.push_back(graph.addConstant<int>(poplar::INT, {1}, value));
  return on_ipus(each);
}

OnIpus Layout::on_ipus(const std::vector<poplar::Tensor> &each) const {
  OnIpus made{poplar::concat(each), {}, graph.getTarget().getTilesPerIPU()};
  for (unsigned ipu = 0; ipu < each.size(); ++ipu) {
    made.places.push_back({ipu * made.tiles_per_ipu});
    graph.setTileMapping(each[ipu], made.places.back().tile);
  }
  return made;
}

poplar::Tensor Layout::constants(const std::vector<unsigned> &values, unsigned tile) {
  const poplar::Tensor made = graph.addConstant<unsigned>(poplar::UNSIGNED_INT, {values.size()}, values.data());
  graph.setTileMapping(made, tile);
  return made;
}

poplar::Tensor Layout::numbers(const std::vector<float> &values, unsigned tile) {
  const poplar::Tensor made = graph.addConstant<float>(poplar::FLOAT, {values.size()}, values.data());
  graph.setTileMapping(made, tile);
  return made;
}

Parts Layout::on_tiles(const Table &tiles, const poplar::Type &type, const char *name, std::size_t each) {
  return parts(places(tiles), type, name, [&](const Place &) { return each; });
}

std::vector<poplar::Tensor> Layout::constants_on_tiles(const Table &tiles, const std::vector<unsigned> &values) {
  std::vector<poplar::Tensor> made;
  for (const Place &place : places(tiles))
    made.push_back(constants(values, place.tile));
  return made;
}

poplar::Tensor Layout::own(const Matrix &matrix, const Block &b, std::size_t offset) {
  return matrix.region(b.first + offset, b.first + b.count + offset, b.sample, b.samples);
}

poplar::Tensor Layout::of_replica(const Matrix &rows, const Population &p, const Block &b) {
  const Replica &mine = p.replicas[b.replica];
  return rows.region(0, rows.rows(), mine.sample, mine.samples);
}

poplar::Tensor Layout::rows_of(const Population &source, const Home &h, const Population &target, const Parts &weights,
                               std::size_t inputs) {
  const std::size_t begin = nearest(source, target, h.replica) * target.cuts();
  return rows_between(target, begin, begin + target.cuts(), weights, inputs, h.first, h.first + h.count);
}

poplar::Tensor Layout::rows_between(const Population &target, std::size_t begin, std::size_t end, const Parts &weights, std::size_t inputs,
                                    std::size_t first, std::size_t last) {
  std::vector<poplar::Tensor> rows;
  for (std::size_t g = begin; g < end; ++g) {
    const std::size_t count = target.groups[g].count, paired = count / 2 * 2;
    const poplar::Tensor all = weights[g];
    if (paired != 0)
      rows.push_back(all.slice(first * paired, last * paired));
    if (paired != count)
      rows.push_back(all.slice(inputs * paired + first, inputs * paired + last));
  }
  return poplar::concat(rows);
}

poplar::Tensor Layout::pairs_of(const Population &source, const Population &target, const Parts &weights, std::size_t offset) {
  std::vector<poplar::Tensor> values, rows;
  for (const Group &g : target.groups)
    values.push_back(weights[g.index].slice(0, g.count)); // half arrays may have one more element
  const poplar::Tensor all = poplar::concat(values);
  for (std::size_t r = 0; r < source.replicas.size(); ++r) {
    const std::size_t begin = nearest(source, target, r) * target.neurons + offset;
    rows.push_back(all.slice(begin, begin + source.neurons));
  }
  return poplar::concat(rows);
}

std::size_t Layout::nearest(const Population &source, const Population &target, std::size_t replica) {
  return replica * target.replicas.size() / source.replicas.size();
}

Matrix Layout::by_replica(const Population &p, const poplar::Type &type, const char *name, std::size_t rows) {
  Matrix made;
  made.replicas = p.replicas;
  for (const Replica &r : p.replicas)
    made.parts.push_back(graph.addVariable(type, {rows, r.samples}, name));
  return made;
}

Order order_of_records(const Population &p, std::size_t steps, std::size_t batch) {
  Order order;
  for (const Block &b : p.blocks)
    for (std::size_t s = 0; s < b.samples; ++s)
      for (std::size_t t = 0; t < steps; ++t)
        for (std::size_t c = 0; c < b.count; ++c)
          order.push_back(static_cast<std::uint32_t>((t * batch + b.sample + s) * p.neurons + b.first + c));
  return order;
}

Order order_of_states(const Population &p) { return order_of_records(p, 1, 0); }

Order order_of_half_states(const Population &p) {
  Order order;
  for (const Block &b : p.blocks)
    for (std::size_t s = 0; s < b.samples; ++s) {
      for (std::size_t c = 0; c < b.count; ++c)
        order.push_back(static_cast<std::uint32_t>((b.sample + s) * p.neurons + b.first + c));
      order.resize(order.size() + b.count % 2, NOWHERE);
    }
  return order;
}

Order order_of_weights(const Population &p, std::size_t inputs) {
  Order order;
  for (const Group &g : p.groups) { // groups of all replicas
    const auto push = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = 0; i < inputs; ++i)
        for (std::size_t c = begin; c < end; ++c)
          order.push_back(static_cast<std::uint32_t>((g.first + c) * inputs + i));
    };
    push(0, g.count / 2 * 2);
    push(g.count / 2 * 2, g.count);
    order.resize(order.size() + even(inputs * g.count) - inputs * g.count, NOWHERE);
  }
  return order;
}

Order order_of_pairs(const Population &p, std::size_t n, std::size_t offset) {
  Order order;
  for (std::size_t r = 0; r < p.replicas.size(); ++r)
    for (std::size_t c = 0; c < p.neurons; ++c)
      order.push_back(c >= offset && c - offset < n ? static_cast<std::uint32_t>(c - offset) : NOWHERE);
  return order;
}

Order padded(const Population &p, const Order &order) {
  Order found;
  auto next = order.begin();
  for (const Group &g : p.groups) {
    found.insert(found.end(), next, next + g.count);
    next += g.count;
    if (g.count % 2 != 0)
      found.push_back(NOWHERE);
  }
  return found;
}

Order order_of_neurons(const Population &p) { return order_of_pairs(p, p.neurons, 0); }

Order first_replica(const Population &p, Order order) {
  order.resize(order.size() / p.replicas.size());
  return order;
}

poplar::Tensor of_sample(const Population &p, const Parts &records, std::size_t steps, std::size_t sample) {
  std::vector<poplar::Tensor> pieces;
  for (const Block &b : p.blocks)
    if (sample >= b.sample && sample < b.sample + b.samples) {
      const std::size_t size = steps * b.count;
      pieces.push_back(records[b.index].slice((sample - b.sample) * size, (sample - b.sample + 1) * size));
    }
  return poplar::concat(pieces);
}

std::vector<unsigned> class_offsets(const Population &p, unsigned steps) {
  std::vector<unsigned> offsets;
  for (std::size_t i = 0; i < p.cuts(); ++i)
    for (unsigned c = 0; c < p.groups[i].count; ++c)
      offsets.push_back(p.groups[i].first * steps + c);
  return offsets;
}

std::vector<unsigned> class_strides(const Population &p) {
  std::vector<unsigned> strides;
  for (std::size_t i = 0; i < p.cuts(); ++i)
    strides.insert(strides.end(), p.groups[i].count, p.groups[i].count);
  return strides;
}

std::vector<std::size_t> samples_of(std::size_t batch) {
  std::vector<std::size_t> samples(batch);
  for (std::size_t i = 0; i < batch; ++i)
    samples[i] = i;
  return samples;
}

poplar::Tensor own_share(const Population &p, const Parts &parts, const Group &g) {
  const Share mine = share_of(p, parts.size(g.index), g.replica);
  return parts[g.index].slice(mine.begin, mine.end);
}

poplar::Tensor summed_share(const Population &p, const Sums &sums, const Group &g) { return own_share(p, sums.first, g); }

poplar::Tensor other_sums(const Population &p, const Sums &sums, const Group &g) {
  if (p.replicas.size() == 1)
    return sums.of_others(g);
  const Share mine = share_of(p, sums.first.size(g.index), g.replica);
  std::vector<poplar::Tensor> others;
  for (std::size_t r = 0; r < p.replicas.size(); ++r)
    if (r != g.replica)
      others.push_back(sums.first[p.twin(g, r).index].slice(mine.begin, mine.end));
  return poplar::concat(others);
}

std::size_t summands(const Population &p, const Group &g) { return p.replicas.size() == 1 ? g.end - g.begin : p.replicas.size(); }

std::vector<Group> with_share(const Population &p, const Parts &parts) {
  std::vector<Group> found;
  for (const Group &g : p.groups)
    if (share_of(p, parts.size(g.index), g.replica).size() > 0)
      found.push_back(g);
  return found;
}

std::vector<Group> with_private_sums(const Population &p) {
  std::vector<Group> found;
  for (const Group &g : p.groups)
    if (p.replicas.size() > 1 && g.end - g.begin > 1)
      found.push_back(g);
  return found;
}

poplar::Tensor totals(const Population &p, const Sums &sums) {
  std::vector<poplar::Tensor> found;
  for (std::size_t i = 0; i < p.cuts(); ++i)
    for (std::size_t r = 0; r < p.replicas.size(); ++r)
      found.push_back(summed_share(p, sums, p.groups[r * p.cuts() + i]));
  return poplar::concat(found);
}

poplar::Tensor all_shares(const Population &p, const Parts &shares) {
  std::vector<poplar::Tensor> found;
  for (std::size_t i = 0; i < p.cuts(); ++i)
    for (std::size_t r = 0; r < p.replicas.size(); ++r)
      found.push_back(shares[r * p.cuts() + i]);
  return poplar::concat(found);
}

void spread(const Population &p, const Parts &values, Copies &copies) {
  for (const Group &g : p.groups)
    for (std::size_t r = 0; r < p.replicas.size(); ++r) {
      const Share theirs = share_of(p, values.size(g.index), r);
      if (r != g.replica && theirs.size() != 0)
        copies.add(values[p.twin(g, r).index].slice(theirs.begin, theirs.end), values[g.index].slice(theirs.begin, theirs.end));
    }
}

poplar::Tensor first_slots(const Parts &parts, std::size_t slots) {
  std::vector<poplar::Tensor> first;
  for (std::size_t i = 0; i + 1 < parts.begin.size(); ++i)
    first.push_back(parts[i].slice(0, parts.size(i) / slots));
  return poplar::concat(first);
}

void forget(poplar::program::Sequence &program, const std::vector<poplar::Tensor> &tensors) {
  for (const poplar::Tensor &tensor : tensors)
    if (tensor.numElements() != 0)
      program.add(poplar::program::WriteUndef(tensor));
}

} // namespace snnc
