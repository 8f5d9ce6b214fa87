// Stand-in for PopART's attributes of an operation: strings alone, which is what custom operations of snnc take.
#ifndef SNNC_POPART_ATTRIBUTES_HPP
#define SNNC_POPART_ATTRIBUTES_HPP

#include <popart/error.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

namespace popart {

class Attributes {
public:
  using String = std::string;

  Attributes() = default;
  explicit Attributes(std::map<std::string, std::string> given) : values(std::move(given)) {}

  bool hasAttribute(const std::string &key) const { return values.count(key) != 0; }
  template <typename T> T getAttribute(const std::string &key, const T &other) const {
    const auto found = values.find(key);
    return found == values.end() ? other : T(found->second);
  }
  template <typename T> T getAttribute(const std::string &key) const {
    const auto found = values.find(key);
    if (found == values.end())
      throw error("the operation has no attribute {}", key);
    return T(found->second);
  }

private:
  std::map<std::string, std::string> values;
};

} // namespace popart

#endif
