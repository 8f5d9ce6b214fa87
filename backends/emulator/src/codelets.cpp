#include "codelets.hpp"

#include <poplar/exceptions.hpp>

#include <cctype>
#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <link.h>
#include <sstream>
#include <unistd.h>

#include "popc.hpp"

namespace poplar::core {

std::string canonicalName(const std::string &name) {
  const auto isWord = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!std::isspace(static_cast<unsigned char>(name[i]))) {
      result += name[i];
      continue;
    }
    while (i + 1 < name.size() && std::isspace(static_cast<unsigned char>(name[i + 1])))
      ++i;
    if (!result.empty() && isWord(result.back()) && i + 1 < name.size() && isWord(name[i + 1]))
      result += ' ';
  }
  return result;
}

std::uint32_t VertexType::fieldIndex(const std::string &field) const {
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (fields[i].name == field)
      return std::uint32_t(i);
  std::string known;
  for (const Field &f : fields)
    known += (known.empty() ? "" : ", ") + f.name;
  throw unknown_field("vertex type " + name + " has no field '" + field + "'; it has: " + known);
}

namespace {

FieldKind kindOf(const std::string &text) {
  return text == "value"    ? FieldKind::Value
         : text == "scalar" ? FieldKind::Scalar
         : text == "vector" ? FieldKind::Vector
         : text == "list"   ? FieldKind::List
                            : FieldKind::State;
}

Direction directionOf(const std::string &text) {
  return text == "input" ? Direction::Input : text == "output" ? Direction::Output : text == "inout" ? Direction::InOut : Direction::None;
}

Layout layoutOf(const std::string &text) {
  return text == "ONE_PTR"       ? Layout::OnePtr
         : text == "SHORT_SPAN"  ? Layout::ShortSpan
         : text == "COMPACT_PTR" ? Layout::CompactPtr
                                 : Layout::Span;
}

Type typeOf(const std::string &text) {
  for (std::uint8_t id = BOOL.id(); id <= QUARTER_METADATA.id(); ++id)
    if (Type(id).toString() == text)
      return Type(id);
  throw file_load_error("a codelet table names the unknown type '" + text + "'");
}

std::vector<std::string> splitTabs(const std::string &line) {
  std::vector<std::string> words;
  std::stringstream stream(line);
  for (std::string word; std::getline(stream, word, '\t');)
    words.push_back(word);
  return words;
}

/// The path of a library: in the table's folder, or, if only the table was copied to another folder, where popc wrote it.
std::string libraryOf(const std::vector<std::string> &words, const std::string &folder) {
  const std::string beside = words[1][0] == '/' ? words[1] : folder + words[1];
  return words.size() > 2 && !std::ifstream(beside) ? words[2] : beside;
}

std::uintptr_t loadLibrary(const std::string &path) {
  void *handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    throw file_load_error(std::string("cannot load compiled codelets: ") + dlerror());
  link_map *map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0)
    throw file_load_error("cannot find where compiled codelets were loaded: " + path);
  return map->l_addr;
}

bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool isReadable(const std::string &path) { return access(path.c_str(), R_OK) == 0; }

/// The last component of a path, without its extension.
std::string stem(const std::string &path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.substr(0, name.rfind('.'));
}

/// The file itself; otherwise one of $SNNC_CODELETS with this stem (codelets.cpp for codelets.gp), or one in folders of $SNNC_CODELET_PATH.
std::string findFile(const std::string &path) {
  if (isReadable(path))
    return path;
  const auto parts = [](const char *variable) {
    std::vector<std::string> words;
    const char *text = std::getenv(variable);
    std::stringstream stream(text ? text : "");
    for (std::string word; std::getline(stream, word, ':');)
      if (!word.empty())
        words.push_back(word);
    return words;
  };
  for (const std::string &file : parts("SNNC_CODELETS"))
    if (stem(file) == stem(path) && isReadable(file))
      return file;
  for (const std::string &folder : parts("SNNC_CODELET_PATH")) {
    if (isReadable(folder + "/" + path))
      return folder + "/" + path;
    const std::string source = folder + "/" + path.substr(0, path.rfind('.')) + ".cpp";
    if (endsWith(path, ".gp") && isReadable(source))
      return source;
  }
  throw file_load_error("codelet file '" + path + "' cannot be read: it is not in the folder where the program runs, nor in $SNNC_CODELET_PATH; " +
                        "name it after the host program (snnc emulate HOST.cpp " + path.substr(path.rfind('/') + 1) + ")");
}

} // namespace

