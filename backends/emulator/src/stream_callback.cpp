// Callbacks of streams, and their requests ahead of a transfer.
#include <poplar/StreamCallback.hpp>

#include <cstring>
#include <future>
#include <vector>

namespace poplar {

/// The end of a request on a thread waits for that thread, because it writes to `data`.
struct core::Ahead {
  std::vector<char> data;
  std::future<StreamCallback::Result> result;

  bool available() { return result.valid() && result.get() == StreamCallback::Result::Success; }
};

void StreamCallbackHandle::operator()(void *data, std::size_t bytes) {
  if (!callback_)
    return fetch_(data);
  const std::shared_ptr<core::Ahead> ahead = std::move(ahead_);
  ahead_ = nullptr;
  if (ahead && ahead->available() && ahead->data.size() == bytes && bytes > 0)
    std::memcpy(data, ahead->data.data(), bytes);
  else
    callback_->fetch(data);
  callback_->complete();
}

void StreamCallbackHandle::prefetch(std::size_t bytes, bool onThread) {
  if (!callback_)
    return;
  ahead_ = std::make_shared<core::Ahead>();
  ahead_->data.resize(bytes);
  const auto request = [callback = callback_, data = ahead_->data.data()] { return callback->prefetch(data); };
  ahead_->result = std::async(onThread ? std::launch::async : std::launch::deferred, request);
  if (!onThread)
    ahead_->result.wait();
}

void StreamCallbackHandle::invalidate() {
  if (ahead_ && ahead_->available())
    callback_->invalidatePrefetched();
  ahead_ = nullptr;
}

} // namespace poplar
