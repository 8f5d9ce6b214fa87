// Arguments that a library records of an operation.
#ifndef SNNC_POPUTIL_DEBUG_INFO_HPP
#define SNNC_POPUTIL_DEBUG_INFO_HPP
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <poplar/DebugContext.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/Type.hpp>
#include <poplar/core/Language.hpp>
namespace poputil {

/// A value as a library records it; only the type's name if no overload supports it.
template <class T> struct IsProfiled : std::integral_constant<bool, std::is_arithmetic<T>::value || std::is_convertible<const T &, std::string>::value> {};
template <class T> poplar::core::EnableIf<IsProfiled<T>::value, poplar::ProfileValue> toProfileValue(const T &value) {
  return poplar::ProfileValue(value);
}
template <class T> poplar::core::EnableIf<std::is_enum<T>::value && !IsProfiled<T>::value, poplar::ProfileValue> toProfileValue(const T &value) {
  return poplar::ProfileValue(static_cast<long>(value));
}
template <class T> poplar::core::EnableIf<!std::is_enum<T>::value && !IsProfiled<T>::value, poplar::ProfileValue> toProfileValue(const T &) {
  return poplar::ProfileValue("<object>");
}
inline poplar::ProfileValue toProfileValue(const poplar::Type &type) { return type.toString(); }
inline poplar::ProfileValue toProfileValue(const poplar::Tensor &tensor) {
  if (!tensor.valid())
    return poplar::ProfileValue();
  poplar::ProfileValue::Vector shape;
  for (const std::size_t size : tensor.shape())
    shape.emplace_back(size);
  return poplar::ProfileValue::Map{{"shape", std::move(shape)}, {"type", tensor.elementType().toString()}, {"name", tensor.getName()}};
}
template <class T> poplar::ProfileValue toProfileValue(const std::vector<T> &values) {
  poplar::ProfileValue::Vector list;
  for (const auto &value : values)
    list.push_back(toProfileValue(value));
  return list;
}
inline poplar::ProfileValue toProfileValue(const poplar::OptionFlags &flags) {
  poplar::ProfileValue::Map map;
  for (const auto &flag : flags)
    map.emplace(flag.first, flag.second);
  return map;
}

struct ArgType {
  std::string n;
  poplar::ProfileValue pv;
  ArgType(const std::string &name, const poplar::ProfileValue &value) : n(name), pv(value) {}
  ArgType(const std::string &name, const char *text) : n(name), pv(text) {}
  template <class T> ArgType(const std::string &name, const T *value) : n(name), pv(value ? toProfileValue(*value) : poplar::ProfileValue()) {}
  template <class T> ArgType(const std::string &name, const T &value) : n(name), pv(toProfileValue(value)) {}
  ArgType(const ArgType &value, const std::string &name) : n(name), pv(value.pv) {}
};
using OpArguments = std::vector<ArgType>;

template <class... Arguments> OpArguments argumentsOf(const std::string &names, const Arguments &...values) {
  std::istringstream stream(names);
  const auto next = [&] {
    std::string name;
    std::getline(stream >> std::ws, name, ',');
    return name;
  };
  return {ArgType(next(), values)...};
}

class PoplibsOpDebugInfo : public poplar::DebugInfo {
public:
  PoplibsOpDebugInfo(const poplar::DebugContext &context, const OpArguments &arguments = {}, const std::string &api = __builtin_FUNCTION())
      : DebugInfo(context, "poplibs") {
    setValue("category", "op");
    setValue("api", api);
    setValue("args", mapOf(arguments));
  }
  void addOutput(const poplar::Tensor &output) { setValue("outputs", toProfileValue(output)); }
  void addOutputs(const OpArguments &outputs) { setValue("outputs", mapOf(outputs)); }

private:
  static poplar::ProfileValue mapOf(const OpArguments &arguments) {
    poplar::ProfileValue::Map map;
    for (const ArgType &argument : arguments)
      map.emplace(argument.n, argument.pv);
    return map;
  }
};
} // namespace poputil
/// The arguments of an operation with their names.
#define DI_ARGS(...) poputil::argumentsOf(#__VA_ARGS__, __VA_ARGS__)
#define DI_STR(argument) #argument
#endif
