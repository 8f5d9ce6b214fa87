// The algebra of views.
#include <poplar/Tensor.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <ostream>

#include "graph_data.hpp"
#include "view.hpp"

namespace poplar {

using core::Index;
using core::TensorData;
using core::View;

namespace core {

std::string shapeText(const std::vector<std::size_t> &shape) {
  std::string text = "{";
  for (std::size_t i = 0; i < shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "}";
}

std::vector<std::size_t> toVector(ArrayRef<std::size_t> values) { return {values.begin(), values.end()}; }

Tensor makeTensor(GraphData *graph, Type type, View view) {
  return Tensor(std::make_shared<const TensorData>(TensorData{graph, type, std::move(view)}));
}

} // namespace core

namespace {

Tensor derived(const Tensor &from, View view) { return core::makeTensor(from.data().graph, from.data().type, std::move(view)); }

[[noreturn]] void indexFailure(const std::string &operation, const Tensor &tensor, const std::string &what) {
  throw index_error(operation + ": " + what + " is outside tensor of shape " + tensor.shapeToString());
}

void checkDimension(const char *operation, const Tensor &tensor, std::size_t dimension, std::size_t limit) {
  if (dimension >= limit)
    indexFailure(operation, tensor, "dimension " + std::to_string(dimension));
}

void sliceView(View &view, const Tensor &tensor, std::size_t begin, std::size_t end, std::size_t dimension) {
  checkDimension("slice", tensor, dimension, view.shape.size());
  if (begin > end || end > view.shape[dimension])
    indexFailure("slice", tensor, "[" + std::to_string(begin) + ":" + std::to_string(end) + "] of dimension " + std::to_string(dimension));
  view.offset += Index(begin) * view.strides[dimension];
  view.shape[dimension] = end - begin;
}

template <class T> void eraseAt(std::vector<T> &values, std::size_t i) { values.erase(values.begin() + std::ptrdiff_t(i)); }
template <class T> void insertAt(std::vector<T> &values, std::size_t i, T value) {
  values.insert(values.begin() + std::ptrdiff_t(i), value);
}

Index product(const std::vector<std::size_t> &shape) {
  Index n = 1;
  for (std::size_t d : shape)
    n *= Index(d);
  return n;
}

} // namespace

Tensor::Tensor() = default;
Tensor::Tensor(const Tensor &other) = default;
Tensor::Tensor(Tensor &&other) noexcept = default;
Tensor &Tensor::operator=(const Tensor &other) = default;
Tensor &Tensor::operator=(Tensor &&other) noexcept = default;
Tensor::~Tensor() = default;

const TensorData &Tensor::data() const {
  if (!data_)
    throw tensor_creation_error("a tensor that belongs to no graph was used");
  return *data_;
}

Tensor Tensor::operator[](std::size_t i) const {
  View view = data().view;
  if (view.shape.empty())
    indexFailure("operator[]", *this, "index " + std::to_string(i));
  if (i >= view.shape[0])
    indexFailure("operator[]", *this, "index " + std::to_string(i));
  view.offset += Index(i) * view.strides[0];
  eraseAt(view.shape, 0);
  eraseAt(view.strides, 0);
  return derived(*this, std::move(view));
}

Tensor Tensor::slice(std::size_t begin, std::size_t end, unsigned dimension) const {
  View view = data().view;
  sliceView(view, *this, begin, end, dimension);
  return derived(*this, std::move(view));
}

Tensor Tensor::slice(const Interval &region, unsigned dimension) const { return slice(region.begin(), region.end(), dimension); }

Tensor Tensor::slice(ArrayRef<std::size_t> begin, ArrayRef<std::size_t> end) const {
  View view = data().view;
  if (begin.size() != end.size() || begin.size() > view.shape.size())
    throw index_error("slice: " + std::to_string(begin.size()) + " begins and " + std::to_string(end.size()) +
                      " ends for tensor of shape " + shapeToString());
  for (std::size_t d = 0; d < begin.size(); ++d)
    sliceView(view, *this, begin[d], end[d], d);
  return derived(*this, std::move(view));
}

std::vector<Tensor> Tensor::slices(ArrayRef<Interval> intervals, unsigned dimension) const {
  std::vector<Tensor> result;
  result.reserve(intervals.size());
  for (const Interval &i : intervals)
    result.push_back(slice(i, dimension));
  return result;
}

std::vector<Tensor> Tensor::slices(const std::vector<std::vector<Interval>> &intervals, unsigned dimension) const {
  std::vector<Tensor> result;
  for (const std::vector<Interval> &list : intervals)
    result.push_back(concat(slices(ArrayRef<Interval>(list), dimension), dimension));
  return result;
}

Tensor Tensor::index(ArrayRef<std::size_t> indices) const {
  Tensor result = *this;
  for (std::size_t i : indices)
    result = result[i];
  return result;
}

Tensor Tensor::reshape(ArrayRef<std::size_t> newShape) const {
  const View &old = data().view;
  View view;
  view.shape = core::toVector(newShape);
  if (product(view.shape) != old.numElements())
    throw index_error("reshape: " + shapeToString() + " has another number of elements than " + core::shapeText(view.shape));
  if (core::stridesForShape(old, view.shape, view.strides)) {
    view.var = old.var;
    view.list = old.list;
    view.offset = old.offset;
  } else {
    view.list = core::runsOf(old);
    view.strides = core::rowMajorStrides(view.shape);
  }
  return derived(*this, std::move(view));
}

Tensor Tensor::flatten() const {
  const std::size_t n = numElements();
  return reshape(ArrayRef<std::size_t>(&n, 1));
}

Tensor Tensor::flatten(unsigned dimBegin, unsigned dimEnd) const {
  if (dimBegin > dimEnd || dimEnd > rank())
    indexFailure("flatten", *this, "dimensions [" + std::to_string(dimBegin) + ":" + std::to_string(dimEnd) + "]");
  std::size_t n = 1;
  for (unsigned d = dimBegin; d < dimEnd; ++d)
    n *= dim(d);
  return reshapePartial(dimBegin, dimEnd, ArrayRef<std::size_t>(&n, 1));
}

Tensor Tensor::reshapePartial(unsigned beginIndex, unsigned endIndex, ArrayRef<std::size_t> newDims) const {
  if (beginIndex > endIndex || endIndex > rank())
    indexFailure("reshapePartial", *this, "dimensions [" + std::to_string(beginIndex) + ":" + std::to_string(endIndex) + "]");
  std::vector<std::size_t> shape_(shape().begin(), shape().begin() + beginIndex);
  shape_.insert(shape_.end(), newDims.begin(), newDims.end());
  shape_.insert(shape_.end(), shape().begin() + endIndex, shape().end());
  return reshape(shape_);
}

Tensor Tensor::dimShuffle(ArrayRef<unsigned> permutation) const {
  const View &old = data().view;
  View view = old;
  std::vector<bool> seen(old.shape.size(), false);
  if (permutation.size() != old.shape.size())
    throw index_error("dimShuffle: " + std::to_string(permutation.size()) + " dimensions for tensor of shape " + shapeToString());
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    checkDimension("dimShuffle", *this, permutation[i], old.shape.size());
    if (seen[permutation[i]])
      throw index_error("dimShuffle: dimension " + std::to_string(permutation[i]) + " stands twice in the permutation");
    seen[permutation[i]] = true;
    view.shape[i] = old.shape[permutation[i]];
    view.strides[i] = old.strides[permutation[i]];
  }
  return derived(*this, std::move(view));
}

Tensor Tensor::dimShufflePartial(ArrayRef<unsigned> source, ArrayRef<unsigned> destination) const {
  if (source.size() != destination.size())
    throw index_error("dimShufflePartial: lists of different length");
  const unsigned none = ~0u;
  std::vector<unsigned> permutation(rank(), none);
  std::vector<bool> used(rank(), false);
  for (std::size_t i = 0; i < source.size(); ++i) {
    checkDimension("dimShufflePartial", *this, std::max(source[i], destination[i]), rank());
    permutation[destination[i]] = source[i];
    used[source[i]] = true;
  }
  unsigned next = 0;
  for (unsigned &p : permutation) {
    if (p != none)
      continue;
    while (used[next])
      ++next;
    p = next++;
  }
  return dimShuffle(permutation);
}

Tensor Tensor::dimRoll(unsigned dimIdx, unsigned newIdx) const {
  checkDimension("dimRoll", *this, std::max(dimIdx, newIdx), rank());
  View view = data().view;
  const std::size_t n = view.shape[dimIdx];
  const Index stride = view.strides[dimIdx];
  eraseAt(view.shape, dimIdx);
  eraseAt(view.strides, dimIdx);
  insertAt(view.shape, newIdx, n);
  insertAt(view.strides, newIdx, stride);
  return derived(*this, std::move(view));
}

Tensor Tensor::transpose() const {
  View view = data().view;
  std::reverse(view.shape.begin(), view.shape.end());
  std::reverse(view.strides.begin(), view.strides.end());
  return derived(*this, std::move(view));
}

Tensor Tensor::expand(ArrayRef<std::size_t> indices) const {
  View view = data().view;
  std::vector<std::size_t> sorted = core::toVector(indices);
  std::sort(sorted.begin(), sorted.end());
  std::size_t added = 0;
  for (std::size_t i : sorted) {
    checkDimension("expand", *this, i, rank() + 1);
    insertAt(view.shape, i + added, std::size_t(1));
    insertAt(view.strides, i + added, Index(0));
    ++added;
  }
  return derived(*this, std::move(view));
}

Tensor Tensor::squeeze(ArrayRef<std::size_t> indices) const {
  View view = data().view;
  std::vector<std::size_t> sorted = core::toVector(indices);
  std::sort(sorted.rbegin(), sorted.rend());
  for (std::size_t i : sorted) {
    checkDimension("squeeze", *this, i, view.shape.size());
    if (view.shape[i] != 1)
      throw index_error("squeeze: dimension " + std::to_string(i) + " of tensor of shape " + shapeToString() + " is not 1");
    eraseAt(view.shape, i);
    eraseAt(view.strides, i);
  }
  return derived(*this, std::move(view));
}

Tensor Tensor::subSample(unsigned stride, unsigned dimension) const {
  checkDimension("subSample", *this, dimension, rank());
  if (stride == 0)
    throw index_error("subSample: a stride of 0");
  View view = data().view;
  view.shape[dimension] = (view.shape[dimension] + stride - 1) / stride;
  view.strides[dimension] *= Index(stride);
  return derived(*this, std::move(view));
}

Tensor Tensor::upsample(unsigned scale, unsigned dimension, UpsampleMethod) const {
  checkDimension("upsample", *this, dimension, rank());
  View view = data().view;
  insertAt(view.shape, dimension + 1, std::size_t(scale));
  insertAt(view.strides, dimension + 1, Index(0));
  return derived(*this, std::move(view)).flatten(dimension, dimension + 2);
}

Tensor Tensor::broadcast(unsigned n, unsigned dimension) const {
  checkDimension("broadcast", *this, dimension, rank());
  View view = data().view;
  if (view.shape[dimension] == 1) {
    view.shape[dimension] = n;
    view.strides[dimension] = 0;
    return derived(*this, std::move(view));
  }
  insertAt(view.shape, dimension, std::size_t(n));
  insertAt(view.strides, dimension, Index(0));
  return derived(*this, std::move(view)).flatten(dimension, dimension + 2);
}

Tensor Tensor::reverse(unsigned dimension) const {
  checkDimension("reverse", *this, dimension, rank());
  View view = data().view;
  if (view.shape[dimension] > 0)
    view.offset += view.strides[dimension] * (Index(view.shape[dimension]) - 1);
  view.strides[dimension] = -view.strides[dimension];
  return derived(*this, std::move(view));
}

Tensor Tensor::reinterpret(Type type) const {
  if (type.size() != elementType().size())
    throw type_error("reinterpret: " + elementType().toString() + " and " + type.toString() + " differ in size");
  return core::makeTensor(data().graph, type, data().view);
}

std::size_t Tensor::numElements() const { return std::size_t(data().view.numElements()); }

std::size_t Tensor::dim(unsigned i) const {
  checkDimension("dim", *this, i, rank());
  return data().view.shape[i];
}

const std::vector<std::size_t> &Tensor::shape() const { return data().view.shape; }
unsigned Tensor::rank() const { return unsigned(data().view.shape.size()); }
Type Tensor::elementType() const { return data().type; }

bool Tensor::isContiguous() const {
  const std::vector<core::Block> blocks = core::blocksOf(data().view);
  return blocks.empty() || (blocks.size() == 1 && blocks[0].contiguous());
}

std::vector<Interval> Tensor::getContiguousRegions() const {
  std::vector<Interval> regions;
  std::size_t at = 0;
  const auto add = [&](std::size_t length) {
    regions.emplace_back(at, at + length);
    at += length;
  };
  for (const core::Block &b : core::blocksOf(data().view))
    for (std::uint32_t i = 0; i < b.n1; ++i) {
      if (b.n0 == 1 || b.s0 == 1)
        add(b.n0);
      else
        for (std::uint32_t j = 0; j < b.n0; ++j)
          add(1);
    }
  return regions;
}

namespace {

struct Range {
  std::uint32_t var;
  Index begin, end;
  bool operator<(const Range &o) const { return var < o.var || (var == o.var && begin < o.begin); }
};

std::vector<Range> sortedRanges(const Tensor &tensor) {
  std::vector<Range> ranges;
  for (const core::Block &b : core::blocksOf(tensor.data().view))
    core::forEachInterval(b, [&](Index begin, Index end) { ranges.push_back({b.var, begin, end}); });
  std::sort(ranges.begin(), ranges.end());
  return ranges;
}

} // namespace

bool Tensor::containsAliases() const {
  Index covered = 0, end = 0;
  std::uint32_t var = ~0u;
  for (const Range &r : sortedRanges(*this)) {
    const Index from = r.var == var ? std::max(r.begin, end) : r.begin;
    covered += std::max<Index>(0, r.end - from);
    end = r.var == var ? std::max(end, r.end) : r.end;
    var = r.var;
  }
  return covered < Index(numElements());
}

bool Tensor::intersectsWith(const Tensor &other) const {
  const std::vector<Range> a = sortedRanges(*this), b = sortedRanges(other);
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (a[i].var == b[j].var && a[i].begin < b[j].end && b[j].begin < a[i].end)
      return true;
    const bool first = a[i].var < b[j].var || (a[i].var == b[j].var && a[i].end <= b[j].end);
    ++(first ? i : j);
  }
  return false;
}

