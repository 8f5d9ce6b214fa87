// A function of the host that a program calls.
#ifndef SNNC_POPLAR_HOST_FUNCTION_CALLBACK_HPP
#define SNNC_POPLAR_HOST_FUNCTION_CALLBACK_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <poplar/ArrayRef.hpp>
#include <poplar/DataStream.hpp>
#include <poplar/Type.hpp>
#include <poplar/core/Language.hpp>

namespace poplar {

class HostCallback {
public:
  virtual ~HostCallback() = default;
  virtual void operator()(ArrayRef<const void *> inputs, ArrayRef<void *> outputs) = 0;
};

/// A function, or a HostCallback.
class HostCallbackHandle {
public:
  template <class F, class = decltype(std::declval<F &>()(std::declval<ArrayRef<const void *>>(), std::declval<ArrayRef<void *>>()))>
  HostCallbackHandle(F callback) : call_(std::move(callback)) {}
  template <class Callback, class = core::EnableIf<std::is_base_of<HostCallback, Callback>::value>>
  HostCallbackHandle(std::unique_ptr<Callback> callback) {
    const std::shared_ptr<HostCallback> shared(std::move(callback));
    call_ = [shared](ArrayRef<const void *> inputs, ArrayRef<void *> outputs) { (*shared)(inputs, outputs); };
  }
  void operator()(ArrayRef<const void *> inputs, ArrayRef<void *> outputs) const { call_(inputs, outputs); }

private:
  std::function<void(ArrayRef<const void *>, ArrayRef<void *>)> call_;
};

/// Type and number of elements of one argument.
using HostFunctionArgument = std::tuple<Type, std::size_t>;

/// The result of Graph::addHostFunction: a stream for each argument.
class HostFunction {
public:
  HostFunction() = default;
  const std::string &handle() const { return name; }

  std::string name;
  std::vector<DataStream> inputs, outputs;
};

} // namespace poplar

#endif
