// Blocks, groups and relays of populations, and parts of their variables.
#include "populations.hpp"

#include <algorithm>

template class std::vector<snnc::Block>;
template class std::vector<snnc::Group>;
template class std::vector<snnc::Home>;
template class std::vector<snnc::Place>;
template class std::vector<snnc::Relay>;
template class std::vector<snnc::Replica>;
template class std::vector<snnc::Table>;
template class std::vector<snnc::TileGroups>;

namespace snnc {

template <class Size> unsigned Population::most(const Size &size) const {
  unsigned found = 0;
  for (const TileGroups &t : tiles)
    found = std::max(found, size(t));
  return found;
}

Population::Population(const Table &table) {
  for (std::size_t i = 0; i < table.rows(); ++i) {
    const unsigned tile = table.at(i, 0), first = table.at(i, 1), count = table.at(i, 2), sample = table.at(i, 3), samples = table.at(i, 4);
    if (groups.empty() || groups.back().first != first || groups.back().tile != tile) {
      if (first == 0)
        replicas.push_back({sample, 0});
      groups.push_back({tile, first, count, i, i, groups.size(), replicas.size() - 1});
      if (first == 0 || tile != homes.back().tile)
        homes.push_back({tile, first, 0, groups.size() - 1, 0, replicas.size() - 1});
      homes.back().count += count;
      homes.back().end = groups.size();
      if (replicas.size() == 1)
        add_group(tile, first, count);
    }
    groups.back().end = i + 1;
    replicas.back().samples = std::max(replicas.back().samples, sample + samples - replicas.back().sample);
    blocks.push_back({tile, first, count, sample, samples, i, groups.size() - 1, replicas.size() - 1});
  }
}

unsigned Population::most_neurons() const {
  return most([](const TileGroups &t) { return t.count; });
}

unsigned Population::units() const {
  return most([](const TileGroups &t) { return static_cast<unsigned>(t.end - t.begin); }) * units_of_group();
}

std::vector<unsigned> Population::first_of_unit() const {
  std::vector<unsigned> first;
  for (std::size_t t = 0; t < tiles.size(); ++t) {
    for (std::size_t g = tiles[t].begin; g < tiles[t].end; ++g)
      for (unsigned u = 0; u < units_of_group(); ++u)
        first.push_back(groups[g].first + std::min(32 * u, groups[g].count));
    first.resize((t + 1) * units(), tiles[t].first + tiles[t].count);
  }
  first.push_back(neurons);
  return first;
}

std::vector<unsigned> Population::first_of_tile() const {
  std::vector<unsigned> first;
  for (const TileGroups &t : tiles)
    first.push_back(t.first);
  first.push_back(neurons);
  return first;
}

std::pair<unsigned, unsigned> Population::own_units(const Block &b) const {
  const std::size_t g = b.group % cuts();
  const TileGroups &t = tiles[tile_of[g]];
  const unsigned begin = static_cast<unsigned>(g - t.begin) * units_of_group();
  return {begin, g + 1 == t.end ? units() : begin + units_of_group()};
}

unsigned Population::words_of(const Block &b, unsigned unit) const { return unit * (own_units(b).second - own_units(b).first); }

std::size_t Population::cuts() const { return groups.size() / replicas.size(); }

const Group &Population::twin(const Group &g, std::size_t replica) const { return groups[replica * cuts() + g.index % cuts()]; }

unsigned Population::units_of_group() const { return (largest + 31) / 32; }

void Population::add_group(unsigned tile, unsigned first, unsigned count) {
  const std::size_t index = groups.size() - 1;
  if (index == 0 || groups[index - 1].tile != tile)
    tiles.push_back({index, index, first, 0});
  tiles.back().end = index + 1;
  tiles.back().count += count;
  tile_of.push_back(tiles.size() - 1);
  largest = std::max(largest, count);
  neurons += count;
}

std::vector<unsigned> runs_of_tiles(const Population &p) {
  std::vector<unsigned> runs, last;
  std::size_t begin = 0;
  for (const Home &h : p.homes) {
    if (h.replica != 0)
      break;
    std::vector<unsigned> now{h.count, static_cast<unsigned>(h.end - h.begin)};
    for (std::size_t g = h.begin; g < h.end; ++g)
      now.push_back(p.groups[g].count);
    if (now != last) {
      begin = runs.size();
      runs.push_back(0);
      runs.insert(runs.end(), now.begin(), now.end());
      last = now;
    }
    ++runs[begin];
  }
  return runs;
}

std::vector<Relay> relays_of(const Table &table) {
  std::vector<Relay> relays;
  for (std::size_t i = 0; i < table.rows(); ++i)
    relays.push_back({table.at(i, 0), table.at(i, 1), table.at(i, 2), i});
  return relays;
}

std::vector<unsigned> relay_pieces(const Population &p, const Relay &r, unsigned workers) {
  const unsigned row = p.units(), each = row * static_cast<unsigned>(p.tiles.size());
  const std::vector<unsigned> first = p.first_of_unit();
  std::vector<unsigned> starts, pieces;
  std::vector<unsigned> heads(r.samples + 1);
  unsigned found = 0;
  for (unsigned w = 0; w < workers; ++w) {
    const std::size_t all = static_cast<std::size_t>(each) * r.samples, end = all * (w + 1) / workers;
    starts.push_back(found);
    for (std::size_t at = all * w / workers; at < end; ++found) {
      const unsigned s = static_cast<unsigned>(at / each), begin = static_cast<unsigned>(at % each);
      const unsigned units = static_cast<unsigned>(std::min<std::size_t>(each - begin, end - at));
      if (begin == 0)
        heads[s] = found;
      const unsigned place = r.samples == 1 ? begin : (begin / row * r.samples + s) * row + begin % row;
      const unsigned run = r.samples == 1 ? units : std::min(units, row - begin % row);
      pieces.insert(pieces.end(), {s, place, run, units, begin, s * p.neurons + first[begin], s * p.neurons + first[begin + units], 0, 0});
      at += units;
    }
  }
  starts.push_back(found);
  heads[r.samples] = found;
  for (std::size_t i = 0; i < pieces.size(); i += 9) {
    pieces[i + 7] = heads[pieces[i]];
    pieces[i + 8] = heads[pieces[i] + 1];
  }
  starts.insert(starts.end(), pieces.begin(), pieces.end());
  return starts;
}

std::vector<Place> places(const Table &table) {
  std::vector<Place> found;
  for (std::size_t i = 0; i < table.rows(); ++i)
    found.push_back({table.at(i, 0)});
  return found;
}

std::vector<Reader> readers_of(const Table &table) {
  std::vector<Reader> found;
  for (std::size_t i = 0; i < table.rows(); ++i)
    found.push_back({table.at(i, 0), table.at(i, 1), table.at(i, 2), i});
  return found;
}

poplar::Tensor in_order(const std::vector<const Parts *> &from, const Table &table) {
  std::vector<poplar::Tensor> found;
  for (std::size_t i = 0; i < table.rows(); ++i)
    found.push_back((*from[table.at(i, 0)])[table.at(i, 1)]);
  return poplar::concat(found);
}

poplar::Tensor OnIpus::at(const std::vector<Relay> &relays) const {
  std::vector<poplar::Tensor> found;
  for (const Relay &r : relays)
    found.push_back((*this)[r.tile].expand({0}));
  return poplar::concat(found);
}

poplar::Tensor Parts::operator[](std::size_t part) const { return all.slice(begin[part], begin[part + 1]); }

poplar::Tensor Parts::range(std::size_t first, std::size_t last) const { return all.slice(begin[first], begin[last]); }

poplar::Tensor Sums::operator[](std::size_t block) const {
  const std::size_t g = population->blocks[block].group;
  return block == population->groups[g].begin ? first[g] : others[block - g - 1];
}

poplar::Tensor Sums::of_others(const Group &g) const { return others.range(g.begin - g.index, g.end - g.index - 1); }

poplar::Tensor Matrix::region(std::size_t first, std::size_t last, std::size_t sample, std::size_t samples) const {
  std::vector<poplar::Tensor> found;
  for (std::size_t r = 0; r < parts.size(); ++r) {
    const std::size_t begin = std::max<std::size_t>(sample, replicas[r].sample);
    const std::size_t end = std::min<std::size_t>(sample + samples, replicas[r].sample + replicas[r].samples);
    if (begin < end)
      found.push_back(parts[r].slice(first, last, 0).slice(begin - replicas[r].sample, end - replicas[r].sample, 1));
  }
  return (found.size() == 1 ? found[0] : poplar::concat(found, 1)).flatten();
}

std::size_t Matrix::rows() const { return parts[0].dim(0); }

poplar::Tensor Sent::to(const Relay &r) const {
  std::vector<poplar::Tensor> found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const unsigned begin = std::max(r.sample, replicas[i].sample);
    const unsigned end = std::min(r.sample + r.samples, replicas[i].sample + replicas[i].samples);
    if (begin < end)
      found.push_back(parts[i].slice(begin - replicas[i].sample, end - replicas[i].sample, 1));
  }
  return (found.size() == 1 ? found[0] : poplar::concat(found, 1)).flatten();
}

