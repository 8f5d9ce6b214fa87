#include "view.hpp"

#include <algorithm>

namespace poplar::core {

void RunList::append(Run run) {
  if (run.count == 0)
    return;
  if (first.empty())
    first.push_back(0);
  if (run.count == 1)
    run.stride = 1;
  if (!runs.empty()) {
    Run &last = runs.back();
    const Index step = last.count == 1 ? run.start - last.start : last.stride;
    const bool fits = last.var == run.var && run.start == last.start + last.count * step && (run.count == 1 || run.stride == step);
    // Two single elements form one run only with stride 1; otherwise rows of pairs would be split.
    if (fits && (last.count > 1 || step == 1 || run.count > 1)) {
      last.stride = step;
      last.count += run.count;
      first.back() += run.count;
      return;
    }
  }
  runs.push_back(run);
  first.push_back(first.back() + run.count);
}

Index View::numElements() const {
  Index n = 1;
  for (std::size_t d : shape)
    n *= Index(d);
  return n;
}

std::vector<Index> rowMajorStrides(const std::vector<std::size_t> &shape) {
  std::vector<Index> strides(shape.size());
  Index step = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = step;
    step *= Index(shape[i]);
  }
  return strides;
}

namespace {

struct Dim {
  Index n, stride;
};

/// The dimensions of a view without those of size one, and with neighbours merged if they form one range.
std::vector<Dim> coalesced(const View &view) {
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    const Dim d{Index(view.shape[i]), view.strides[i]};
    if (d.n == 1)
      continue;
    if (!dims.empty() && dims.back().stride == d.stride * d.n)
      dims.back() = {dims.back().n * d.n, d.stride};
    else
      dims.push_back(d);
  }
  return dims;
}

/// Calls f(start, n1, s1, n0, s0) for the two innermost dimensions at every index of the outer ones.
template <class F> void forEachBlock(const View &view, F &&f) {
  if (view.numElements() == 0)
    return;
  const std::vector<Dim> dims = coalesced(view);
  const std::size_t rank = dims.size();
  const Dim d0 = rank > 0 ? dims[rank - 1] : Dim{1, 1};
  const Dim d1 = rank > 1 ? dims[rank - 2] : Dim{1, 0};
  const std::size_t outer = rank > 2 ? rank - 2 : 0;
  std::vector<Index> at(outer, 0);
  Index start = view.offset;
  while (true) {
    f(start, d1.n, d1.stride, d0.n, d0.stride);
    std::size_t i = outer;
    while (i-- > 0) {
      start += dims[i].stride;
      if (++at[i] < dims[i].n)
        break;
      start -= dims[i].stride * dims[i].n;
      at[i] = 0;
    }
    if (i == std::size_t(-1))
      return;
  }
}

/// Calls f(run) for the elements start + j * stride (j < n) of a run list.
template <class F> void forEachRun(const RunList &list, Index start, Index stride, Index n, F &&f) {
  std::size_t r = std::size_t(std::upper_bound(list.first.begin(), list.first.end(), start) - list.first.begin()) - 1;
  for (Index j = 0; j < n;) {
    const Index at = start + j * stride;
    while (at >= list.first[r + 1])
      ++r;
    while (at < list.first[r])
      --r;
    const Run &run = list.runs[r];
    Index count = n - j;
    if (stride > 0)
      count = std::min(count, (list.first[r + 1] - 1 - at) / stride + 1);
    else if (stride < 0)
      count = std::min(count, (at - list.first[r]) / -stride + 1);
    f(Run{run.var, run.start + (at - list.first[r]) * run.stride, run.stride * stride, count});
    j += count;
  }
}

} // namespace

void appendBlock(std::vector<Block> &blocks, const Block &block) {
  if (!blocks.empty() && blocks.back().var == block.var && block.n1 == 1) {
    Block &last = blocks.back();
    if (last.n1 == 1) {
      const Index next = last.start + Index(last.n0) * last.s0;
      const bool continues = last.n0 == 1 ? block.start == last.start + 1 && (block.n0 == 1 || block.s0 == 1)
                                          : block.start == next && (block.n0 == 1 || block.s0 == last.s0);
      if (continues) {
        last.s0 = last.n0 == 1 ? 1 : last.s0;
        last.n0 += block.n0;
        return;
      }
    }
    const bool sameRow = last.n0 == block.n0 && (last.n0 == 1 || last.s0 == block.s0);
    const Index step = last.n1 == 1 ? block.start - last.start : last.s1;
    if (sameRow && block.start == last.start + Index(last.n1) * step) {
      last.s1 = step;
      ++last.n1;
      return;
    }
  }
  blocks.push_back(block);
}

std::vector<Block> blocksOf(const View &view) {
  std::vector<Block> blocks;
  forEachBlock(view, [&](Index start, Index n1, Index s1, Index n0, Index s0) {
    if (!view.list) {
      appendBlock(blocks, {view.var, std::uint32_t(n0), std::uint32_t(n1), start, s0, s1});
      return;
    }
    for (Index i = 0; i < n1; ++i)
      forEachRun(*view.list, start + i * s1, s0, n0, [&](const Run &run) {
        appendBlock(blocks, {run.var, std::uint32_t(run.count), 1, run.start, run.stride, 0});
      });
  });
  return blocks;
}

std::shared_ptr<const RunList> runsOf(const View &view) {
  auto list = std::make_shared<RunList>();
  list->first.push_back(0);
  forEachBlock(view, [&](Index start, Index n1, Index s1, Index n0, Index s0) {
    for (Index i = 0; i < n1; ++i) {
      if (!view.list)
        list->append({view.var, start + i * s1, s0, n0});
      else
        forEachRun(*view.list, start + i * s1, s0, n0, [&](const Run &run) { list->append(run); });
    }
  });
  return list;
}

bool stridesForShape(const View &view, const std::vector<std::size_t> &shape, std::vector<Index> &strides) {
  const std::vector<Dim> dims = coalesced(view);
  strides.assign(shape.size(), 1);
  if (view.numElements() <= 1)
    return true;
  // Fill the new dimensions from the innermost outward, each within one old dimension.
  std::size_t old = dims.size() - 1;
  Index left = dims[old].n, step = dims[old].stride;
  for (std::size_t i = shape.size(); i-- > 0;) {
    const Index n = Index(shape[i]);
    if (n == 1)
      continue;
    if (left == 1) {
      --old;
      left = dims[old].n;
      step = dims[old].stride;
    }
    if (left % n != 0)
      return false;
    strides[i] = step;
    step *= n;
    left /= n;
  }
  return true;
}

} // namespace poplar::core
