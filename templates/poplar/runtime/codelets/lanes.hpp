// ---- operations of equations on one neuron (float) or on two consecutive ones (float2) ---------------------------------------------

namespace {

template <class Real> constexpr unsigned LANES = sizeof(Real) / sizeof(float);

template <class Real> inline Real splat(float value) { return Real{} + value; }

template <class Real> inline Real load(const float *from);
template <> [[maybe_unused]] inline float load<float>(const float *from) { return *from; }
template <> [[maybe_unused]] inline float2 load<float2>(const float *from) { return float2{from[0], from[1]}; }

/// Stores values `apart` floats apart.
[[maybe_unused]] inline void store(float *to, float value, unsigned long = 1) { *to = value; }
[[maybe_unused]] inline void store(float *to, float2 value, unsigned long apart = 1) {
  to[0] = value[0];
  to[apart] = value[1];
}

/// Stores values as half.
[[maybe_unused]] inline void store(half *to, float value, unsigned long = 1) { *to = static_cast<half>(value); }
[[maybe_unused]] inline void store(half *to, float2 value, unsigned long apart = 1) {
  to[0] = static_cast<half>(value[0]);
  to[apart] = static_cast<half>(value[1]);
}

[[maybe_unused]] inline float lane(float value, unsigned) { return value; }
[[maybe_unused]] inline float lane(float2 value, unsigned number) { return value[number]; }

[[maybe_unused]] inline float sum_of(float value) { return value; }
[[maybe_unused]] inline float sum_of(float2 value) { return value[0] + value[1]; }

/// The type of the comparison of two pairs.
using Compared = decltype(float2{} > float2{});

/// Returns 1 if a comparison is true, else 0.
[[maybe_unused]] inline float ones(bool holds) { return holds ? 1.0f : 0.0f; }
[[maybe_unused]] inline float2 ones(Compared holds) { return float2{ones(holds[0] != 0), ones(holds[1] != 0)}; }

[[maybe_unused]] inline float choose(bool holds, float yes, float no) { return holds ? yes : no; }
[[maybe_unused]] inline float2 choose(Compared holds, float2 yes, float2 no) {
  return float2{choose(holds[0] != 0, yes[0], no[0]), choose(holds[1] != 0, yes[1], no[1])};
}

template <class F> inline float each(float x, F f) { return f(x); }
template <class F> inline float2 each(float2 x, F f) { return float2{f(x[0]), f(x[1])}; }
template <class F> inline float each(float x, float y, F f) { return f(x, y); }
template <class F> inline float2 each(float2 x, float2 y, F f) { return float2{f(x[0], y[0]), f(x[1], y[1])}; }

/// Calls step(float2, c) for the neurons c and c + 1, and step(float, c) for the last one of an odd number.
template <class Step> inline void each_pair(unsigned count, const Step &step) {
  unsigned c = 0;
  for (; c + 1 < count; c += 2)
    step(float2{}, c);
  if (c < count)
    step(float{}, c);
}

} // namespace
