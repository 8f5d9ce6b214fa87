// Maxima over windows or axes; of equal values, the first receives the adjoint.
#ifndef SNNC_MAXIMUM_HPP
#define SNNC_MAXIMUM_HPP

#include "snnc_files.hpp"
#include "values.hpp"

namespace snnc {

class Maximum {
public:
  /// `starts`: first entry of each target, then the number of entries; `sources`: the sources of each target, in order.
  Maximum(const Table &starts, const Table &sources);
  ~Maximum();
  /// Allocates the choices of `steps` steps for the adjoint, as a ring; 0: none.
  void keep(int steps, int samples);
  void forward(const Worker &w, const Source &source, int t, Rows &target, int now);
  void input_gradient(const Worker &w, const Rows &delta, int t, Rows &adjoint, int delay);

private:
  const Table &begin, &entries;
  int slots = 0, batch = 0;
  Array<std::uint32_t> choices;

  std::size_t targets() const;
  std::uint32_t chosen(const float *row, std::size_t target) const;
  std::uint32_t *choices_of(int t, int sample);
};

/// Maxima over spikes, computed from lists: 1 if any source fired. The first source that fired is chosen, or the first if none fired.
class SpikeMaximum {
public:
  /// As for `Maximum`; the sources of each target are ascending and less than `size`.
  SpikeMaximum(const Table &starts, const Table &sources, std::size_t size);
  ~SpikeMaximum();
  void forward(const Worker &w, const Source &source, int t, Rows &target, int now, Scratch &scratch) const;
  void input_gradient(const Worker &w, const Source &source, const Rows &delta, int t, Rows &adjoint, int delay, Scratch &scratch) const;

private:
  /// The first source of each target; the targets of each source, from `begin` on.
  std::vector<std::uint32_t> first, begin, targets;

  /// Calls reach(target) for all targets of a source.
  template <class Reach> void for_targets(std::size_t source, const Reach &reach) const {
    for (std::size_t e = begin[source]; e < begin[source + 1]; ++e)
      reach(targets[e]);
  }
};

} // namespace snnc

#endif
