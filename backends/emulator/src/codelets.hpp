// Vertex types: what popc found in codelet files, and the compiled machine code.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <poplar/Type.hpp>

namespace poplar::core {

enum class FieldKind : std::uint8_t { Value, Scalar, Vector, List, State };
enum class Direction : std::uint8_t { None, Input, Output, InOut };
enum class Layout : std::uint8_t { OnePtr, Span, ShortSpan, CompactPtr };

struct Field {
  std::string name;
  std::uint32_t offset;
  FieldKind kind;
  Direction direction;
  Type type;
  Layout layout;
  std::uint32_t alignment;
  bool isEdge() const { return kind == FieldKind::Scalar || kind == FieldKind::Vector || kind == FieldKind::List; }
  bool writes() const { return direction == Direction::Output || direction == Direction::InOut; }
};

struct VertexType {
  std::string name;
  bool multi;
  /// All workers of the tile run it at the same time; its cycles are tile cycles.
  bool wholeTile = false;
  std::uint32_t size;
  std::uint32_t codeBytes;
  /// Functions shared by several types: name and bytes.
  std::vector<std::pair<std::string, std::uint32_t>> sharedCode;
  void (*compute)(void *);
  std::vector<Field> fields;
  /// The beginning of every vertex of a built-in type, and the data that it points to.
  std::vector<char> initial;
  std::shared_ptr<const void> owned;
  /// For a built-in type: its kind, and the shared data as bytes, from which its library can recreate the type.
  std::string builtinKind, builtinBytes;
  std::uint32_t fieldIndex(const std::string &field) const;
};

/// A table written by popc, and the shared libraries that it names, in order: their paths, and their bytes if they were stored in a file.
struct CodeletTable {
  std::string text;
  std::vector<std::string> libraries, code;
};

class CodeletLibrary {
public:
  /// A C++ source, or a table written by popc (.gp).
  void addFile(const std::string &path, const std::string &flags);
  void addSource(const std::string &text, const std::string &flags);
  /// A type that a library of the emulator implements; an existing type with this name is kept.
  const VertexType &addBuiltin(std::unique_ptr<VertexType> type);
  const VertexType &find(const std::string &name) const;
  bool contains(const std::string &name) const { return types_.count(name) != 0; }
  /// The tables that were read, with the paths of their libraries.
  const std::vector<CodeletTable> &tables() const { return tables_; }
  /// Reads a table whose libraries have been moved to other paths.
  void addTable(const CodeletTable &table, const std::string &name);

private:
  void loadTable(const std::string &path);
  void readTable(const CodeletTable &table, const std::string &name);
  std::vector<CodeletTable> tables_;
  std::map<std::string, std::unique_ptr<VertexType>> types_;
};

/// A unique spelling of a type name: no spaces except between words.
std::string canonicalName(const std::string &name);

} // namespace poplar::core
