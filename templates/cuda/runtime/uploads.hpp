// Copies from the host's usual memory to the device: in front of the kernels, or beside them.
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

/// Whether kernels alone can read this memory.
inline bool is_out_of_reach(const void *) { return false; }

/// A stream of its own has a number of its own in a check.
class OwnStream {
public:
  Stream get() const { return reinterpret_cast<Stream>(std::uintptr_t(1) << 32); }
};

#else

inline bool is_out_of_reach(const void *memory) { return is_device_memory(memory); }

/// One part is put into pinned memory while the device fetches the one before.
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
  /// Kernels of stream `in` that are started behind it see the numbers; `from` may change when it returns.
  void copy(void *to, const void *from, std::size_t bytes, Stream in) {
    for (std::size_t at = 0; at < bytes; at += PART) {
      Part &part = parts[next];
      next = 1 - next;
      if (part.memory == nullptr)
        check(cudaMallocHost(&part.memory, PART), "no pinned memory");
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

/// A stream that kernels do not wait for, nor it for them but where they say so.
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

/// Copies beside the kernels.
class Ahead {
public:
  /// What was last read of the memory that is copied to has been read before any of it changes.
  void begin() { read.hold(own.get()); }
  void copy(void *to, const void *from, std::size_t bytes) {
    if (is_out_of_reach(from))
      throw std::invalid_argument("what is on the device already is not sent ahead");
    uploads.copy(to, from, bytes, own.get());
  }
  /// Kernels that are started behind it see what was copied.
  void arrive() {
    there.record(own.get());
    there.hold(stream());
  }
  /// Kernels that read it have been started.
  void taken() { read.record(stream()); }

private:
  OwnStream own;
  Upload uploads;
  Event there, read;
};

} // namespace device
} // namespace snnc

#endif
