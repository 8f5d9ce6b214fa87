// Runs convolutions over rows on the CPU for one geometry and prints how far they are from sums in float64, written as the definition says.
#include "whole_convolutions.cu"

#include <cstdio>
#include <random>

using namespace snnc;

namespace {

std::mt19937 random_bits(7);
float normal() { return std::normal_distribution<float>()(random_bits); }

std::vector<float> normals(std::size_t count) {
  std::vector<float> found(count);
  for (float &number : found)
    number = normal();
  return found;
}

/// Rows of spikes or numbers with some in front, and what a convolution reads of them.
struct Source {
  Source(int rows, int lead, int values, bool spikes) : count(values), first(lead) {
    const int words = (values + 31) / 32;
    bits.resize(static_cast<std::size_t>((rows + lead) * words));
    numbers = normals(static_cast<std::size_t>((rows + lead) * values));
    for (int row = 0; spikes && row < rows + lead; ++row)
      for (int i = 0; i < values; ++i) {
        float &number = numbers[static_cast<std::size_t>(row * values + i)];
        number = number > 0.8f ? 1.0f : 0.0f;
        if (number != 0)
          bits[static_cast<std::size_t>(row * words + i / 32)] |= 1u << (i % 32);
      }
    rows_of = {spikes ? bits.data() : nullptr, spikes ? nullptr : numbers.data(), lead};
  }
  double at(int row, int i) const { return numbers[static_cast<std::size_t>((row + first) * count + i)]; }

  int count, first;
  std::vector<std::uint32_t> bits;
  std::vector<float> numbers;
  WholeRows rows_of{};
};

/// Calls use(target, source, weight) for every product of one row.
template <class Use> void each_product(const Windows &w, const Use &use) {
  const int inner = w.channels / w.groups, outer = w.outputs / w.groups;
  for (int o = 0; o < w.outputs; ++o)
    for (int y = 0; y < w.output[0]; ++y)
      for (int x = 0; x < w.output[1]; ++x)
        for (int c = 0; c < inner; ++c)
          for (int i = 0; i < w.kernel[0]; ++i)
            for (int j = 0; j < w.kernel[1]; ++j) {
              const int v = y * w.stride[0] - w.before[0] + i * w.dilation[0], u = x * w.stride[1] - w.before[1] + j * w.dilation[1];
              if (v >= 0 && v < w.size[0] && u >= 0 && u < w.size[1])
                use((o * w.output[0] + y) * w.output[1] + x, ((o / outer * inner + c) * w.size[0] + v) * w.size[1] + u,
                    ((o * inner + c) * w.kernel[0] + i) * w.kernel[1] + j);
            }
}

/// Prints the norm of the difference over that of what is wanted.
void tell(const char *what, const std::vector<float> &found, const std::vector<double> &wanted) {
  double difference = 0, norm = 1e-300;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double off = static_cast<double>(found[i]) - wanted[i];
    difference += std::isnan(off) ? 1e300 : off * off;
    norm += wanted[i] * wanted[i];
  }
  std::printf("%s %.3g\n", what, std::sqrt(difference / norm));
}

std::vector<double> doubles(const std::vector<float> &numbers) { return std::vector<double>(numbers.begin(), numbers.end()); }

void check_forward(const Windows &w, int rows, bool spikes, const std::vector<float> &weights, std::vector<float> &scratch) {
  const int values = w.outputs * w.output[0] * w.output[1], positions = w.output[0] * w.output[1];
  const Source source(rows, 2, w.channels * w.size[0] * w.size[1], spikes);
  const std::vector<float> bias = normals(static_cast<std::size_t>(w.outputs)), start = normals(static_cast<std::size_t>(values));
  for (const bool add : {false, true}) {
    std::vector<float> found = add ? normals(static_cast<std::size_t>(rows * values)) : std::vector<float>(static_cast<std::size_t>(rows * values), NAN);
    std::vector<double> wanted = add ? doubles(found) : std::vector<double>(found.size());
    for (int row = 0; row < rows; ++row) {
      double *own = wanted.data() + row * values;
      each_product(w, [&](int n, int i, int k) { own[n] += static_cast<double>(weights[static_cast<std::size_t>(k)]) * source.at(row, i); });
      for (int n = 0; n < values; ++n)
        own[n] += add ? 0.0 : static_cast<double>(bias[static_cast<std::size_t>(n / positions)]) + static_cast<double>(start[static_cast<std::size_t>(n)]);
    }
    convolve(w, source.rows_of, weights.data(), {found.data(), rows, add, add ? nullptr : bias.data(), add ? nullptr : start.data()}, scratch.data());
    tell(add ? "forward_added" : "forward", found, wanted);
  }
}

