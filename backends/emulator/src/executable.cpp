// Executables and graphs in files.
#include <poplar/Executable.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>
#include <cstring>
#include <istream>
#include <iterator>
#include <new>
#include <ostream>
#include <sstream>

#include "archive.hpp"
#include "graph_archive.hpp"
#include "json_text.hpp"

namespace poplar {

namespace core {
namespace {

/// Header of a file: magic number, version of the format, length and check sum of the rest.
constexpr char magic[8] = {'S', 'N', 'N', 'C', 'E', 'X', 'E', '\n'};
constexpr std::uint32_t formatVersion = 1;

struct Header {
  char magic[8];
  std::uint32_t version, unused;
  std::uint64_t bytes, sum;
};

/// FNV-1a (Fowler, Noll, Vo) over 8-byte words, the last one padded with zeros.
std::uint64_t checkSum(const std::string &bytes) {
  std::uint64_t sum = 0xcbf29ce484222325u ^ bytes.size();
  for (std::size_t at = 0; at < bytes.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min<std::size_t>(8, bytes.size() - at));
    sum = (sum ^ word) * 0x100000001b3u;
    sum ^= sum >> 29;
  }
  return sum;
}

void writeFile(std::ostream &stream, const std::string &bytes) {
  Header header{};
  std::memcpy(header.magic, magic, sizeof magic);
  header.version = formatVersion;
  header.bytes = bytes.size();
  header.sum = checkSum(bytes);
  stream.write(reinterpret_cast<const char *>(&header), sizeof header);
  stream.write(bytes.data(), std::streamsize(bytes.size()));
  if (!stream)
    throw poplar_error("an executable of " + std::to_string(bytes.size()) + " bytes could not be written to its stream");
}

/// Reads in parts, so a wrong length does not allocate more memory than the file has bytes.
std::string readFile(std::istream &stream) {
  constexpr std::uint64_t part = 1 << 20;
  Header header{};
  stream.read(reinterpret_cast<char *>(&header), sizeof header);
  require(bool(stream), "it ends before its header does");
  require(std::memcmp(header.magic, magic, sizeof magic) == 0, "it does not begin as one does");
  require(header.version == formatVersion, "it was written by another version of the emulator: compile it again");
  std::string bytes;
  while (bytes.size() < header.bytes) {
    const std::size_t old = bytes.size(), more = std::size_t(std::min(part, header.bytes - old));
    bytes.resize(old + more);
    stream.read(bytes.data() + old, std::streamsize(more));
    require(bool(stream), "it ends too early");
  }
  require(checkSum(bytes) == header.sum, "its check sum is another: it was changed or damaged");
  return bytes;
}

void writeExecutable(std::ostream &stream, GraphData &graph, ArrayRef<program::Program> programs, const OptionFlags &options) {
  Saver saver;
  saver(std::map<std::string, std::string>(options.begin(), options.end()))(graphToBytes(graph, programs));
  writeFile(stream, saver.bytes);
}

} // namespace
} // namespace core

void Executable::serialize(std::ostream &stream) const {
  if (!valid())
    throw poplar_error("an executable that holds nothing cannot be written");
  core::writeExecutable(stream, *graph_, programs_, options_);
}

namespace {

/// Errors that the standard library raises for a damaged file are converted to the public error.
template <class F> auto loading(F &&load) {
  try {
    return load();
  } catch (const std::bad_alloc &) {
    core::refuse("it needs more memory than there is");
  } catch (const std::length_error &error) {
    core::refuse(error.what());
  }
}

Executable executableFrom(const std::string &bytes) {
  std::map<std::string, std::string> flags;
  std::string graphBytes;
  core::Loader loader(bytes);
  loader(flags)(graphBytes);
  core::require(loader.left() == 0, "more than it should");
  OptionFlags options;
  for (const auto &flag : flags)
    options.set(flag.first, flag.second);
  std::vector<program::Program> programs;
  auto graph = core::graphFromBytes(graphBytes, programs);
  return Executable(std::move(graph), std::move(programs), std::move(options));
}

} // namespace

Executable::Executable(std::shared_ptr<core::GraphData> graph, std::vector<program::Program> programs, OptionFlags options)
    : graph_(std::move(graph)), programs_(std::move(programs)), options_(std::move(options)) {}

Executable Executable::deserialize(std::istream &stream, bool) {
  return loading([&] { return executableFrom(core::readFile(stream)); });
}

Executable Executable::deserialize(std::unique_ptr<std::istream> stream, bool checkPackageHash) {
  if (!stream)
    throw poplar_error("deserialize: there is no stream");
  return deserialize(*stream, checkPackageHash);
}

void Graph::serialize(std::ostream &os, ArrayRef<program::Program> programs, SerializationFormat format) const {
  if (format == SerializationFormat::Binary)
    core::writeExecutable(os, *data_, programs, {});
  else
    core::writeGraphJson(os, *data_);
}

void Graph::serializeTensors(std::ostream &os, ArrayRef<Tensor> tensors, SerializationFormat format) const {
  if (format == SerializationFormat::Binary)
    return core::writeFile(os, core::tensorsToBytes(*data_, tensors));
  std::ostringstream archive;
  core::writeFile(archive, core::tensorsToBytes(*data_, tensors));
  core::writeTensorsJson(os, *data_, tensors, archive.str());
}

std::vector<Tensor> Graph::deserializeTensors(std::istream &is, SerializationFormat format) {
  return loading([&] {
    if (format == SerializationFormat::Binary)
      return core::tensorsFromBytes(*data_, core::readFile(is));
    std::istringstream archive(core::archiveInJson({std::istreambuf_iterator<char>(is), std::istreambuf_iterator<char>()}));
    return core::tensorsFromBytes(*data_, core::readFile(archive));
  });
}

} // namespace poplar
