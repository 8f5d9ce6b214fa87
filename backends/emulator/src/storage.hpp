// Host memory of the variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

namespace poplar::core {

struct GraphData;

/// Zeroed bytes, aligned to 64 bytes.
class AlignedBytes {
public:
  AlignedBytes() = default;
  explicit AlignedBytes(std::size_t size) : size_(size), raw_(std::calloc(size + 64, 1)) {
    if (!raw_)
      throw std::bad_alloc();
  }
  char *data() const {
    const std::uintptr_t address = reinterpret_cast<std::uintptr_t>(raw_.get());
    return reinterpret_cast<char *>((address + 63) & ~std::uintptr_t(63));
  }
  std::size_t size() const { return size_; }

private:
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };
  std::size_t size_ = 0;
  std::unique_ptr<void, Free> raw_;
};

/// One row-major array for each variable.
class Storage {
public:
  explicit Storage(const GraphData &graph);
  /// Constants and initial values.
  void initialise(const GraphData &graph);
  char *base(std::uint32_t variable) const { return bases_[variable]; }
  char *const *bases() const { return bases_.data(); }

private:
  std::vector<AlignedBytes> arrays_;
  std::vector<char *> bases_;
};

} // namespace poplar::core
