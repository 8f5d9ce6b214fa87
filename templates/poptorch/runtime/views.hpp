// Views of tensors in the model's order as tensors in the device's order, and vice versa, with as few pieces as possible.
#ifndef SNNC_VIEWS_HPP
#define SNNC_VIEWS_HPP

#include "layout.hpp"

#include <poplar/Tensor.hpp>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

namespace snnc {

/// The elements [place, place + rows * columns) of an order, such that row r, column c is element from + r * row_step + c * column_step.
struct Patch {
  std::size_t place, from, rows, columns, row_step, column_step;
};

/// Divides an order into patches, without elements that are NOWHERE.
inline std::vector<Patch> patches_of(const Order &order) {
  std::vector<Patch> found;
  const std::size_t n = order.size();
  const auto follows = [&](std::size_t i, std::size_t step) {
    return i < n && order[i] != NOWHERE && order[i] - std::size_t{order[i - 1]} == step;
  };
  for (std::size_t i = 0; i < n;) {
    if (order[i] == NOWHERE) {
      ++i;
      continue;
    }
    Patch p{i, order[i], 1, 1, 1, 1};
    if (i + 1 < n && order[i + 1] != NOWHERE && order[i + 1] > order[i]) {
      p.column_step = order[i + 1] - order[i];
      while (follows(i + p.columns, p.column_step))
        ++p.columns;
    }
    const auto same = [&](std::size_t row, std::size_t step) {
      for (std::size_t c = 0; c < p.columns; ++c)
        if (order[i + row * p.columns + c] == NOWHERE || order[i + row * p.columns + c] != p.from + row * step + c * p.column_step)
          return false;
      return true;
    };
    if (p.columns > 1 && i + 2 * p.columns <= n && order[i + p.columns] != NOWHERE && order[i + p.columns] > order[i]) {
      p.row_step = order[i + p.columns] - order[i];
      while (i + (p.rows + 1) * p.columns <= n && same(p.rows, p.row_step))
        ++p.rows;
    }
    i += p.rows * p.columns;
    found.push_back(p);
  }
  return found;
}

/// Returns the inverse order, for `elements` elements.
inline Order inverse(const Order &order, std::size_t elements) {
  Order back(elements, NOWHERE);
  for (std::size_t i = 0; i < order.size(); ++i)
    if (order[i] != NOWHERE && back[order[i]] == NOWHERE)
      back[order[i]] = static_cast<std::uint32_t>(i);
  return back;
}

/// Returns every `step`-th element of a flat tensor, `count` elements from `from` on.
inline poplar::Tensor line_of(const poplar::Tensor &flat, std::size_t from, std::size_t count, std::size_t step) {
  const poplar::Tensor all = flat.slice(from, from + (count - 1) * step + 1);
  return step == 1 ? all : all.subSample(static_cast<unsigned>(step), 0);
}

/// Returns [outer][inner] elements of a flat tensor; the inner ones are closer together.
inline poplar::Tensor grid_of(const poplar::Tensor &flat, std::size_t from, std::size_t outer, std::size_t outer_step, std::size_t inner,
                              std::size_t inner_step) {
  const std::size_t span = (inner - 1) * inner_step + 1, begin = from % outer_step, row = from - begin;
  if (begin + span <= outer_step && row + outer * outer_step <= flat.numElements()) {
    const poplar::Tensor some = flat.slice(row, row + outer * outer_step).reshape({outer, outer_step}).slice(begin, begin + span, 1);
    return inner_step == 1 ? some : some.subSample(static_cast<unsigned>(inner_step), 1);
  }
  std::vector<poplar::Tensor> lines;
  for (std::size_t i = 0; i < outer; ++i)
    lines.push_back(line_of(flat, from + i * outer_step, inner, inner_step).expand({0}));
  return poplar::concat(lines);
}

/// Returns a patch of a flat tensor, flat, in order.
inline poplar::Tensor patch_of(const poplar::Tensor &flat, const Patch &p) {
  if (p.rows == 1)
    return line_of(flat, p.from, p.columns, p.column_step);
  if (p.column_step <= p.row_step)
    return grid_of(flat, p.from, p.rows, p.row_step, p.columns, p.column_step).flatten();
  return grid_of(flat, p.from, p.columns, p.column_step, p.rows, p.row_step).dimShuffle({1, 0}).flatten();
}

/// Returns the device elements in the model's order, `elements` elements, flat. An empty order means that both orders are equal.
inline poplar::Tensor in_order(const poplar::Tensor &on_device, const Order &order, std::size_t elements) {
  const poplar::Tensor flat = on_device.flatten();
  if (order.empty())
    return flat;
  std::vector<poplar::Tensor> pieces;
  std::size_t seen = 0;
  for (const Patch &p : patches_of(inverse(order, elements))) {
    pieces.push_back(patch_of(flat, p));
    seen += p.rows * p.columns;
  }
  if (seen != elements)
    throw std::logic_error("an order omits elements");
  return poplar::concat(pieces);
}

} // namespace snnc

#endif
