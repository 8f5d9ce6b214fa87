// ---- values stored as half: rows have an even length, so that two neurons share one aligned word -----------------------------------

namespace {

/// Stores the values of two neurons, or of the last one of an odd number, whose word is padded with zero.
[[maybe_unused]] inline void keep(half *to, float2 value) {
  *reinterpret_cast<half2 *>(to) = half2{static_cast<half>(value[0]), static_cast<half>(value[1])};
}
[[maybe_unused]] inline void keep(half *to, float value) { keep(to, float2{value, 0.0f}); }

/// Loads stored values as floats.
template <class Real> inline Real recall(const half *from);
template <> [[maybe_unused]] inline float2 recall<float2>(const half *from) {
  const half2 kept = *reinterpret_cast<const half2 *>(from);
  return float2{static_cast<float>(kept[0]), static_cast<float>(kept[1])};
}
template <> [[maybe_unused]] inline float recall<float>(const half *from) { return recall<float2>(from)[0]; }

} // namespace