std::string Tensor::shapeToString() const { return core::shapeText(shape()); }

std::string Tensor::getName() const {
  const std::vector<core::Block> blocks = core::blocksOf(data().view);
  return blocks.empty() ? "" : data().graph->variables[blocks[0].var].name;
}

std::string Tensor::getDebugStr() const { return getName() + shapeToString(); }

bool Tensor::operator==(const Tensor &other) const {
  if (!data_ || !other.data_)
    return data_ == other.data_;
  if (elementType() != other.elementType() || shape() != other.shape())
    return false;
  const std::vector<core::Block> a = core::blocksOf(data().view), b = core::blocksOf(other.data().view);
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const core::Block &x, const core::Block &y) {
    return x.var == y.var && x.n0 == y.n0 && x.n1 == y.n1 && x.start == y.start && (x.n0 == 1 || x.s0 == y.s0) && (x.n1 == 1 || x.s1 == y.s1);
  });
}

Tensor concat(ArrayRef<Tensor> tensors, unsigned dimension) {
  if (tensors.empty())
    throw tensor_creation_error("concat of no tensors");
  if (tensors.size() == 1)
    return tensors[0];
  std::vector<std::size_t> shape = tensors[0].shape();
  checkDimension("concat", tensors[0], dimension, shape.size());
  auto list = std::make_shared<core::RunList>();
  list->first.push_back(0);
  shape[dimension] = 0;
  for (const Tensor &t : tensors) {
    if (t.elementType() != tensors[0].elementType())
      throw type_error("concat: " + t.elementType().toString() + " with " + tensors[0].elementType().toString());
    for (unsigned d = 0; d < shape.size(); ++d)
      if (t.rank() != shape.size() || (d != dimension && t.dim(d) != shape[d]))
        throw index_error("concat: shape " + t.shapeToString() + " does not fit " + tensors[0].shapeToString() + " along dimension " +
                          std::to_string(dimension));
    shape[dimension] += t.dim(dimension);
    const std::shared_ptr<const core::RunList> part = core::runsOf(t.dimRoll(dimension, 0).data().view);
    for (const core::Run &run : part->runs)
      list->append(run);
  }
  View view;
  const std::size_t n = shape[dimension];
  eraseAt(shape, dimension);
  insertAt(shape, 0, n);
  view.shape = shape;
  view.strides = core::rowMajorStrides(shape);
  if (list->runs.size() == 1 && list->runs[0].stride == 1) {
    view.var = list->runs[0].var;
    view.offset = list->runs[0].start;
  } else {
    view.list = std::move(list);
  }
  return derived(tensors[0], std::move(view)).dimRoll(0, dimension);
}

Tensor concat(const Tensor &first, const Tensor &second, unsigned dimension) {
  const Tensor both[] = {first, second};
  return concat(ArrayRef<Tensor>(both, 2), dimension);
}

Tensor append(const Tensor &tensor, const Tensor &value, unsigned dimension) {
  const std::size_t at = dimension;
  return concat(tensor, value.expand(ArrayRef<std::size_t>(&at, 1)), dimension);
}

Tensor append(const Tensor &tensor, const Tensor &value) { return append(tensor, value, 0); }

std::ostream &operator<<(std::ostream &os, const Tensor &tensor) { return os << tensor.getDebugStr(); }

} // namespace poplar
