// The vertices of reductions: what one computes, its type and its cycles.
#include "reduction_vertex.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "../src/halves.hpp"
#include "evaluate.hpp"

namespace poplibs {

using popops::Operation;
using poplar::core::Direction;

namespace {

double readElement(Type type, const char *at) {
  const auto as = [&](auto value) {
    std::memcpy(&value, at, sizeof value);
    return double(value);
  };
  switch (type.id()) {
  case poplar::FLOAT.id():
    return as(float());
  case poplar::HALF.id():
    return as(half());
  case poplar::INT.id():
    return as(std::int32_t());
  case poplar::UNSIGNED_INT.id():
    return as(std::uint32_t());
  case poplar::SHORT.id():
    return as(std::int16_t());
  case poplar::UNSIGNED_SHORT.id():
    return as(std::uint16_t());
  case poplar::CHAR.id():
  case poplar::SIGNED_CHAR.id():
    return as(std::int8_t());
  case poplar::LONGLONG.id():
  case poplar::UNSIGNED_LONGLONG.id():
    return as(std::int64_t());
  default:
    return as(std::uint8_t());
  }
}

void writeElement(Type type, char *at, double value) {
  const auto put = [&](auto converted) { std::memcpy(at, &converted, sizeof converted); };
  if (type == poplar::FLOAT)
    put(float(value));
  else if (type == poplar::HALF)
    put(half(float(value)));
  else if (type == poplar::BOOL)
    put(std::uint8_t(value != 0));
  else if (type.size() == 1)
    put(std::uint8_t(std::int64_t(value)));
  else if (type.size() == 2)
    put(std::uint16_t(std::int64_t(value)));
  else if (type.size() == 4)
    put(std::uint32_t(std::int64_t(value)));
  else
    put(std::int64_t(value));
}

double identity(Operation op) {
  const double infinity = std::numeric_limits<double>::infinity();
  return op == Operation::MUL || op == Operation::LOGICAL_AND ? 1
         : op == Operation::MIN                               ? infinity
         : op == Operation::MAX || op == Operation::LOG_ADD   ? -infinity
                                                              : 0;
}

double combine(Operation op, double a, double b) {
  switch (op) {
  case Operation::ADD:
    return a + b;
  case Operation::SQUARE_ADD:
    return a + b * b;
  case Operation::MUL:
    return a * b;
  case Operation::MIN:
    return std::fmin(a, b);
  case Operation::MAX:
    return std::fmax(a, b);
  case Operation::LOGICAL_AND:
    return a != 0 && b != 0;
  case Operation::LOGICAL_OR:
    return a != 0 || b != 0;
  case Operation::LOG_ADD:
    break;
  }
  const double high = std::fmax(a, b);
  return std::isinf(high) ? high : high + std::log(std::exp(a - high) + std::exp(b - high));
}

/// Reduces rows in float, as vertices of an IPU do.
float accumulateReals(const RowLengths &rows, const char *from, std::size_t n) {
  constexpr std::size_t block = 128;
  float buffer[block], value = float(identity(rows.op));
  for (std::size_t begin = 0; begin < n; begin += block) {
    const std::size_t size = std::min(block, n - begin);
    const float *x = reinterpret_cast<const float *>(from) + begin;
    if (rows.in == poplar::HALF) {
      poplar::core::widen(from + 2 * begin, buffer, size);
      x = buffer;
    }
    if (rows.op == Operation::ADD)
      value = std::accumulate(x, x + size, value);
    else
      for (std::size_t i = 0; i < size; ++i)
        value = float(combine(rows.op, value, x[i]));
  }
  return value;
}

/// Integers are accumulated exactly.
double accumulate(const RowLengths &rows, const Slot &in, std::uint32_t begin, std::uint32_t end) {
  const std::size_t bytes = rows.in.size();
  if (isReal(rows.in))
    return accumulateReals(rows, in.data + begin * bytes, end - begin);
  double value = identity(rows.op);
  for (std::uint32_t i = begin; i < end; ++i) {
    value = combine(rows.op, value, readElement(rows.in, in.data + i * bytes));
  }
  return value;
}

void runReduce(const State &state) {
  const RowLengths &rows = *static_cast<const RowLengths *>(state.shared);
  const Slot &out = state.slots[0], &in = state.slots[1];
  const double factor = rows.scaled ? double(*state.slots[2].as<float>()) : 1;
  std::uint32_t begin = 0;
  for (std::uint32_t i = 0; i < out.count; ++i) {
    char *const to = out.data + i * rows.out.size();
    double value = accumulate(rows, in, begin, rows.ends[i]) * factor;
    if (rows.update)
      value += readElement(rows.out, to);
    writeElement(rows.out, to, value);
    begin = rows.ends[i];
  }
}

} // namespace

const BuiltinKind reduceKind{"popops.reduce", &runReduce, &readShared<RowLengths>};

const char *reductionName(Operation op) {
  constexpr const char *names[] = {"ADD", "MUL", "MIN", "MAX", "LOGICAL_AND", "LOGICAL_OR", "SQUARE_ADD", "LOG_ADD"};
  return names[int(op)];
}

std::string reductionType(Graph &graph, const RowLengths &rows) {
  std::string name = std::string("popops::Reduce<") + reductionName(rows.op) + "," + rows.in.toString() + "," + rows.out.toString() +
                     (rows.update ? ",update" : "") + (rows.scaled ? ",scaled" : "") + ">[";
  // Runs of rows with the same length are written once.
  for (std::size_t i = 0; i < rows.ends.size();) {
    const auto length = [&](std::size_t row) { return rows.ends[row] - (row ? rows.ends[row - 1] : 0); };
    std::size_t same = i;
    while (same < rows.ends.size() && length(same) == length(i))
      ++same;
    name += std::to_string(same - i) + "x" + std::to_string(length(i)) + (same < rows.ends.size() ? "," : "");
    i = same;
  }
  name += "]";
  if (hasType(graph, name))
    return name;
  std::vector<FieldSpec> fields{{"out", rows.update ? Direction::InOut : Direction::Output, rows.out}, {"in", Direction::Input, rows.in}};
  if (rows.scaled)
    fields.push_back({"scale", Direction::Input, poplar::FLOAT});
  builtinType(graph, name, fields, reduceKind, rows, 400);
  return name;
}

std::uint64_t reductionCycles(const Graph &graph, const RowLengths &rows) {
  const std::size_t width = rows.in == poplar::HALF ? 4 : rows.in == poplar::FLOAT ? 2 : 1;
  const std::size_t workers = graph.getTarget().getNumWorkerContexts();
  std::size_t total = 0, begin = 0;
  for (std::uint32_t end : rows.ends) {
    total += 5 + (end - begin + width - 1) / width;
    begin = end;
  }
  return sharedCycles(graph, 29 + (total + workers - 1) / workers);
}

} // namespace poplibs
