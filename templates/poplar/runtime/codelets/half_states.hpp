// ---- states stored as half -----------------------------------------------------------------------------------------------------------

namespace {

/// Rounds to the nearest half value, ties to even.
[[maybe_unused]] inline float rounded_to_half(float value) { return static_cast<float>(static_cast<half>(value)); }

/// The values from an even position on, in pairs.
[[maybe_unused]] inline half2 *in_pairs(half *values) { return reinterpret_cast<half2 *>(values); }

} // namespace
