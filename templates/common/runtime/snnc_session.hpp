// The interface between snnc_abi.cpp and the program of a target, which implements it.
#ifndef SNNC_SESSION_HPP
#define SNNC_SESSION_HPP

#include "snnc_abi.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace snnc {

struct TensorInfo {
  std::string name;
  snnc_type type;
  snnc_role role;
  std::vector<std::size_t> shape;

  std::size_t elements() const {
    std::size_t n = 1;
    for (std::size_t d : shape)
      n *= d;
    return n;
  }
};

/// A loaded project. All functions report failures as exceptions derived from std::exception.
class Session {
public:
  virtual ~Session() = default;
  virtual const std::vector<TensorInfo> &tensors() const = 0;
  /// Copies tensor `index` in or out; elements have 4 bytes.
  virtual void set(std::size_t index, const void *data) = 0;
  virtual void get(std::size_t index, void *data) = 0;
  /// Sets input tensor `index` to 1 at events: row r of [steps x batch] has the neurons ids[begin[r]] ... ids[begin[r + 1] - 1], ascending.
  virtual void set_events(std::size_t, const std::uint64_t *, const std::uint32_t *) {
    throw std::invalid_argument("this program accepts only dense inputs");
  }
  virtual void run() = 0;
  virtual float train_step() = 0;
  virtual std::string profile() = 0;
  virtual void save(const std::string &path) = 0;
};

std::unique_ptr<Session> open_session(const std::string &folder);

} // namespace snnc

#endif
