#include "liveness.hpp"

#include "engine_data.hpp"

namespace poplar::core {

Liveness::Liveness(const EngineData &engine, const Usage &usage) : engine_(engine), usage_(usage), between_(usage.visible) {
  for (Set last; !(last == between_);) {
    last = between_;
    for (std::uint32_t program : engine.programs)
      between_ |= before(program, last, nullptr);
  }
}

void Liveness::walk(const Visit &visit) const {
  for (std::uint32_t p = 0; p < engine_.programs.size(); ++p) {
    Walk walk{visit, p, {}};
    before(engine_.programs[p], between_, &walk);
  }
}

Set Liveness::before(std::uint32_t number, const Set &after, Walk *walk) const {
  const Op &op = engine_.ops[number];
  if (!op.children.empty()) {
    if (walk && !walk->done.emplace(number, after).second)
      walk = nullptr;
    const Place place(number, after);
    if (!walk) {
      const auto found = known_.find(place);
      if (found != known_.end())
        return found->second;
    }
    return known_.insert_or_assign(place, beforeComposite(number, after, walk)).first->second;
  }
  const std::size_t site = siteOf(engine_, number);
  const Set &reads = usage_.reads[site];
  if (walk && op.kind != ProgramKind::Sequence && op.kind != ProgramKind::Sync && op.kind != ProgramKind::WriteUndef)
    walk->visit(walk->program, number, after | reads | usage_.writes[site], after);
  return (after - usage_.overwrites[site]) | reads | usage_.visible;
}

Set Liveness::beforeComposite(std::uint32_t number, const Set &after, Walk *walk) const {
  const Op &op = engine_.ops[number];
  const std::size_t site = siteOf(engine_, number);
  switch (op.kind) {
  case ProgramKind::Repeat: {
    if (op.number == 0)
      return after;
    Set end = after;
    for (Set last; op.number > 1 && !(last == end);) {
      last = end;
      end |= before(op.children[0], end, nullptr);
    }
    return before(op.children[0], end, walk);
  }
  case ProgramKind::WhileTrue:
  case ProgramKind::WhileFalse:
    return beforeLoop(op, site, number, after, walk);
  case ProgramKind::If:
  case ProgramKind::Switch:
    return beforeChoice(op, site, number, after, walk);
  default: {
    Set live = after;
    for (std::size_t c = op.children.size(); c-- > 0;)
      live = before(op.children[c], live, walk);
    return live;
  }
  }
}

/// The condition, the decision, then either the body and the condition again, or the operations that follow.
Set Liveness::beforeLoop(const Op &op, std::size_t site, std::uint32_t number, const Set &after, Walk *walk) const {
  Set decision = after | usage_.reads[site];
  for (Set last; !(last == decision);) {
    last = decision;
    decision |= before(op.children[1], before(op.children[0], decision, nullptr), nullptr);
  }
  if (walk) {
    before(op.children[1], before(op.children[0], decision, nullptr), walk);
    walk->visit(walk->program, number, decision, decision);
  }
  return before(op.children[0], decision, walk);
}

Set Liveness::beforeChoice(const Op &op, std::size_t site, std::uint32_t number, const Set &after, Walk *walk) const {
  Set live = usage_.reads[site];
  if (op.kind == ProgramKind::Switch && !op.hasDefault)
    live |= after;
  for (std::size_t c = op.children.size(); c-- > 0;)
    live |= before(op.children[c], after, walk);
  if (walk)
    walk->visit(walk->program, number, live, live);
  return live;
}

} // namespace poplar::core
