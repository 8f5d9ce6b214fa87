// Definitions of indexed.hpp.
#include "indexed.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace snnc {

std::vector<Owner> owners_of(const Table &table) {
  std::vector<Owner> owners;
  for (std::size_t i = 0; i < table.rows(); ++i)
    owners.push_back({table.at(i, 0), table.at(i, 1), table.at(i, 2), table.at(i, 3) != 0, i});
  return owners;
}

std::vector<Owner> learned_owners(const std::vector<Owner> &owners) {
  std::vector<Owner> found;
  std::copy_if(owners.begin(), owners.end(), std::back_inserter(found), [](const Owner &o) { return o.learned; });
  return found;
}

std::vector<Owner> owners_between(const std::vector<Owner> &owners, std::size_t first, std::size_t last) {
  std::vector<Owner> found;
  std::copy_if(owners.begin(), owners.end(), std::back_inserter(found), [=](const Owner &o) { return o.first >= first && o.first < last; });
  return found;
}

std::vector<unsigned> places_of(const Owner &owner, const Table &order) {
  const auto begin = order.numbers.begin() + static_cast<std::ptrdiff_t>(owner.first);
  return {begin, begin + static_cast<std::ptrdiff_t>(owner.count)};
}

Parts half_theta(poplar::Graph &graph, const std::vector<Owner> &owners, const char *name, std::size_t weights) {
  const auto size = [=](const Owner &o) { return o.first < weights ? even(o.count) : std::size_t{0}; };
  return parts_on(graph, owners, name, size, poplar::HALF);
}

poplar::Tensor without_padding(const Parts &theta, const std::vector<Owner> &owners, std::size_t weights) {
  std::vector<poplar::Tensor> found;
  for (const Owner &o : owners_between(owners, 0, weights))
    found.push_back(theta[o.index].slice(0, o.count));
  return poplar::concat(found);
}

std::vector<SumShare> shares_of_sums(const std::vector<Owner> &owners, std::size_t parts) {
  std::vector<SumShare> found;
  for (const Owner &o : learned_owners(owners))
    for (std::size_t part = 0; part < parts; ++part)
      found.push_back({o.tile, o.index, o.count, part, parts});
  return found;
}

Order order_of_table(const Table &table) { return Order(table.numbers.begin(), table.numbers.end()); }

Side::Side(const Population &population, const std::vector<Table> &tables, std::size_t at)
    : p(population), groups(tables[at]), row_starts(tables[at + 1]), all_runs(tables[at + 2]), used_ranges(tables[at + 3]),
      read_ranges(tables[at + 4]), all_keys(tables[at + 5]) {}

template <class Number, class Values>
Parts constants_on(poplar::Graph &graph, const std::vector<Group> &groups, const poplar::Type &type, const Values &values) {
  Parts made;
  std::vector<Number> all;
  for (const Group &g : groups) {
    made.begin.push_back(all.size());
    values(g, all);
    if (all.size() == made.begin.back())
      all.push_back(Number{}); // A vertex field must not be empty.
  }
  made.begin.push_back(all.size());
  made.all = graph.addConstant<Number>(type, {all.size()}, all.data());
  for (std::size_t part = 0; part < groups.size(); ++part)
    graph.setTileMapping(made[part], groups[part].tile);
  return made;
}

template <class Part> unsigned Side::low(const Part &part) const { return at(cut(part), LOW); }
template unsigned Side::low(const Block &) const;
template unsigned Side::low(const Group &) const;

template <class Part> unsigned Side::span(const Part &part) const { return at(cut(part), SPAN); }
template unsigned Side::span(const Block &) const;
template unsigned Side::span(const Group &) const;

template <class Part> unsigned Side::size(const Part &part) const { return at(cut(part), SIZE); }
template unsigned Side::size(const Block &) const;
template unsigned Side::size(const Group &) const;

template <class Part> std::vector<Range> Side::used(const Part &part) const { return ranges(used_ranges, cut(part), USED); }
template std::vector<Range> Side::used(const Block &) const;
template std::vector<Range> Side::used(const Group &) const;