poplar::Tensor Sent::of_tile(const Population &p, const Home &h) const {
  const std::size_t tile = p.tile_of[h.begin % p.cuts()];
  return parts[h.replica].slice(tile, tile + 1, 0).flatten();
}

poplar::Tensor Sent::of(const Population &p, const Block &b, unsigned begin, unsigned end) const {
  const std::size_t tile = p.tile_of[b.group % p.cuts()], sample = b.sample - replicas[b.replica].sample;
  return parts[b.replica].slice(tile, tile + 1, 0).slice(sample, sample + b.samples, 1).slice(begin, end, 2).flatten();
}

poplar::Tensor own_mask(const Sent &mask, const Population &p, const Block &b, unsigned unit) {
  const auto [begin, end] = p.own_units(b);
  return mask.of(p, b, unit * begin, unit * end);
}

poplar::Tensor own_values(const Sent &values, const Population &p, const Block &b) {
  const unsigned begin = b.first - p.tiles[p.tile_of[b.group % p.cuts()]].first;
  return values.of(p, b, begin, begin + b.count);
}

void Copies::add(const poplar::Tensor &source, const poplar::Tensor &destination) {
  from.push_back(source);
  to.push_back(destination);
}

void Copies::end(poplar::program::Sequence &program, const char *name) const {
  // A tensor has elements of one type, so float16 weights are a separate copy.
  for (const bool halves : {false, true}) {
    std::vector<poplar::Tensor> sources, destinations;
    for (std::size_t i = 0; i < from.size(); ++i)
      if ((from[i].elementType() == poplar::HALF) == halves) {
        sources.push_back(from[i]);
        destinations.push_back(to[i]);
      }
    if (!sources.empty())
      program.add(poplar::program::Copy(poplar::concat(sources), poplar::concat(destinations), false, name));
  }
}

Order repeated(std::uint32_t numbers, std::size_t elements) {
  Order order(elements);
  for (std::size_t i = 0; i < elements; ++i)
    order[i] = static_cast<std::uint32_t>(i % numbers);
  return order;
}

std::size_t even(std::size_t elements) { return (elements + 1) / 2 * 2; }

Share share_of(const Population &p, std::size_t elements, std::size_t replica) {
  const auto edge = [&](std::size_t r) { return std::min(elements, 2 * (even(elements) / 2 * r / p.replicas.size())); };
  return {edge(replica), edge(replica + 1)};
}

} // namespace snnc
