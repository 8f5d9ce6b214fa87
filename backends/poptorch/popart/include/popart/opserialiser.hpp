// Substitute for the interface to which PopART operations write their attributes.
#ifndef SNNC_POPART_OPSERIALISER_HPP
#define SNNC_POPART_OPSERIALISER_HPP

#include <map>
#include <sstream>
#include <string>

namespace popart {

class OpSerialiserBase {
public:
  virtual ~OpSerialiserBase() = default;
  template <typename T> void appendAttribute(const std::string &key, const T &value) {
    std::ostringstream out;
    out << value;
    written[key] = out.str();
  }

private:
  std::map<std::string, std::string> written;
};

} // namespace popart

#endif
