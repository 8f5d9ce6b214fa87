// Runs connections given by random tables over rows on the CPU and prints how far they are from sums in float64.
#include "whole_tables.cu"

#include <cstdio>
#include <random>

using namespace snnc;

namespace {

std::mt19937 random_bits(11);
int below(int limit) { return static_cast<int>(random_bits() % static_cast<unsigned>(limit)); }
float normal() { return std::normal_distribution<float>()(random_bits); }
std::vector<float> normals(std::size_t count) {
  std::vector<float> found(count);
  for (float &number : found)
    number = normal();
  return found;
}

struct Entry {
  int source, target, weight;
};

/// Entries sorted by one of their ends, as `Wires` reads them.
struct Sorted {
  std::vector<std::uint32_t> begin, entries;
  template <class Key, class Put> Sorted(const std::vector<Entry> &all, int keys, const Key &key, const Put &put) {
    for (int k = 0; k < keys; ++k) {
      begin.push_back(0);
      for (const Entry &entry : all)
        if (key(entry) == k)
          put(entries, entry);
    }
    begin.push_back(0);
    for (int k = 0, found = 0; k < keys; ++k) {
      begin[static_cast<std::size_t>(k)] = static_cast<std::uint32_t>(found);
      for (const Entry &entry : all)
        found += key(entry) == k ? 1 : 0;
      begin[static_cast<std::size_t>(k) + 1] = static_cast<std::uint32_t>(found);
    }
  }
  Wires wires() const { return {begin.data(), entries.data()}; }
};

void put(std::vector<std::uint32_t> &to, int number) { to.push_back(static_cast<std::uint32_t>(number)); }

void tell(const char *what, const std::vector<float> &found, const std::vector<double> &wanted) {
  double difference = 0, norm = 1e-300;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double off = static_cast<double>(found[i]) - wanted[i];
    difference += std::isnan(off) ? 1e300 : off * off;
    norm += wanted[i] * wanted[i];
  }
  std::printf("%s %.3g\n", what, std::sqrt(difference / norm));
}

} // namespace

