// What a host program gives to a stream.
#ifndef SNNC_POPLAR_STREAM_CALLBACK_HPP
#define SNNC_POPLAR_STREAM_CALLBACK_HPP

#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

namespace poplar {

class StreamCallback {
public:
  enum class Result { Success, NotAvailable };
  virtual ~StreamCallback() = default;
  virtual Result prefetch(void *) { return Result::NotAvailable; }
  virtual void fetch(void *data) = 0;
  virtual void complete() {}
  virtual void invalidatePrefetched() {}
};

class StreamCallbackHandle {
public:
  template <class F, class = std::enable_if_t<std::is_invocable_v<F &, void *>>>
  StreamCallbackHandle(F callback) : fetch_(std::move(callback)) {}
  template <class Callback, class = std::enable_if_t<std::is_base_of_v<StreamCallback, Callback>>>
  StreamCallbackHandle(std::unique_ptr<Callback> callback) {
    std::shared_ptr<StreamCallback> shared(std::move(callback));
    fetch_ = [shared](void *data) {
      shared->fetch(data);
      shared->complete();
    };
  }
  void operator()(void *data) const { fetch_(data); }

private:
  std::function<void(void *)> fetch_;
};

} // namespace poplar

#endif
