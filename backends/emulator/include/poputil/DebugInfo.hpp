// What an operation of a library tells of its arguments: the emulator keeps its name.
#ifndef SNNC_POPUTIL_DEBUG_INFO_HPP
#define SNNC_POPUTIL_DEBUG_INFO_HPP
#include <initializer_list>
#include <string>
#include <utility>

#include <poplar/DebugContext.hpp>
#include <poplar/ProfileValue.hpp>
#include <poplar/Tensor.hpp>
namespace poputil {
template <class T> poplar::ProfileValue toProfileValue(const T &) { return {}; }
struct OpArguments {
  OpArguments() = default;
  OpArguments(std::initializer_list<std::pair<std::string, poplar::ProfileValue>>) {}
};
template <class... Arguments> OpArguments argumentsOf(const Arguments &...) { return {}; }
class PoplibsOpDebugInfo : public poplar::DebugContext {
public:
  PoplibsOpDebugInfo(const poplar::DebugContext &context, const OpArguments & = {}, const std::string & = {}) : DebugContext(context) {}
  void addOutput(const poplar::Tensor &) {}
  void addOutputs(const OpArguments &) {}
};
} // namespace poputil
#define DI_ARGS(...) poputil::argumentsOf(__VA_ARGS__)
#define DI_STR(argument) #argument
#endif
