// Text for JSON.
#pragma once

#include <cstdio>
#include <ostream>
#include <string>

#include <poplar/Tensor.hpp>

namespace poplar::core {

struct GraphData;

inline std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (const char c : text) {
    char code[8];
    if (c == '"' || c == '\\') {
      (result += '\\') += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      std::snprintf(code, sizeof code, "\\u%04x", unsigned(c));
      result += code;
    } else {
      result += c;
    }
  }
  return result + '"';
}

/// Variables with their tiles, compute sets with their vertices.
void writeGraphJson(std::ostream &os, const GraphData &graph);
/// Tensors as elements of their variables; the binary archive, in hexadecimal digits, is what is read back.
void writeTensorsJson(std::ostream &os, const GraphData &graph, ArrayRef<Tensor> tensors, const std::string &archive);
/// The bytes of the archive; throws graph_object_load_error if there is none.
std::string archiveInJson(const std::string &text);

} // namespace poplar::core
