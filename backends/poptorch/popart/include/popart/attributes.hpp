// Substitute for the attributes of a PopART operation: only strings, which is all that custom operations of snnc use.
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
