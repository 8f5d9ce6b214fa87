#include <poplar/Type.hpp>

#include <ostream>

namespace poplar {

namespace {
struct TypeFacts {
  const char *name;
  std::size_t bytes;
};
constexpr TypeFacts facts[] = {{"none", 0},          {"bool", 1},  {"char", 1},         {"unsigned char", 1}, {"signed char", 1},
                               {"short", 2},         {"unsigned short", 2}, {"int", 4}, {"unsigned int", 4},  {"long long", 8},
                               {"unsigned long long", 8}, {"half", 2}, {"float", 4}, {"quarter", 1}};
} // namespace

std::size_t Type::size() const { return facts[id_].bytes; }
std::string Type::toString() const { return facts[id_].name; }
std::ostream &operator<<(std::ostream &os, Type type) { return os << type.toString(); }

} // namespace poplar
