// The source or destination of a stream in a host program.
#ifndef SNNC_POPLAR_STREAM_CALLBACK_HPP
#define SNNC_POPLAR_STREAM_CALLBACK_HPP

#include <cstddef>
#include <functional>
#include <memory>
#include <type_traits>
#include <utility>

#include <poplar/core/Language.hpp>

namespace poplar {

namespace core {
/// Data requested ahead of a transfer.
struct Ahead;
} // namespace core

class StreamCallback {
public:
  enum class Result { Success, NotAvailable };
  virtual ~StreamCallback() = default;
  virtual Result prefetch(void *) { return Result::NotAvailable; }
  virtual void fetch(void *data) = 0;
  virtual void complete() {}
  virtual void invalidatePrefetched() {}
};

/// The names in older and newer versions.
using StreamCallbackBase = StreamCallback;
using LegacyStreamCallback = StreamCallback;

/// A function, or a StreamCallback with its prefetching.
class StreamCallbackHandle {
public:
  template <class F, class = decltype(std::declval<F &>()(std::declval<void *>()))>
  StreamCallbackHandle(F callback) : fetch_(std::move(callback)) {}
  template <class Callback, class = core::EnableIf<std::is_base_of<StreamCallback, Callback>::value>>
  StreamCallbackHandle(std::unique_ptr<Callback> callback) : callback_(std::move(callback)) {}

  /// One transfer: the prefetched data, otherwise data fetched now.
  void operator()(void *data, std::size_t bytes);
  /// Requests the data of the next transfer. `onThread`: on a thread of its own, which the next transfer waits for; otherwise now.
  void prefetch(std::size_t bytes, bool onThread = false);
  /// Drops the prefetched data.
  void invalidate();

private:
  std::function<void(void *)> fetch_;
  std::shared_ptr<StreamCallback> callback_;
  std::shared_ptr<core::Ahead> ahead_;
};

} // namespace poplar

#endif