void CodeletLibrary::addFile(const std::string &path, const std::string &flags) {
  const std::string found = findFile(path);
  // Programs give the files that popc writes any name.
  std::string word;
  const bool table = endsWith(found, ".gp") || (std::ifstream(found) >> word && word == "popc");
  loadTable(table ? found : runPopc(found, flags));
}

void CodeletLibrary::addSource(const std::string &text, const std::string &flags) {
  const char *folder = std::getenv("TMPDIR");
  std::string path = std::string(folder ? folder : "/tmp") + "/snnc-codelets-XXXXXX.cpp";
  const int file = mkstemps(path.data(), 4);
  if (file < 0)
    throw file_load_error("cannot write '" + path + "'");
  close(file);
  std::ofstream(path) << text;
  try {
    const std::string table = runPopc(path, flags);
    unlink(path.c_str());
    loadTable(table);
  } catch (...) {
    unlink(path.c_str());
    throw;
  }
}

void CodeletLibrary::loadTable(const std::string &path) {
  char *resolved = realpath(path.c_str(), nullptr);
  const std::string whole = resolved ? resolved : path;
  std::free(resolved);
  std::ifstream file(whole);
  CodeletTable table;
  for (std::string line; std::getline(file, line); table.text += line + "\n") {
    const std::vector<std::string> words = splitTabs(line);
    if (words.size() >= 2 && words[0] == "library")
      table.libraries.push_back(libraryOf(words, whole.substr(0, whole.rfind('/') + 1)));
  }
  addTable(table, path);
}

void CodeletLibrary::addTable(const CodeletTable &table, const std::string &name) {
  try {
    readTable(table, name);
  } catch (const std::logic_error &) {
    throw file_load_error("'" + name + "' is no table of codelets: a number in it is none");
  }
  tables_.push_back(table);
}

void CodeletLibrary::readTable(const CodeletTable &table, const std::string &name) {
  std::istringstream file(table.text);
  std::string line;
  std::uintptr_t base = 0;
  std::size_t libraries = 0;
  VertexType *type = nullptr;
  while (std::getline(file, line)) {
    const std::vector<std::string> words = splitTabs(line);
    if (words.size() >= 2 && words[0] == "library") {
      if (libraries == table.libraries.size())
        throw file_load_error("'" + name + "' names a library that it lacks: " + words[1]);
      base = loadLibrary(table.libraries[libraries++]);
    } else if (words.size() == 6 && words[0] == "vertex") {
      auto entry = std::make_unique<VertexType>();
      entry->name = words[1];
      entry->multi = words[2] == "multi";
      entry->wholeTile = words[2] == "supervisor";
      entry->size = std::uint32_t(std::stoul(words[3]));
      entry->compute = reinterpret_cast<void (*)(void *)>(base + std::stoull(words[4]));
      entry->codeBytes = std::uint32_t(std::stoul(words[5]));
      type = entry.get();
      // An existing type keeps its address, because vertices point to it.
      if (!types_.emplace(entry->name, std::move(entry)).second)
        type = nullptr;
    } else if (words.size() == 3 && words[0] == "code") {
      if (type)
        type->sharedCode.emplace_back(words[1], std::uint32_t(std::stoul(words[2])));
    } else if (words.size() == 8 && words[0] == "field") {
      if (type)
        type->fields.push_back({words[1], std::uint32_t(std::stoul(words[2])), kindOf(words[3]), directionOf(words[4]), typeOf(words[5]),
                                layoutOf(words[6]), std::uint32_t(std::stoul(words[7]))});
    } else if (!line.empty() && words[0] != "popc") {
      throw file_load_error("'" + name + "' is no table of codelets: " + line);
    }
  }
}

const VertexType &CodeletLibrary::addBuiltin(std::unique_ptr<VertexType> type) {
  std::string name = type->name;
  return *types_.emplace(std::move(name), std::move(type)).first->second;
}

const VertexType &CodeletLibrary::find(const std::string &name) const {
  const auto found = types_.find(canonicalName(name));
  if (found != types_.end())
    return *found->second;
  std::string known;
  for (const auto &entry : types_)
    known += (known.empty() ? "" : ", ") + entry.first;
  throw unknown_vertex_type("no vertex type '" + name + "' in the codelets added; there are: " + (known.empty() ? "none" : known));
}

} // namespace poplar::core
