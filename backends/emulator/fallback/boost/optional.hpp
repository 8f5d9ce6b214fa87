// For programs that use boost::optional if Boost is not installed; searched after all other folders.
#ifndef SNNC_FALLBACK_BOOST_OPTIONAL_HPP
#define SNNC_FALLBACK_BOOST_OPTIONAL_HPP
#include <optional>
namespace boost {
using std::optional;
inline constexpr std::nullopt_t none = std::nullopt;
template <class T> optional<std::decay_t<T>> make_optional(T &&value) { return std::make_optional(std::forward<T>(value)); }
} // namespace boost
#endif
