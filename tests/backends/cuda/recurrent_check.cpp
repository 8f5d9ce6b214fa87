// Runs a recurrent core on the CPU, forward and back, and compares every step with float64. Compiled for a population of TEST_SIZE
// neurons, a recurrence of TEST_DELAY steps and weights of TEST_HALVES 16-bit numbers; takes the number of a shape (-1: the one that is
// chosen), the batch, and the steps of each segment. Prints JSON; without segments what is chosen.
#include "recurrent_core.hpp"
#include "recurrent_shapes.cuh"
#include "recurrent_lif.hpp"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

using namespace snnc;

constexpr int SIZE = TEST_SIZE, DELAY = TEST_DELAY, HALVES = TEST_HALVES, WORDS = (SIZE + 31) / 32;
using Loop = lif::Loop<SIZE, DELAY>;

/// Shapes that are to be checked: those of a population of this size and some more.
template <class Way> using Shapes = TEST_SHAPES;
template <class Way> CoreShapes<lif::Net> compiled() { return core_shapes<Way, Shapes<Way>>(); }

std::vector<float> random_numbers(std::size_t count, float deviation, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> draw(0, deviation);
  std::vector<float> numbers(count);
  for (float &number : numbers)
    number = draw(generator);
  return numbers;
}

/// The same sequence in float64.
struct Reference {
  std::vector<double> v, deltas;

  Reference(int batch, const std::vector<float> &weights, const std::vector<float> &currents, const std::vector<float> &adjoints)
      : v(currents.size()), deltas(currents.size()) {
    const std::size_t row = static_cast<std::size_t>(batch) * SIZE;
    for (std::size_t i = 0; i < v.size(); ++i) {
      double x = currents[i];
      if (i >= row)
        x += 0.9 * v[i - row] * (v[i - row] > 1 ? 0 : 1);
      if (i >= row * DELAY)
        for (std::size_t k = 0; k < SIZE; ++k)
          x += v[i - i % SIZE + k - row * DELAY] > 1 ? weights[k * SIZE + i % SIZE] : 0;
      v[i] = x;
    }
    for (std::size_t i = v.size(); i-- > 0;) {
      double x = adjoints[i];
      const double u = 1 + 25 * std::fabs(v[i] - 1);
      if (i + row * DELAY < v.size())
        for (std::size_t k = 0; k < SIZE; ++k)
          x += weights[i % SIZE * SIZE + k] * deltas[i - i % SIZE + k + row * DELAY];
      deltas[i] = x / (u * u) + (i + row < v.size() && v[i] <= 1 ? 0.9 * deltas[i + row] : 0);
    }
  }
};

/// A number that changes if a bit of the numbers does.
unsigned digest(const std::vector<float> &of) {
  unsigned found = 2166136261u;
  for (const float number : of)
    found = (found ^ bits_of(number)) * 16777619u;
  return found;
}

/// Root of the sum of squared differences, relative to the norm; not a number where one is.
double difference(const std::vector<float> &found, const std::vector<double> &wanted) {
  double off = 0, norm = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    off += (found[i] - wanted[i]) * (found[i] - wanted[i]);
    norm += wanted[i] * wanted[i];
  }
  return std::sqrt(off / norm);
}

} // namespace

int main(int count, char **given) {
  const int shape = std::atoi(given[1]), batch = std::atoi(given[2]);
  std::vector<int> segments;
  int steps = 0;
  for (int i = 3; i < count; ++i)
    steps += segments.emplace_back(std::atoi(given[i]));
  RecurrentCore<lif::Net> forward(compiled<ForwardWay<lif::Net, Loop, HALVES>>());
  RecurrentCore<lif::Net> back(compiled<BackWay<lif::Net, Loop, HALVES>>());
  if (!forward.choose(batch, shape) || !back.choose(batch, shape))
    return 2;
  std::printf("{\"forward\": \"%s\", \"back\": \"%s\", \"forward_seconds\": %g, \"back_seconds\": %g", forward.text().c_str(), back.text().c_str(), forward.seconds(batch, 100),
              back.seconds(batch, 100));
  if (steps == 0) {
    std::printf("}\n");
    return 0;
  }

  const std::size_t rows = static_cast<std::size_t>(steps) * static_cast<std::size_t>(batch), all = rows * SIZE, states = static_cast<std::size_t>(batch) * SIZE;
  const auto seed = static_cast<unsigned>(SIZE + 1000 * DELAY + batch);
  const auto weights = random_numbers(static_cast<std::size_t>(SIZE) * SIZE, 1.5f / std::sqrt(static_cast<float>(SIZE)), seed);
  const auto currents = random_numbers(all, 0.9f, seed + 1), adjoints = random_numbers(all, 1.0f, seed + 2);
  std::vector<float> v(all, NAN), deltas(all, NAN), state(states), carry(states);
  std::vector<std::uint32_t> spikes((rows + static_cast<std::size_t>(DELAY * batch)) * WORDS);
  lif::Net net{weights.data(), currents.data(), adjoints.data(), v.data(), deltas.data(), state.data(), carry.data(), spikes.data(), batch, 0, DELAY};
  for (int length : segments) {
    forward.run(net, Run{length, batch, steps - net.first - length, 0, 0, nullptr, false});
    net.first += length;
  }
  for (std::size_t i = segments.size(); i-- > 0;) {
    net.first -= segments[i];
    back.run(net, Run{segments[i], batch, steps - net.first - segments[i], 0, 0, nullptr, false});
  }

  const Reference wanted(batch, weights, currents, adjoints);
  int wrong = 0, fired = 0;
  for (std::size_t i = 0; i < all; ++i) {
    const bool spike = (spikes[(i / SIZE + static_cast<std::size_t>(DELAY * batch)) * WORDS + i % SIZE / 32] >> (i % SIZE % 32) & 1u) != 0;
    wrong += spike != (wanted.v[i] > 1) ? 1 : 0;
    fired += spike ? 1 : 0;
  }
  std::printf(", \"wrong\": %d, \"fired\": %d, \"v\": %g, \"deltas\": %g, \"bits\": %u}\n", wrong, fired, difference(v, wanted.v),
              difference(deltas, wanted.deltas), 31 * digest(v) + digest(deltas));
  return 0;
}
