// Reading a profile back.
#include <poplar/Engine.hpp>
#include <pva/pva.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "execution_report.hpp"

namespace poplar {

pva::Report Engine::getReport(bool reportExecution) const {
  const EmulatorProfile profile = getEmulatorProfile();
  pva::Report report;
  report.compilation_.target_.tiles = profile.tiles;
  report.compilation_.target_.ipus = profile.ipus;
  report.compilation_.target_.bytes = profile.bytesPerTile;
  report.compilation_.target_.clock = profile.clockHz;
  report.compilation_.graph_.computeSets = profile.computeSets;
  report.compilation_.graph_.variables = profile.variables;
  report.compilation_.graph_.vertices = profile.vertices;
  report.compilation_.graph_.edges = profile.edges;
  for (const TileMemory &memory : profile.memory) {
    report.compilation_.tiles_.emplace_back();
    report.compilation_.tiles_.back().memory_.total_.bytes = memory.peak();
  }
  core::ProgramTree tree(*data_);
  for (const std::uint32_t program : data_->programs)
    report.compilation_.programs_.push_back(tree.of(program));
  if (reportExecution && data_->trace)
    report.execution_ = core::executionReport(*data_, tree);
  return report;
}

} // namespace poplar

namespace pva {

namespace {

bool readFile(const std::string &path, std::string &text) {
  std::ifstream file(path);
  std::ostringstream whole;
  if (!file || !(whole << file.rdbuf()))
    return false;
  text = whole.str();
  return true;
}

/// The number after a name in the profile's first objects.
double numberOf(const std::string &text, const char *name, const std::string &path) {
  const std::string key = std::string("\"") + name + "\": ";
  const std::size_t at = text.find(key);
  char *end = nullptr;
  const double value = at == std::string::npos ? 0 : std::strtod(text.c_str() + at + key.size(), &end);
  if (!end || end == text.c_str() + at + key.size())
    throw std::runtime_error("'" + path + "' is no profile of the emulator: it has no " + name);
  return value;
}

} // namespace

Report openReport(const std::string &path) {
  std::string text;
  const std::string other = path.substr(0, path.rfind('.')) + ".json";
  if (!readFile(path, text) && !readFile(other, text))
    throw std::runtime_error("no profile '" + path + "' nor '" + other + "': run the program with the engine option autoReport.all");
  Report report;
  const auto count = [&](const char *name) { return std::uint64_t(numberOf(text, name, path)); };
  report.compilation_.target_.tiles = count("tiles");
  report.compilation_.target_.ipus = count("ipus");
  report.compilation_.target_.bytes = count("bytes_per_tile");
  report.compilation_.target_.clock = numberOf(text, "clock_hz", path);
  report.compilation_.graph_.computeSets = count("compute_sets");
  report.compilation_.graph_.variables = count("variables");
  report.compilation_.graph_.vertices = count("vertices");
  report.compilation_.graph_.edges = count("edges");
  return report;
}

} // namespace pva
