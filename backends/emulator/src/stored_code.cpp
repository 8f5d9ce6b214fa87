#include "stored_code.hpp"

#include <poplar/exceptions.hpp>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <unistd.h>

namespace poplar::core {

namespace {

std::string wholeFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw file_load_error("compiled codelets are gone: '" + path + "' cannot be read");
  return text.str();
}

/// A file that exists as long as this object.
class Scratch {
public:
  explicit Scratch(const std::string &bytes) {
    const char *folder = std::getenv("TMPDIR");
    path = std::string(folder ? folder : "/tmp") + "/snnc-code-XXXXXX.so";
    const int file = mkstemps(path.data(), 3);
    if (file < 0)
      throw file_load_error("cannot write '" + path + "'");
    close(file);
    std::ofstream(path, std::ios::binary) << bytes;
  }
  Scratch(const Scratch &) = delete;
  Scratch &operator=(const Scratch &) = delete;
  ~Scratch() { unlink(path.c_str()); }

  std::string path;
};

} // namespace

CodeletTable withCode(const CodeletTable &table) {
  CodeletTable stored{table.text, {}, table.code};
  if (stored.code.empty())
    for (const std::string &library : table.libraries)
      stored.code.push_back(wholeFile(library));
  return stored;
}

void addStored(CodeletLibrary &codelets, CodeletTable table) {
  // A loaded library stays loaded after its file has been unlinked.
  std::vector<std::unique_ptr<Scratch>> files;
  for (const std::string &bytes : table.code) {
    files.push_back(std::make_unique<Scratch>(bytes));
    table.libraries.push_back(files.back()->path);
  }
  codelets.addTable(table, "executable");
}

std::string processorKind() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.rfind("flags", 0) == 0 || line.rfind("Features", 0) == 0)
      return line.substr(line.find(':') + 1);
  return "";
}

} // namespace poplar::core
