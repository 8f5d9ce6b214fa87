// Runs dense products over a whole sequence for sizes that are given, and prints how far the sums lie from those in double precision.
//
// Arguments: rows, inputs, outputs, and the power of two by which weights are at most smaller than others. The first line says what multiplies, and the rows of a
// gradient's slice. Of each sum the error is divided by the sum of the absolute products: what float32 would be off by is about 1e-7.
#include "launch.hpp"
#include "gradients.hpp"
#include "whole_products.hpp"
#include "half.hpp"
#include "sources.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

using namespace snnc;

namespace {

std::mt19937 random_bits(7);
float normal() { return std::normal_distribution<float>()(random_bits); }

struct Problem {
  int rows, inputs, outputs;
  std::vector<float> source, weights, deltas, start, before;
  std::vector<std::uint32_t> spikes;
  std::vector<Short<BFloat16>> short_deltas;

  Problem(int r, int i, int o, bool bits, int smaller = 0) : rows(r), inputs(i), outputs(o) {
    const int words = (inputs + 31) / 32, places = (outputs + 1) / 2 * 2;
    spikes.assign(static_cast<std::size_t>(rows * words), 0);
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < inputs; ++k) {
        const bool fires = random_bits() % 4 == 0;
        if (fires)
          spikes[static_cast<std::size_t>(row * words + k / 32)] |= 1u << k % 32;
        source.push_back(bits ? (fires ? 1.0f : 0.0f) : normal() * 3.0f);
      }
    // Columns of very different ranges, and weights of very different sizes.
    for (int k = 0; k < inputs; ++k)
      for (int n = 0; n < outputs; ++n)
        weights.push_back(normal() * std::ldexp(1.0f, n % 5 * 3 - 8) * (k % 7 == 0 ? 0.01f : 1.0f));
    for (float &weight : weights)
      weight = std::ldexp(weight, smaller > 0 ? -static_cast<int>(random_bits() % static_cast<unsigned>(smaller + 1)) : 0);
    short_deltas.resize(static_cast<std::size_t>(rows * places));
    for (int row = 0; row < rows; ++row)
      for (int n = 0; n < outputs; ++n) {
        const float number = normal() * std::ldexp(1.0f, -static_cast<int>(random_bits() % 20));
        deltas.push_back(number);
        short_deltas[static_cast<std::size_t>(row * places + n)].bits = static_cast<std::uint16_t>(BFloat16::of(number));
      }
    for (int n = 0; n < std::max(inputs, outputs); ++n)
      start.push_back(normal());
    for (int i2 = 0; i2 < rows * std::max(inputs, outputs); ++i2)
      before.push_back(normal());
  }
};

struct Worst {
  double error = 0;
  void see(double found, double wanted, double scale) {
    const double off = std::abs(found - wanted) / (scale + 1e-30);
    error = off <= error ? error : off;
    if (!std::isfinite(found))
      error = 1e30;
  }
};

std::vector<char> prepared_memory;
PreparedWeights prepared(WholeUse use, Factors factors, const Problem &of) {
  prepared_memory.assign(prepared_bytes(use, factors, of.inputs, of.outputs) + 16, 77);
  char *memory = prepared_memory.data();
  memory += 16 - reinterpret_cast<std::uintptr_t>(memory) % 16;
  const PreparedWeights to{use, factors, of.inputs, of.outputs, memory};
  prepare_weights({{to, {of.weights.data(), of.inputs, of.outputs}}});
  return to;
}

/// A weight as the definition reads it: where factors say so, rounded to float16.
double weight_of(float weight, bool halves) { return halves ? Float16::number(Float16::of(Float16::bounded(weight))) : weight; }

/// A number rounded to the nearest one of tf32, with 11 significant bits and the range of float32.
double tf32(float number) {
  std::uint32_t bits = bits_of(number);
  bits += 0xfffu + (bits >> 13 & 1u);
  return number_of(bits & ~0x1fffu);
}

/// The worst errors of products of spikes with tf32 weights: from the definition in tf32, from exact weights, and of the definition from exact weights.
void print_tf32(const Problem &p) {
  const PreparedWeights weights = prepared(WholeUse::SPIKES, Factors::TF32, p);
  std::vector<float> found(static_cast<std::size_t>(p.rows * p.outputs));
  whole_forward(p.spikes.data(), p.rows, weights, {found.data(), nullptr, false});
  Worst from_tf32, from_exact, of_tf32;
  for (int r = 0; r < p.rows; ++r)
    for (int n = 0; n < p.outputs; ++n) {
      double rounded = 0, exact = 0, scale = 0;
      for (int k = 0; k < p.inputs; ++k)
        if (p.source[r * p.inputs + k] != 0) {
          const float weight = p.weights[k * p.outputs + n];
          rounded += tf32(weight), exact += weight, scale += std::abs(weight);
        }
      from_tf32.see(found[r * p.outputs + n], rounded, scale);
      from_exact.see(found[r * p.outputs + n], exact, scale);
      of_tf32.see(rounded, exact, scale);
    }
  std::printf("%.3g %.3g %.3g\n", from_tf32.error, from_exact.error, of_tf32.error);
}

