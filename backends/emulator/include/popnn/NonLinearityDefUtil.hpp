// Names of non-linearities.
#ifndef SNNC_POPNN_NON_LINEARITY_DEF_UTIL_HPP
#define SNNC_POPNN_NON_LINEARITY_DEF_UTIL_HPP

#include <istream>
#include <ostream>
#include <string>

#include <popnn/NonLinearityDef.hpp>
#include <poputil/VertexTemplates.hpp>
#include <poputil/exceptions.hpp>

namespace popnn {

inline const char *asString(const NonLinearityType &type) {
  constexpr const char *names[] = {"sigmoid", "hard sigmoid",    "relu", "tanh", "gelu", "swish", "softmax", "softmax (stable)",
                                   "softmax (scaled, stable)", "gelu_erf"};
  return names[int(type)];
}
inline std::ostream &operator<<(std::ostream &stream, const NonLinearityType &type) { return stream << asString(type); }
/// Reads a name in one word, such as softmax_stable or hard_sigmoid.
inline std::istream &operator>>(std::istream &stream, NonLinearityType &type) {
  constexpr const char *words[] = {"sigmoid", "hard_sigmoid", "relu", "tanh", "gelu", "swish", "softmax", "softmax_stable", "softmax_scaled", "gelu_erf"};
  std::string word;
  stream >> word;
  for (int i = 0; i < int(sizeof words / sizeof words[0]); ++i)
    if (word == words[i]) {
      type = NonLinearityType(i);
      return stream;
    }
  throw poputil::poplibs_error("no non-linearity '" + word + "'");
}

} // namespace popnn

#endif
