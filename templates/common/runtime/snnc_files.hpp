// Files that an emitted program reads and writes: weights at known offsets of a safetensors file, tables of integers, NumPy arrays.
#ifndef SNNC_FILES_HPP
#define SNNC_FILES_HPP

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace snnc {

std::vector<char> read_file(const std::string &path);

/// Writes a temporary file and then renames it, so that the file appears completely or not at all.
void write_file(const std::string &path, const std::vector<char> &bytes);

/// The position of a tensor with 4-byte elements in weights.safetensors.
struct Stored {
  const char *name;
  std::size_t offset;
  std::size_t elements;
};

/// A table of plan.bin: rows of unsigned integers.
struct Table {
  std::size_t columns = 0;
  std::vector<std::uint32_t> numbers;
  std::size_t rows() const { return columns == 0 ? 0 : numbers.size() / columns; }
  std::uint32_t at(std::size_t row, std::size_t column) const { return numbers[row * columns + column]; }
};

/// Reads plan.bin: the number of tables, then the rows, columns and elements of each table, all as 32-bit little-endian integers.
std::vector<Table> read_tables(const std::string &path, std::size_t expected);

/// A NumPy array of float32, uint8, int32 or int64, converted to elements of type T; axis 0 counts samples.
template <class T> struct Samples {
  std::size_t count = 0;
  std::size_t width = 0;
  std::vector<T> values;
};

template <class T> Samples<T> read_npy(const std::string &path) {
  const std::vector<char> bytes = read_file(path);
  if (bytes.size() < 10 || std::memcmp(bytes.data(), "\x93NUMPY", 6) != 0)
    throw std::runtime_error(path + " is not a NumPy array");
  const unsigned char *raw = reinterpret_cast<const unsigned char *>(bytes.data());
  const bool wide = raw[6] > 1;
  const std::size_t length = wide && bytes.size() > 12 ? raw[8] | raw[9] << 8 | raw[10] << 16 : raw[8] | raw[9] << 8;
  const std::size_t start = (wide ? 12 : 10) + length;
  if (start > bytes.size())
    throw std::runtime_error(path + " is truncated");
  const std::string header(bytes.data() + (wide ? 12 : 10), length);
  if (header.find("'fortran_order': False") == std::string::npos)
    throw std::runtime_error(path + " is in Fortran order; save np.ascontiguousarray(x)");
  const std::size_t shape = header.find('(') + 1;
  Samples<T> found;
  found.count = std::stoul(header.substr(shape));
  const auto convert = [&](auto example) {
    using Number = decltype(example);
    const std::size_t n = (bytes.size() - start) / sizeof(Number);
    found.values.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      Number value;
      std::memcpy(&value, bytes.data() + start + i * sizeof(Number), sizeof value);
      found.values[i] = static_cast<T>(value);
    }
  };
  if (header.find("<f4") != std::string::npos)
    convert(float{});
  else if (header.find("|u1") != std::string::npos || header.find("|b1") != std::string::npos)
    convert(std::uint8_t{});
  else if (header.find("<i4") != std::string::npos)
    convert(std::int32_t{});
  else if (header.find("<i8") != std::string::npos)
    convert(std::int64_t{});
  else
    throw std::runtime_error(path + " is not float32, uint8, bool, int32 or int64");
  found.width = found.count == 0 ? 0 : found.values.size() / found.count;
  return found;
}

} // namespace snnc

#endif
