#include "usage.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine_data.hpp"

namespace poplar::core {

namespace {

struct Written {
  std::uint32_t variable;
  Index begin, end;
};

/// Whether the ranges of one variable, which are sorted, cover all its elements.
bool isWhole(const Written *begin, const Written *end, Index elements) {
  Index reached = 0;
  for (; begin != end && begin->begin <= reached; ++begin)
    reached = std::max(reached, begin->end);
  return reached >= elements;
}

class Finder {
public:
  explicit Finder(const EngineData &engine) : engine_(engine), graph_(*engine.graph), numbers_(graph_.variables.size(), ~0u) {
    for (std::uint32_t v = 0; v < graph_.variables.size(); ++v)
      if (!graph_.variables[v].constant)
        addVariable(v);
    const std::size_t sites = engine.supersteps.size() + engine.ops.size();
    const Set none(usage_.variables.size());
    usage_.visible = none;
    for (std::vector<Set> *sets : {&usage_.reads, &usage_.writes, &usage_.overwrites})
      sets->assign(sites, none);
  }

  Usage find() {
    for (std::size_t s = 0; s < engine_.supersteps.size(); ++s)
      addComputeSet(s, engine_.supersteps[s]->computeSet);
    for (std::uint32_t op = 0; op < engine_.ops.size(); ++op) {
      const std::size_t site = siteOf(engine_, op);
      for (const Block &block : blocks(engine_.ops[op].source))
        read(usage_.reads[site], block);
      for (const Block &block : blocks(engine_.ops[op].offset))
        read(usage_.reads[site], block);
      for (const Block &block : blocks(engine_.ops[op].destination))
        write(site, block);
      closeSite(site);
    }
    for (const auto &entry : graph_.handles)
      for (const Block &block : blocksOf(entry.second.tensor.view))
        read(usage_.visible, block);
    return std::move(usage_);
  }

private:
  void addVariable(std::uint32_t v) {
    numbers_[v] = std::uint32_t(usage_.variables.size());
    usage_.variables.push_back(v);
    std::map<std::uint32_t, std::uint64_t> bytes;
    for (const Piece &p : graph_.variables[v].tiles.pieces())
      bytes[p.tile] += std::uint64_t(p.end - p.begin) * graph_.variables[v].type.size();
    usage_.bytes.emplace_back();
    for (const auto &[tile, size] : bytes)
      usage_.bytes.back().push_back({tile, size});
  }

  static std::vector<Block> blocks(const Tensor &tensor) {
    return tensor.valid() && tensor.numElements() > 0 ? blocksOf(tensor.data().view) : std::vector<Block>();
  }

  void addComputeSet(std::size_t site, std::uint32_t computeSet) {
    for (std::uint32_t v : graph_.computeSets[computeSet].vertices) {
      const VertexData &vertex = graph_.vertices[v];
      for (const Edge &edge : vertex.edges) {
        const Direction direction = vertex.type->fields[edge.field].direction;
        for (std::uint32_t b = edge.firstBlock; b < edge.firstBlock + edge.numBlocks; ++b) {
          if (direction != Direction::Output)
            read(usage_.reads[site], graph_.blocks[b]);
          if (direction != Direction::Input)
            write(site, graph_.blocks[b]);
        }
      }
    }
    closeSite(site);
  }

  void read(Set &set, const Block &block) const {
    if (numbers_[block.var] != ~0u)
      set.add(numbers_[block.var]);
  }

  void write(std::size_t site, const Block &block) {
    const std::uint32_t number = numbers_[block.var];
    usage_.writes[site].add(number);
    forEachInterval(block, [&](Index begin, Index end) { written_.push_back({number, begin, end}); });
  }

  /// From the written ranges, determine which variables are written completely.
  void closeSite(std::size_t site) {
    std::sort(written_.begin(), written_.end(),
              [](const Written &a, const Written &b) { return std::tie(a.variable, a.begin) < std::tie(b.variable, b.begin); });
    for (std::size_t first = 0, next; first < written_.size(); first = next) {
      for (next = first; next < written_.size() && written_[next].variable == written_[first].variable;)
        ++next;
      const Index elements = graph_.variables[usage_.variables[written_[first].variable]].elements;
      if (isWhole(&written_[first], written_.data() + next, elements))
        usage_.overwrites[site].add(written_[first].variable);
    }
    written_.clear();
  }

  const EngineData &engine_;
  const GraphData &graph_;
  std::vector<std::uint32_t> numbers_;
  std::vector<Written> written_;
  Usage usage_;
};

} // namespace

std::size_t siteOf(const EngineData &engine, std::uint32_t op) {
  return engine.ops[op].kind == ProgramKind::Execute ? engine.ops[op].number : engine.supersteps.size() + op;
}

Usage findUsage(const EngineData &engine) { return Finder(engine).find(); }

} // namespace poplar::core
