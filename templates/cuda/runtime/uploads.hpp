// Copies from pageable host memory to the device: before kernels, or concurrently with them.
#ifndef SNNC_UPLOADS_HPP
#define SNNC_UPLOADS_HPP

#include "memory.hpp"

namespace snnc {
namespace device {

#if defined(SNNC_ON_HOST)

class Upload {
public:
  void copy(void *to, const void *from, std::size_t bytes, Stream in) {
    note("copy", in);
    std::memcpy(to, from, bytes);
  }
};

/// Returns whether only kernels can read this memory.
inline bool is_out_of_reach(const void *) { return false; }

/// A separate stream; in a check, it is just a number.
class OwnStream {
public:
  Stream get() const { return reinterpret_cast<Stream>(std::uintptr_t(1) << 32); }
};

#else

inline bool is_out_of_reach(const void *memory) { return is_device_memory(memory); }

/// A copy in parts: one part is copied to pinned memory while the device reads the previous one.
class Upload {
public:
  Upload() = default;
  Upload(const Upload &) = delete;
  Upload &operator=(const Upload &) = delete;
  ~Upload() {
    for (Part &part : parts) {
      if (part.memory != nullptr)
        cudaEventSynchronize(part.fetched.get());
      cudaFreeHost(part.memory);
    }
  }
  /// Kernels that are started later in stream `in` see the values; `from` may change after the return.
  void copy(void *to, const void *from, std::size_t bytes, Stream in) {
    for (std::size_t at = 0; at < bytes; at += PART) {
      Part &part = parts[next];
      next = 1 - next;
      if (part.memory == nullptr)
        check(cudaMallocHost(&part.memory, PART), "allocation of pinned memory");
      part.fetched.wait();
      const std::size_t some = bytes - at < PART ? bytes - at : PART;
      std::memcpy(part.memory, static_cast<const char *>(from) + at, some);
      check(cudaMemcpyAsync(static_cast<char *>(to) + at, part.memory, some, cudaMemcpyHostToDevice, in), "copy to the device");
      part.fetched.record(in);
    }
  }

private:
  static constexpr std::size_t PART = std::size_t(4) << 20;
  struct Part {
    void *memory = nullptr;
    Event fetched;
  };
  Part parts[2];
  int next = 0;
};

/// A stream that is synchronised with the kernels only explicitly.
class OwnStream {
public:
  OwnStream() { check(cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking), "a stream"); }
  OwnStream(const OwnStream &) = delete;
  OwnStream &operator=(const OwnStream &) = delete;
  ~OwnStream() { cudaStreamDestroy(own); }
  Stream get() const { return own; }

private:
  Stream own{};
};

#endif

/// Copies that run concurrently with kernels.
class Ahead {
public:
  /// Starts copies; they wait until the last readers of the destination have finished.
  void begin() { read.hold(own.get()); }
  void copy(void *to, const void *from, std::size_t bytes) {
    if (is_out_of_reach(from))
      throw std::invalid_argument("data on the device cannot be sent ahead");
    uploads.copy(to, from, bytes, own.get());
  }
  /// Kernels that are started later see the copied values.
  void arrive() {
    there.record(own.get());
    there.hold(stream());
  }
  /// Records that the kernels that read the destination have been started.
  void taken() { read.record(stream()); }

private:
  OwnStream own;
  Upload uploads;
  Event there, read;
};

} // namespace device
} // namespace snnc

#endif
