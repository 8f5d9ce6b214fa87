// Definitions of snnc_files.hpp.
#include "snnc_files.hpp"

#include <cstdio>
#include <fstream>

namespace snnc {

std::vector<char> read_file(const std::string &path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff size = file ? static_cast<std::streamoff>(file.tellg()) : -1;
  if (size < 0)
    throw std::runtime_error("cannot read " + path);
  std::vector<char> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  if (size != 0 && !file.read(bytes.data(), size))
    throw std::runtime_error("cannot read " + path);
  return bytes;
}

void write_file(const std::string &path, const std::vector<char> &bytes) {
  const std::string beside = path + ".part";
  {
    std::ofstream file(beside, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.flush();
    if (!file) {
      std::remove(beside.c_str());
      throw std::runtime_error("cannot write " + path);
    }
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) {
    std::remove(beside.c_str());
    throw std::runtime_error("cannot rename " + beside + " to " + path);
  }
}

std::vector<Table> read_tables(const std::string &path, std::size_t expected) {
  const std::vector<char> bytes = read_file(path);
  std::size_t position = 0;
  const auto next = [&] {
    std::uint32_t number = 0;
    if (position + sizeof number > bytes.size())
      throw std::runtime_error(path + " is truncated");
    std::memcpy(&number, bytes.data() + position, sizeof number);
    position += sizeof number;
    return number;
  };
  std::vector<Table> tables(next());
  if (tables.size() != expected)
    throw std::runtime_error(path + " does not belong to this program");
  for (Table &table : tables) {
    const std::size_t rows = next();
    table.columns = next();
    table.numbers.resize(rows * table.columns);
    for (std::uint32_t &number : table.numbers)
      number = next();
  }
  return tables;
}

} // namespace snnc
