// Trial of warpgroup products on a device before they are used: they must give the same results as single warps.
#ifndef SNNC_WHOLE_TRIAL_CUH
#define SNNC_WHOLE_TRIAL_CUH

#include "whole_starts.cuh"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

namespace snnc {

/// One product of every kind, with positive factors, so that sums do not cancel and rounding changes them little.
class ProductTrial {
public:
  ProductTrial(int of_rows, int of_inputs, int of_outputs) : rows(of_rows), inputs(of_inputs), outputs(of_outputs) {
    fill(numbers, rows * inputs);
    fill(weights, inputs * outputs);
    fill(deltas, rows * outputs);
    std::vector<std::uint32_t> bits(static_cast<std::size_t>(rows * pieces(inputs, LANES)));
    for (std::uint32_t &word : bits)
      word = random_bits() & random_bits();
    spikes.resize(bits.size());
    spikes.set(bits.data(), bits.size());
    std::vector<Short<BFloat16>> halves(static_cast<std::size_t>(rows * pieces(outputs, 2) * 2));
    for (Short<BFloat16> &half : halves)
      half.bits = upper_bits(random_number());
    short_deltas.resize(halves.size());
    short_deltas.set(halves.data(), halves.size());
  }

  bool agrees() {
    for (const Factors factors : {Factors::SPLIT, Factors::ROUNDED})
      if (!of_spikes(factors) || !of_deltas(factors) || !gradients_agree(factors))
        return false;
    return of_numbers();
  }

private:
  int rows, inputs, outputs;
  device::Array<float> numbers, weights, deltas, results;
  device::Array<std::uint32_t> spikes, prepared;
  device::Array<Short<BFloat16>> short_deltas;
  std::uint64_t state = 1;

  /// Knuth's linear congruential generator (The Art of Computer Programming 2, 3.3.4); its upper bits are random enough.
  std::uint32_t random_bits() {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<std::uint32_t>(state >> 32);
  }
  /// Returns a bfloat16 value: the upper half of a float.
  static std::uint16_t upper_bits(float number) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &number, sizeof bits);
    return static_cast<std::uint16_t>(bits >> 16);
  }
  float random_number() { return 0.5f + static_cast<float>(random_bits() >> 8) * (1.0f / (1 << 24)); }
  void fill(device::Array<float> &to, int count) {
    std::vector<float> found(static_cast<std::size_t>(count));
    for (float &number : found)
      number = random_number();
    to.resize(found.size());
    to.set(found.data(), found.size());
  }

  PreparedWeights prepare(WholeUse use, Factors factors) {
    prepared.resize(prepared_bytes(use, factors, inputs, outputs) / sizeof(std::uint32_t));
    const PreparedWeights found{use, factors, inputs, outputs, prepared.data()};
    prepare_weights({{found, {weights.data(), inputs, outputs}}});
    return found;
  }
  DenseSums sums() const { return {results.data(), nullptr, false}; }
  Slices slice() const { return {results.data(), 1, inputs * outputs, rows, false}; }

  bool of_spikes(Factors factors) {
    const PreparedWeights given = prepare(WholeUse::SPIKES, factors);
    return same(rows * outputs, [&](By by) { forward(spikes.data(), rows, given, sums(), by); });
  }
  bool of_numbers() {
    bool agree = true;
    for (const Factors factors : {Factors::SPLIT, Factors::HALF_WEIGHTS}) {
      const PreparedWeights given = prepare(WholeUse::NUMBERS, factors);
      agree = agree && same(rows * outputs, [&](By by) { forward(numbers.data(), rows, given, sums(), by); });
    }
    return agree;
  }
  bool of_deltas(Factors factors) {
    const PreparedWeights given = prepare(WholeUse::BACK, factors);
    return same(rows * inputs, [&](By by) { back(deltas.data(), rows, 0, rows, given, sums(), by); }) &&
           same(rows * inputs, [&](By by) { back(short_deltas.data(), rows, 0, rows, given, sums(), by); });
  }
  bool gradients_agree(Factors factors) {
    return same(inputs * outputs, [&](By by) { gradient(spikes.data(), deltas.data(), rows, inputs, outputs, factors, slice(), by); }) &&
           same(inputs * outputs,
                [&](By by) { gradient(spikes.data(), short_deltas.data(), rows, inputs, outputs, factors, slice(), by); });
  }

  /// Returns whether all sums of both methods are positive and differ only by rounding.
  template <class Work> bool same(int count, const Work &work) {
    constexpr float LIMIT = 1e-4f;
    std::vector<float> by_warps(static_cast<std::size_t>(count)), by_groups(by_warps.size());
    for (const By by : {By::WARPS, By::GROUPS}) {
      results.resize(by_warps.size());
      work(by);
      results.get((by == By::WARPS ? by_warps : by_groups).data(), by_warps.size());
    }
    for (std::size_t i = 0; i < by_warps.size(); ++i)
      if (!(by_warps[i] > 0 && std::abs(by_groups[i] - by_warps[i]) <= LIMIT * by_warps[i]))
        return false;
    return true;
  }
};

/// Returns whether warpgroups are available and enabled: unless SNNC_WARPGROUPS is 0 or, in a check on the CPU, only if it is 1.
inline bool may_have_groups() {
  const char *asked = std::getenv("SNNC_WARPGROUPS");
#if defined(SNNC_ON_HOST)
  return asked != nullptr && asked[0] == '1';
#else
  int major = 0;
  device::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device::current()), "the device's generation");
  return major == 9 && (asked == nullptr || asked[0] != '0');
#endif
}

/// Returns the kind of kernel for the thread's device. The trial runs once; programs compiled for sm_90 without wgmma fail it.
inline By products_by() {
#if defined(SNNC_ON_HOST)
  // One whole strip and one partial strip, and more depths than in a turn.
  constexpr int ROWS = 70, INPUTS = 70, OUTPUTS = 36;
  // A check with warpgroups is another device.
  const int device = may_have_groups() ? 1 : 0;
#else
  // Several tiles of each kind, with partial ones, and more turns than buffers.
  constexpr int ROWS = 400, INPUTS = 300, OUTPUTS = 200;
  const int device = device::current();
#endif
  static std::mutex one_at_a_time;
  static std::map<int, By> known;
  const std::lock_guard<std::mutex> guard(one_at_a_time);
  const auto found = known.find(device);
  if (found != known.end())
    return found->second;
  return known[device] = may_have_groups() && ProductTrial(ROWS, INPUTS, OUTPUTS).agrees() ? By::GROUPS : By::WARPS;
}

} // namespace snnc

#endif