double forward(const Problem &p, bool bits, Factors factors, bool add) {
  const bool halves = factors == (bits ? Factors::ROUNDED : Factors::HALF_WEIGHTS);
  const PreparedWeights weights = prepared(bits ? WholeUse::SPIKES : WholeUse::NUMBERS, factors, p);
  std::vector<float> found(p.before.begin(), p.before.begin() + p.rows * p.outputs);
  const DenseSums sums{found.data(), add ? p.start.data() : nullptr, add};
  if (bits)
    whole_forward(p.spikes.data(), p.rows, weights, sums);
  else
    whole_forward(p.source.data(), p.rows, weights, sums);
  Worst worst;
  for (int r = 0; r < p.rows; ++r)
    for (int n = 0; n < p.outputs; ++n) {
      double wanted = add ? static_cast<double>(p.start[n]) + p.before[r * p.outputs + n] : 0, scale = std::abs(wanted);
      for (int k = 0; k < p.inputs; ++k) {
        const double one = static_cast<double>(p.source[r * p.inputs + k]) * weight_of(p.weights[k * p.outputs + n], halves);
        wanted += one, scale += std::abs(one);
      }
      worst.see(found[r * p.outputs + n], wanted, scale);
    }
  return worst.error;
}

template <class Number> double back(const Problem &p, const std::vector<Number> &deltas, Factors factors, bool add) {
  const PreparedWeights weights = prepared(WholeUse::BACK, factors, p);
  const int stride = static_cast<int>(deltas.size()) / p.rows, shift = add ? 3 : 0, limit = p.rows - (add ? 1 : 0);
  std::vector<float> found(p.before.begin(), p.before.begin() + p.rows * p.inputs);
  whole_back(deltas.data(), p.rows, shift, limit, weights, {found.data(), nullptr, add});
  Worst worst;
  for (int r = 0; r < p.rows; ++r)
    for (int k = 0; k < p.inputs; ++k) {
      double wanted = add ? p.before[r * p.inputs + k] : 0, scale = std::abs(wanted);
      for (int n = 0; n < p.outputs && r + shift < limit; ++n) {
        const double one = static_cast<double>(static_cast<float>(deltas[(r + shift) * stride + n])) *
                           weight_of(p.weights[k * p.outputs + n], factors == Factors::HALF_WEIGHTS);
        wanted += one, scale += std::abs(one);
      }
      worst.see(found[r * p.inputs + k], wanted, scale);
    }
  return worst.error;
}

template <class Number> double gradient(const Problem &p, bool bits, const std::vector<Number> &deltas, Factors factors, bool add) {
  const int numbers = p.inputs * p.outputs, stride = static_cast<int>(deltas.size()) / p.rows;
  const int length = add ? 32 : whole_slice_rows(p.rows, p.inputs, p.outputs), count = (p.rows + length - 1) / length;
  std::vector<float> found(static_cast<std::size_t>(count * numbers), add ? 1.0f : NAN);
  const Slices to{found.data(), count, numbers, length, add};
  if (bits)
    whole_gradient(p.spikes.data(), deltas.data(), p.rows, p.inputs, p.outputs, factors, to);
  else
    whole_gradient(p.source.data(), deltas.data(), p.rows, p.inputs, p.outputs, factors, to);
  Worst worst;
  for (int k = 0; k < p.inputs; ++k)
    for (int n = 0; n < p.outputs; ++n)
      for (int s = 0; s < count; ++s) {
        double wanted = add ? 1 : 0, scale = wanted;
        for (int r = s * length; r < std::min(p.rows, (s + 1) * length); ++r) {
          const double one = static_cast<double>(p.source[r * p.inputs + k]) * static_cast<float>(deltas[r * stride + n]);
          wanted += one, scale += std::abs(one);
        }
        worst.see(found[s * numbers + k * p.outputs + n], wanted, scale);
      }
  return worst.error;
}

} // namespace

int main(int count, char **arguments) {
  if (count != 4 && count != 5)
    return 2;
  const int rows = std::atoi(arguments[1]), inputs = std::atoi(arguments[2]), outputs = std::atoi(arguments[3]);
  std::printf("%s %d\n", products_by_groups() ? "groups" : "warps", whole_slice_rows(rows, inputs, outputs));
  if (count == 5) {
    print_tf32(Problem(rows, inputs, outputs, true, std::atoi(arguments[4])));
    return 0;
  }
  const char *names[] = {"split", "rounded", "half_weights"};
  for (const bool bits : {true, false}) {
    const Problem p(rows, inputs, outputs, bits);
    const char *source = bits ? "spikes" : "numbers";
    for (const Factors factors : {Factors::SPLIT, Factors::ROUNDED})
      for (const bool add : {false, true}) {
        const char *name = names[static_cast<int>(factors)];
        if (bits || factors == Factors::SPLIT)
          std::printf("forward %s %s %d %.3g\n", source, name, add, forward(p, bits, factors, add));
        std::printf("gradient %s %s %d %.3g\n", source, name, add, gradient(p, bits, p.deltas, factors, add));
        std::printf("gradient_short %s %s %d %.3g\n", source, name, add, gradient(p, bits, p.short_deltas, factors, add));
        if (!bits) {
          std::printf("back numbers %s %d %.3g\n", name, add, back(p, p.deltas, factors, add));
          std::printf("back_short numbers %s %d %.3g\n", name, add, back(p, p.short_deltas, factors, add));
        }
      }
    if (!bits) {
      std::printf("forward numbers half_weights 0 %.3g\n", forward(p, bits, Factors::HALF_WEIGHTS, false));
      std::printf("back_short numbers half_weights 0 %.3g\n", back(p, p.short_deltas, Factors::HALF_WEIGHTS, false));
    }
  }
}
