// Memory of the device, seen from the host. In a check on the processor it is the host's own.
#ifndef SNNC_MEMORY_HPP
#define SNNC_MEMORY_HPP

#include "streams.hpp"

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace snnc {
namespace device {

#if defined(SNNC_ON_HOST)

inline void *take(std::size_t bytes) {
  void *found = std::malloc(bytes);
  if (found == nullptr)
    throw std::runtime_error("no memory for " + std::to_string(bytes) + " bytes");
  return found;
}
inline void release(void *memory) { std::free(memory); }
inline int *take_told(std::size_t count) { return static_cast<int *>(std::calloc(count, sizeof(int))); }
inline void release_told(int *told) { std::free(told); }
inline void clear(void *to, std::size_t bytes) {
  note("clear", stream());
  std::memset(to, 0, bytes);
}
inline void upload(void *to, const void *from, std::size_t bytes) {
  note("copy", stream());
  std::memcpy(to, from, bytes);
}
inline void download(void *to, const void *from, std::size_t bytes) { upload(to, from, bytes); }
/// `to` lies in front of `from` where they overlap.
inline void copy(void *to, const void *from, std::size_t bytes) {
  note("copy", stream());
  std::memmove(to, from, bytes);
}
/// Whether kernels can read this memory.
inline bool is_device_memory(const void *) { return true; }
inline int check_ready() { return 0; }
inline std::string name() { return "host check"; }

#else

inline void *take(std::size_t bytes) {
  void *found = nullptr;
  check(cudaMalloc(&found, bytes), "no device memory");
  return found;
}
/// What was started may still use it.
inline void release(void *memory) {
  cudaStreamSynchronize(stream());
  cudaFree(memory);
}
/// Numbers of the host that kernels write, all 0.
inline int *take_told(std::size_t count) {
  void *found = nullptr;
  check(cudaHostAlloc(&found, count * sizeof(int), cudaHostAllocPortable | cudaHostAllocMapped), "no pinned memory");
  std::memset(found, 0, count * sizeof(int));
  return static_cast<int *>(found);
}
inline void release_told(int *told) { cudaFreeHost(told); }
inline void clear(void *to, std::size_t bytes) { check(cudaMemsetAsync(to, 0, bytes, stream()), "clear"); }
inline void copy(void *to, const void *from, std::size_t bytes) {
  check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream()), "copy");
}
/// Whether kernels can read this memory.
inline bool is_device_memory(const void *memory) {
  cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged;
}
/// Whether the host's memory is pinned: of what is not, the driver has made a copy when an asynchronous copy to the device returns.
inline bool is_pinned(const void *memory) {
  cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, memory) != cudaSuccess) {
    cudaGetLastError();
    return false;
  }
  return found.type == cudaMemoryTypeHost;
}
/// Memory of the host has been read, or can be, when they return; between two places of the device they return at once.
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
/// Returns the device that SNNC_CUDA_DEVICE names, or the thread's own; refuses to go on where there is none that can run this.
inline int check_ready() {
  int count = 0, together = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
    throw std::runtime_error("there is no CUDA device, or no driver for it");
  int device = current();
  const char *named = std::getenv("SNNC_CUDA_DEVICE");
  if (named != nullptr && *named != 0)
    device = std::atoi(named);
  use(device);
  check(cudaDeviceGetAttribute(&together, cudaDevAttrCooperativeLaunch, device), "no attributes of the device");
  if (together == 0)
    throw std::runtime_error("the CUDA device has no cooperative launch");
  return device;
}
inline std::string name() {
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, current()), "no properties of the device");
  return properties.name;
}

#endif

/// Bytes of all arrays of the program, as its profile tells.
inline std::size_t &bytes_taken() {
  static std::size_t bytes = 0;
  return bytes;
}

/// An array on the device that keeps its room when it shrinks.
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

  /// `count` numbers, all 0.
  void resize(std::size_t count) {
    make_room(count);
    clear();
  }
  /// `count` numbers, whatever they are.
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

/// What kernels tell the host: it reads the numbers whenever it likes, without waiting.
class Told {
public:
  explicit Told(std::size_t count) : numbers(take_told(count)) {}
  Told(const Told &) = delete;
  Told &operator=(const Told &) = delete;
  ~Told() { release_told(numbers); }
  int *data() const { return numbers; }
  /// Returns a number, and makes it 0 again.
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
