// Substitute for PopART's operator identifiers: domain, name and version, as in ONNX.
#ifndef SNNC_POPART_OPERATORIDENTIFIER_HPP
#define SNNC_POPART_OPERATORIDENTIFIER_HPP

#include <popart/names.hpp>

#include <ostream>
#include <tuple>

namespace popart {

struct OperatorIdentifier {
  OperatorIdentifier(const OpDomain &in, const OpType &name, OpVersion number) : domain(in), type(name), version(number) {}

  OpDomain domain;
  OpType type;
  OpVersion version;

  bool operator==(const OperatorIdentifier &other) const { return key() == other.key(); }
  bool operator!=(const OperatorIdentifier &other) const { return !(*this == other); }
  bool operator<(const OperatorIdentifier &other) const { return key() < other.key(); }

private:
  std::tuple<const OpDomain &, const OpType &, const OpVersion &> key() const { return std::tie(domain, type, version); }
};

struct OperatorIdentifierLess {
  bool operator()(const OperatorIdentifier &a, const OperatorIdentifier &b) const { return a < b; }
};

inline std::ostream &operator<<(std::ostream &out, const OperatorIdentifier &id) {
  return out << id.domain << "." << id.type << ":" << id.version;
}

} // namespace popart

#endif
