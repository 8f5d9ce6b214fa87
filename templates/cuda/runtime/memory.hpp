// Device memory, managed by the host. In a check on the CPU it is host memory.
#ifndef SNNC_MEMORY_HPP
#define SNNC_MEMORY_HPP

#include "streams.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace snnc {
namespace device {

#if defined(SNNC_ON_HOST)

void *take(std::size_t bytes);
inline void release(void *memory) { std::free(memory); }
inline int *take_host_flags(std::size_t count) { return static_cast<int *>(std::calloc(count, sizeof(int))); }
inline void release_host_flags(int *flags) { std::free(flags); }
inline void clear(void *to, std::size_t bytes) {
  note("clear", stream());
  std::memset(to, 0, bytes);
}
inline void upload(void *to, const void *from, std::size_t bytes) {
  note("copy", stream());
  std::memcpy(to, from, bytes);
}
inline void download(void *to, const void *from, std::size_t bytes) { upload(to, from, bytes); }
/// Copies memory; if the ranges overlap, `to` must be before `from`.
inline void copy(void *to, const void *from, std::size_t bytes) {
  note("copy", stream());
  std::memmove(to, from, bytes);
}
/// Returns whether kernels can read this memory.
inline bool is_device_memory(const void *) { return true; }
inline int check_ready() { return 0; }
inline std::string name() { return "host check"; }

#else

inline void *take(std::size_t bytes) {
  void *found = nullptr;
  check(cudaMalloc(&found, bytes), "allocation of device memory");
  return found;
}
/// Releases memory that pending work may still use.
inline void release(void *memory) {
  cudaStreamSynchronize(stream());
  cudaFree(memory);
}
/// Allocates host integers that kernels can write, all 0.
inline int *take_host_flags(std::size_t count) {
  void *found = nullptr;
  check(cudaHostAlloc(&found, count * sizeof(int), cudaHostAllocPortable | cudaHostAllocMapped), "allocation of pinned memory");
  std::memset(found, 0, count * sizeof(int));
  return static_cast<int *>(found);
}
inline void release_host_flags(int *flags) { cudaFreeHost(flags); }
inline void clear(void *to, std::size_t bytes) { check(cudaMemsetAsync(to, 0, bytes, stream()), "clear"); }
inline void copy(void *to, const void *from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()), "copy");
}
/// Returns whether kernels can read this memory.
inline bool is_device_memory(const void *memory) {
  cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged;
}
/// Returns whether host memory is pinned. For other memory, an asynchronous copy to the device returns when the driver has copied it.
inline bool is_pinned(const void *memory) {
  cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return found.type == cudaMemoryTypeHost;
}
/// Copies between host and device: on return, host memory has been read or can be read. Copies within the device return at once.
inline void upload(void *to, const void *from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()), "copy to the device");
  if (is_pinned(from))
    finish();
}
inline void download(void *to, const void *from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream()), "copy from the device");
  if (!is_device_memory(to))
    finish();
}
/// Returns the device that SNNC_CUDA_DEVICE names, or the current device of the thread; throws if it cannot run this program.
inline int check_ready() {
  int count = 0, together = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
    throw std::runtime_error("there is no CUDA device, or no driver for it");
  int device = current();
  const char *named = std::getenv("SNNC_CUDA_DEVICE");
  if (named != nullptr && *named != 0)
    device = std::atoi(named);
  use(device);
  check(cudaDeviceGetAttribute(&together, cudaDevAttrCooperativeLaunch, device), "attributes of the device");
  if (together == 0)
    throw std::runtime_error("the CUDA device does not support cooperative launches");
  return device;
}
inline std::string name() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, current()), "properties of the device");
  return properties.name;
}

#endif

/// Bytes of all arrays of the program, for its profile.
inline std::size_t &bytes_taken() {
  static std::size_t bytes = 0;
  return bytes;
}

/// An array on the device that keeps its memory when it shrinks.
template <class T> class Array {
public:
  Array() = default;
  Array(const Array &) = delete;
  Array &operator=(const Array &) = delete;
  Array(Array &&other) noexcept
      : memory(std::exchange(other.memory, nullptr)), room(std::exchange(other.room, 0)), used(std::exchange(other.used, 0)) {}
  Array &operator=(Array &&other) noexcept {
    std::swap(memory, other.memory);
    std::swap(room, other.room);
    std::swap(used, other.used);
    return *this;
  }
  ~Array() { give_back(); }

  /// Resizes to `count` elements, all 0.
  void resize(std::size_t count) {
    make_room(count);
    clear();
  }
  /// Resizes to `count` elements without initialising them.
  void make_room(std::size_t count) {
    if (count > room) {
      give_back();
      memory = static_cast<T *>(take(count * sizeof(T)));
      room = count;
      bytes_taken() += room * sizeof(T);
    }
    used = count;
  }
  void clear() {
    if (used > 0)
      device::clear(memory, used * sizeof(T));
  }
  void clear_first(std::size_t count) { device::clear(memory, count * sizeof(T)); }
  T *data() const { return memory; }
  std::size_t size() const { return used; }
  void set(const T *from, std::size_t count, std::size_t first = 0) { upload(memory + first, from, count * sizeof(T)); }
  void get(T *to, std::size_t count, std::size_t first = 0) const { download(to, memory + first, count * sizeof(T)); }

private:
  void give_back() {
    if (memory != nullptr)
      release(memory);
    bytes_taken() -= room * sizeof(T);
    memory = nullptr;
    room = 0;
  }

  T *memory = nullptr;
  std::size_t room = 0, used = 0;
};

// Every network uses these, so memory.cpp compiles them once for all.
extern template class Array<float>;
extern template class Array<double>;
extern template class Array<std::uint32_t>;

/// Integers through which kernels notify the host, which can read them at any time without waiting.
class HostFlags {
public:
  explicit HostFlags(std::size_t count) : numbers(take_host_flags(count)) {}
  HostFlags(const HostFlags &) = delete;
  HostFlags &operator=(const HostFlags &) = delete;
  ~HostFlags() { release_host_flags(numbers); }
  int *data() const { return numbers; }
  /// Returns an integer and resets it to 0.
  int take(std::size_t index) {
    volatile int &place = numbers[index];
    const int found = place;
    if (found != 0)
      place = 0;
    return found;
  }

private:
  int *numbers;
};

} // namespace device
} // namespace snnc

#endif
