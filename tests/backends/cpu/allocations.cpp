// Preloaded: counts the bytes that C++ code holds, whoever else uses the C library's allocator.
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#include <malloc.h>

namespace {

std::atomic<std::size_t> held{0}, most{0};

void *counted(void *place) {
  if (place == nullptr)
    throw std::bad_alloc();
  const std::size_t bytes = held += malloc_usable_size(place);
  for (std::size_t known = most; known < bytes && !most.compare_exchange_weak(known, bytes);) {
  }
  return place;
}

void given_back(void *place) {
  held -= malloc_usable_size(place);
  std::free(place);
}

} // namespace

void *operator new(std::size_t size) { return counted(std::malloc(size)); }
void *operator new(std::size_t size, std::align_val_t alignment) {
  const std::size_t line = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(line, (size + line - 1) / line * line));
}
void operator delete(void *place) noexcept { given_back(place); }
void operator delete(void *place, std::size_t) noexcept { given_back(place); }
void operator delete(void *place, std::align_val_t) noexcept { given_back(place); }
void operator delete(void *place, std::size_t, std::align_val_t) noexcept { given_back(place); }

extern "C" {
std::size_t bytes_held() { return held; }
/// The most since it was last asked for.
std::size_t most_held() { return most.exchange(held); }
}