void check_back(const Windows &w, int rows, const std::vector<float> &weights, std::vector<float> &scratch) {
  const int values = w.channels * w.size[0] * w.size[1], targets = w.outputs * w.output[0] * w.output[1], shift = 1, limit = rows;
  const std::vector<float> deltas = normals(static_cast<std::size_t>(rows * targets));
  for (const bool add : {false, true}) {
    std::vector<float> found = add ? normals(static_cast<std::size_t>(rows * values)) : std::vector<float>(static_cast<std::size_t>(rows * values), NAN);
    std::vector<double> wanted = add ? doubles(found) : std::vector<double>(found.size());
    for (int row = 0; row + shift < limit; ++row)
      each_product(w, [&](int n, int i, int k) {
        wanted[static_cast<std::size_t>(row * values + i)] +=
            static_cast<double>(weights[static_cast<std::size_t>(k)]) * static_cast<double>(deltas[static_cast<std::size_t>((row + shift) * targets + n)]);
      });
    convolve_back(w, deltas.data(), shift, limit, weights.data(), {found.data(), rows, add, nullptr, nullptr}, scratch.data());
    tell(add ? "back_added" : "back", found, wanted);
  }
}

void check_gradient(const Windows &w, int rows, bool spikes, std::size_t count, std::vector<float> &scratch) {
  const int targets = w.outputs * w.output[0] * w.output[1], positions = w.output[0] * w.output[1];
  const Source source(rows, 1, w.channels * w.size[0] * w.size[1], spikes);
  const std::vector<float> deltas = normals(static_cast<std::size_t>(rows * targets));
  std::vector<double> wanted(count), biases(static_cast<std::size_t>(w.outputs));
  for (int row = 0; row < rows; ++row) {
    const float *own = deltas.data() + row * targets;
    each_product(w, [&](int n, int i, int k) { wanted[static_cast<std::size_t>(k)] += source.at(row, i) * static_cast<double>(own[n]); });
    for (int n = 0; n < targets; ++n)
      biases[static_cast<std::size_t>(n / positions)] += static_cast<double>(own[n]);
  }
  std::vector<float> found(count, NAN), found_biases(biases.size(), NAN), twice(2 * biases.size(), 1.0f);
  const Slices to{found.data(), 1, static_cast<int>(count), rows, false}, to_biases{found_biases.data(), 1, w.outputs, rows, false};
  convolve_gradient(w, source.rows_of, deltas.data(), rows, to, to_biases, scratch.data());
  tell("gradient", found, wanted);
  tell("bias", found_biases, biases);
  // Of the biases alone, into two slices that hold something.
  convolve_bias_gradient(w, deltas.data(), rows, {twice.data(), 2, w.outputs, rows, true}, scratch.data());
  for (double &number : biases)
    number += 2;
  for (std::size_t i = 0; i < biases.size(); ++i)
    found_biases[i] = twice[i] + twice[biases.size() + i];
  tell("bias_alone", found_biases, biases);
  convolve_gradient(w, source.rows_of, deltas.data(), rows, to, {nullptr, 0, 0, 0, false}, scratch.data());
  tell("gradient_alone", found, wanted);
}

} // namespace

/// rows spikes channels outputs groups, then size, kernel, stride, before, dilation of both axes and the output.
int main(int count, char **given) {
  if (count != 18)
    return 1;
  int n[17];
  for (int i = 0; i < 17; ++i)
    n[i] = std::atoi(given[i + 1]);
  const Windows w{n[2], n[3], n[4], {n[5], n[6]}, {n[15], n[16]}, {n[7], n[8]}, {n[9], n[10]}, {n[11], n[12]}, {n[13], n[14]}};
  const std::vector<float> weights = normals(static_cast<std::size_t>(w.outputs * (w.channels / w.groups) * w.kernel[0] * w.kernel[1]));
  const std::size_t numbers = convolution_scratch(w, n[0]);
  std::vector<float> scratch(numbers + 8, NAN);
  std::fill(scratch.begin() + static_cast<std::ptrdiff_t>(numbers), scratch.end(), 5.0f);
  check_forward(w, n[0], n[1] != 0, weights, scratch);
  check_back(w, n[0], weights, scratch);
  check_gradient(w, n[0], n[1] != 0, weights.size(), scratch);
  for (std::size_t i = numbers; i < scratch.size(); ++i)
    if (scratch[i] != 5.0f)
      std::printf("scratch 1\n");
  return 0;
}