template <class Part> std::vector<Range> Side::read(const Part &part) const { return ranges(read_ranges, cut(part), READ); }
template std::vector<Range> Side::read(const Block &) const;
template std::vector<Range> Side::read(const Group &) const;

template <class Number> Parts Side::rows(poplar::Graph &graph, const poplar::Type &type) const {
  return constants_on<Number>(graph, p.groups, type, [&](const Group &g, std::vector<Number> &all) {
    for (std::size_t i = at(cut(g), ROWS); i < at(cut(g) + 1, ROWS); ++i)
      all.push_back(static_cast<Number>(row_starts.at(i, 0)));
  });
}
template Parts Side::rows<unsigned short>(poplar::Graph &, const poplar::Type &) const;
template Parts Side::rows<unsigned>(poplar::Graph &, const poplar::Type &) const;

template <class Number> Parts Side::keys(poplar::Graph &graph, const poplar::Type &type) const {
  return constants_on<Number>(graph, p.groups, type, [&](const Group &g, std::vector<Number> &all) {
    for (std::size_t i = at(cut(g), KEYS); i < at(cut(g) + 1, KEYS); ++i)
      all.push_back(static_cast<Number>(all_keys.at(i, 0)));
  });
}
template Parts Side::keys<unsigned short>(poplar::Graph &, const poplar::Type &) const;
template Parts Side::keys<unsigned>(poplar::Graph &, const poplar::Type &) const;

template <class Number> Parts Side::runs(poplar::Graph &graph, const poplar::Type &type, std::size_t column) const {
  return constants_on<Number>(graph, p.groups, type, [&](const Group &g, std::vector<Number> &all) {
    for (std::size_t i = at(cut(g), RUNS); i < at(cut(g) + 1, RUNS); ++i)
      all.push_back(static_cast<Number>(all_runs.at(i, column)));
  });
}
template Parts Side::runs<unsigned short>(poplar::Graph &, const poplar::Type &, std::size_t) const;
template Parts Side::runs<unsigned>(poplar::Graph &, const poplar::Type &, std::size_t) const;

Parts Side::constants(poplar::Graph &graph, const Table &values) const {
  return constants_on<float>(graph, p.groups, poplar::FLOAT, [&](const Group &g, std::vector<float> &all) {
    for (const Range &range : used(g))
      for (std::size_t i = range.first; i < range.first + range.count; ++i) {
        float value;
        std::memcpy(&value, &values.numbers[i], sizeof value);
        all.push_back(value);
      }
  });
}

Parts Side::copies(poplar::Graph &graph, const char *name) const {
  return parts_on(graph, p.groups, name, [&](const Group &g) { return std::size_t{size(g)}; });
}

poplar::Tensor Side::from(const poplar::Tensor &weights) const {
  std::vector<poplar::Tensor> found;
  for (const Group &g : p.groups)
    for (const Range &range : used(g))
      found.push_back(weights.slice(range.first, range.first + range.count));
  return poplar::concat(found);
}

template <class Part> std::vector<Range> Side::used_between(const Part &part, std::size_t first, std::size_t last) const {
  std::vector<Range> found;
  for (const Range &range : used(part)) {
    const std::size_t begin = std::max(range.first, first), end = std::min(range.first + range.count, last);
    if (begin < end)
      found.push_back({begin - first, end - begin});
  }
  return found;
}

unsigned Side::size(const Block &b, std::size_t last) const {
  std::size_t found = 0;
  for (const Range &range : used_between(b, 0, last))
    found += range.count;
  return static_cast<unsigned>(found);
}

Parts Side::copies(poplar::Graph &graph, const char *name, const poplar::Type &type, std::size_t first, std::size_t last) const {
  const auto elements = [&](const Group &g) {
    std::size_t found = 0;
    for (const Range &range : used_between(g, first, last))
      found += range.count;
    return found;
  };
  return parts_on(graph, p.groups, name, elements, type);
}

