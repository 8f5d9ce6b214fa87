// Names of vertices made from templates.
#ifndef SNNC_POPUTIL_VERTEX_TEMPLATES_HPP
#define SNNC_POPUTIL_VERTEX_TEMPLATES_HPP

#include <string>
#include <type_traits>
#include <vector>

#include <poplar/StringRef.hpp>
#include <poplar/Type.hpp>

namespace poputil {

/// The spelling of a value in a vertex's name; programs specialise it for their own types.
template <class T> struct VertexTemplateToString {
  static std::string to_string(const T &value) { return std::to_string(value); }
};
template <> struct VertexTemplateToString<poplar::StringRef> {
  static std::string to_string(const poplar::StringRef &value) { return value; }
};

inline std::string templateArgument(const poplar::Type &type) { return type.toString(); }
inline std::string templateArgument(bool value) { return value ? "true" : "false"; }
inline std::string templateArgument(const std::string &text) { return text; }
inline std::string templateArgument(const char *text) { return text; }
template <class T> std::string templateArgument(const T &value) { return VertexTemplateToString<T>::to_string(value); }

/// templateVertex("Sum", FLOAT, 4) is "Sum<float,4>".
template <class First, class... Rest> std::string templateVertex(const std::string &name, const First &first, const Rest &...rest) {
  std::string text = name + "<" + templateArgument(first);
  for (const std::string &argument : std::vector<std::string>{templateArgument(rest)...})
    text += "," + argument;
  return text + ">";
}
inline std::string templateVertex(const std::string &name) { return name; }

} // namespace poputil

#endif