/// rows sources targets entries weights spikes
int main(int count, char **given) {
  if (count != 7)
    return 1;
  int n[6];
  for (int i = 0; i < 6; ++i)
    n[i] = std::atoi(given[i + 1]);
  const int rows = n[0], sources = n[1], targets = n[2], weights = n[4], lead = 1, shift = 1, limit = rows, words = (sources + 31) / 32;
  const bool spikes = n[5] != 0;
  // Every target has an entry, as a maximum asks for; some have many.
  std::vector<Entry> all;
  for (int target = 0; target < targets; ++target)
    all.push_back({below(sources), target, below(weights)});
  for (int i = targets; i < n[3]; ++i)
    all.push_back({below(sources), below(targets) * below(2), below(weights)});

  std::vector<float> values = normals(static_cast<std::size_t>((rows + lead) * sources));
  std::vector<std::uint32_t> bits(static_cast<std::size_t>((rows + lead) * words));
  for (int row = 0; row < rows + lead; ++row)
    for (int i = 0; i < sources; ++i) {
      float &value = values[static_cast<std::size_t>(row * sources + i)];
      // Some values are equal: the first of the largest is the one that counts.
      value = spikes ? (value > 0.5f ? 1.0f : 0.0f) : std::round(2 * value);
      if (spikes && value != 0)
        bits[static_cast<std::size_t>(row * words + i / 32)] |= 1u << (i % 32);
    }
  const WholeRows from{spikes ? bits.data() : nullptr, spikes ? nullptr : values.data(), lead};
  const auto value = [&](int row, int i) { return static_cast<double>(values[static_cast<std::size_t>((row + lead) * sources + i)]); };
  const std::vector<float> factors = normals(static_cast<std::size_t>(weights)), bias = normals(3), start = normals(static_cast<std::size_t>(targets));
  const std::vector<float> deltas = normals(static_cast<std::size_t>(rows * targets));
  const auto delta = [&](int row, int target) { return row + shift < limit ? static_cast<double>(deltas[static_cast<std::size_t>((row + shift) * targets + target)]) : 0.0; };
  std::vector<std::uint32_t> bias_of;
  for (int target = 0; target < targets; ++target)
    bias_of.push_back(static_cast<std::uint32_t>(below(3)));

  const auto source_of = [](const Entry &e) { return e.source; };
  const auto target_of = [](const Entry &e) { return e.target; };
  const auto weight_of = [](const Entry &e) { return e.weight; };
  const Sorted by_target(all, targets, target_of, [](auto &to, const Entry &e) { put(to, e.source), put(to, e.weight); });
  const Sorted by_source(all, sources, source_of, [](auto &to, const Entry &e) { put(to, e.target), put(to, e.weight); });
  const Sorted by_weight(all, weights, weight_of, [](auto &to, const Entry &e) { put(to, e.source), put(to, e.target); });
  // A maximum has no source twice.
  std::vector<Entry> windows;
  for (const Entry &entry : all) {
    bool known = false;
    for (const Entry &other : windows)
      known |= other.source == entry.source && other.target == entry.target;
    if (!known)
      windows.push_back(entry);
  }
  const Sorted window(windows, targets, target_of, [](auto &to, const Entry &e) { put(to, e.source); });
  const Sorted chooser(windows, sources, source_of, [](auto &to, const Entry &e) { put(to, e.target); });
  const Ends ends{sources, targets};

  for (const bool add : {false, true}) {
    const std::size_t size = static_cast<std::size_t>(rows * targets), back = static_cast<std::size_t>(rows * sources);
    const std::vector<float> before = normals(std::max(size, back));
    const auto begun = [&](std::size_t length) { return add ? std::vector<float>(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(length)) : std::vector<float>(length, NAN); };
    const auto begin_of = [&](std::size_t length) { return add ? std::vector<double>(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(length)) : std::vector<double>(length); };
    std::vector<float> found = begun(size);
    std::vector<double> wanted = begin_of(size);
    for (int row = 0; row < rows; ++row) {
      for (const Entry &e : all)
        wanted[static_cast<std::size_t>(row * targets + e.target)] += static_cast<double>(factors[static_cast<std::size_t>(e.weight)]) * value(row, e.source);
      for (int t = 0; t < targets; ++t)
        wanted[static_cast<std::size_t>(row * targets + t)] += static_cast<double>(bias[bias_of[static_cast<std::size_t>(t)]]) + static_cast<double>(start[static_cast<std::size_t>(t)]);
    }
    gather_wired(ends, by_target.wires(), from, factors.data(), bias_of.data(), {found.data(), rows, add, bias.data(), start.data()});
    tell(add ? "wired_added" : "wired", found, wanted);

    found = begun(back);
    wanted = begin_of(back);
    for (int row = 0; row < rows; ++row)
      for (const Entry &e : all)
        wanted[static_cast<std::size_t>(row * sources + e.source)] += static_cast<double>(factors[static_cast<std::size_t>(e.weight)]) * delta(row, e.target);
    gather_wired_back(ends, by_source.wires(), deltas.data(), shift, limit, factors.data(), {found.data(), rows, add, nullptr, nullptr});
    tell(add ? "wired_back_added" : "wired_back", found, wanted);

    found = begun(size);
    wanted = begin_of(size);
    std::vector<float> found_back = begun(back);
    std::vector<double> wanted_back = begin_of(back);
    for (int row = 0; row < rows; ++row)
      for (int t = 0; t < targets; ++t) {
        int best = -1;
        for (const Entry &e : windows)
          if (e.target == t && (best < 0 || value(row, e.source) > value(row, best)))
            best = e.source;
        wanted[static_cast<std::size_t>(row * targets + t)] += value(row, best);
        wanted_back[static_cast<std::size_t>(row * sources + best)] += delta(row, t);
      }
    gather_largest(ends, window.wires(), from, {found.data(), rows, add, nullptr, nullptr});
    tell(add ? "largest_added" : "largest", found, wanted);
    gather_largest_back(ends, window.wires(), chooser.wires(), from, deltas.data(), shift, limit, {found_back.data(), rows, add, nullptr, nullptr});
    tell(add ? "largest_back_added" : "largest_back", found_back, wanted_back);

    // Windows that share no source, and cover all.
    std::vector<Entry> apart;
    for (int i = 0; i < sources; ++i)
      apart.push_back({i, i % targets, 0});
    const Sorted own(apart, targets, target_of, [](auto &to, const Entry &e) { put(to, e.source); });
    found_back = begun(back);
    wanted_back = begin_of(back);
    for (int row = 0; row < rows; ++row)
      for (int t = 0; t < std::min(targets, sources); ++t) {
        int best = t;
        for (int i = t; i < sources; i += targets)
          best = value(row, i) > value(row, best) ? i : best;
        wanted_back[static_cast<std::size_t>(row * sources + best)] += delta(row, t);
      }
    spread_largest(ends, own.wires(), from, deltas.data(), shift, limit, {found_back.data(), rows, add, nullptr, nullptr});
    tell(add ? "spread_added" : "spread", found_back, wanted_back);
  }

  for (const bool few : {false, true})
    for (const bool ones : {false, true}) {
      std::vector<float> scratch(wired_scratch(weights, rows)), found(static_cast<std::size_t>(weights), NAN);
      std::vector<double> wanted(found.size());
      for (int row = 0; row < rows; ++row)
        for (const Entry &e : all)
          wanted[static_cast<std::size_t>(e.weight)] += (ones ? 1.0 : value(row, e.source)) * static_cast<double>(deltas[static_cast<std::size_t>(row * targets + e.target)]);
      wired_gradients(ends, by_weight.wires(), few, ones ? WholeRows{nullptr, nullptr, 0} : from, deltas.data(), rows, {found.data(), 1, weights, rows, false}, scratch.data());
      tell(few ? (ones ? "gradient_few_of_ones" : "gradient_few") : (ones ? "gradient_of_ones" : "gradient"), found, wanted);
    }
  return 0;
}