poplar::Tensor Side::from(const poplar::Tensor &weights, std::size_t first, std::size_t last) const {
  std::vector<poplar::Tensor> found;
  for (const Group &g : p.groups)
    for (const Range &range : used_between(g, first, last))
      found.push_back(weights.slice(range.first, range.first + range.count));
  return poplar::concat(found);
}

Parts Side::private_sums(poplar::Graph &graph, const char *name) const {
  return parts_on(graph, p.blocks, name, [&](const Block &b) { return std::size_t{size(b)}; });
}

poplar::Tensor Side::rows_of(const Matrix &matrix, const Block &b) const {
  const Replica &mine = p.replicas[b.replica];
  std::vector<poplar::Tensor> found;
  for (const Range &range : read(b))
    found.push_back(matrix.region(range.first, range.first + range.count, mine.sample, mine.samples));
  return found.empty() ? matrix.region(0, 1, mine.sample, mine.samples) : poplar::concat(found);
}

unsigned Side::at(std::size_t group, Column column) const { return groups.at(group, column); }

std::size_t Side::cut(const Group &g) const { return g.index % p.cuts(); }

std::size_t Side::cut(const Block &b) const { return b.group % p.cuts(); }

std::vector<Range> Side::ranges(const Table &table, std::size_t group, Column column) const {
  std::vector<Range> found;
  for (std::size_t i = at(group, column); i < at(group + 1, column); ++i)
    found.push_back({table.at(i, 0), table.at(i, 1)});
  return found;
}

Shares::Shares(const Population &p, const Side &side, const std::vector<Owner> &owners, const Parts &sums)
    : pieces(owners.size()), places(owners.size()) {
  for (const Group &g : p.groups) {
    std::size_t local = 0;
    for (const Range &range : side.used(g)) {
      const std::size_t end = range.first + range.count;
      auto owner =
          std::upper_bound(owners.begin(), owners.end(), range.first, [](std::size_t first, const Owner &o) { return first < o.first; }) -
          1;
      for (; owner != owners.end() && owner->first < end; ++owner) {
        const std::size_t begin = std::max(range.first, owner->first), stop = std::min(end, owner->first + owner->count);
        pieces[owner->index].push_back(sums[g.begin].slice(local + begin - range.first, local + stop - range.first));
        places[owner->index].push_back(static_cast<unsigned>(begin - owner->first));
        places[owner->index].push_back(static_cast<unsigned>(stop - begin));
      }
      local += range.count;
    }
  }
}

poplar::Tensor Shares::of(const SumShare &s, const poplar::Tensor &instead) const {
  const auto &all = pieces[s.owner];
  return number(s) == 0 ? instead
                        : poplar::concat(std::vector<poplar::Tensor>(all.begin() + begin(s, s.part), all.begin() + begin(s, s.part + 1)));
}

std::vector<unsigned> Shares::place(const SumShare &s) const {
  const auto &all = places[s.owner];
  return number(s) == 0 ? std::vector<unsigned>{0, 0}
                        : std::vector<unsigned>(all.begin() + 2 * begin(s, s.part), all.begin() + 2 * begin(s, s.part + 1));
}

std::size_t Shares::number(const SumShare &s) const { return static_cast<std::size_t>(begin(s, s.part + 1) - begin(s, s.part)); }

std::ptrdiff_t Shares::begin(const SumShare &s, std::size_t part) const {
  return static_cast<std::ptrdiff_t>(pieces[s.owner].size() * part / s.parts);
}

poplar::Tensor summed(const Parts &total, const Parts &rest, const SumShare &s) {
  return s.part == 0 ? total[s.owner] : rest[s.owner].slice((s.part - 1) * s.count, s.part * s.count);
}

std::vector<Group> with_several_blocks(const Population &p) {
  std::vector<Group> found;
  std::copy_if(p.groups.begin(), p.groups.end(), std::back_inserter(found), [](const Group &g) { return g.end - g.begin > 1; });
  return found;
}

} // namespace snnc
