// Populations that feed back to each other: the division of their time loop among teams of blocks, and its launches.
#ifndef SNNC_FEEDBACK_HPP
#define SNNC_FEEDBACK_HPP

#include "launch.hpp"
#include "near_places.hpp"
#include "sharing.hpp"

namespace snnc {

constexpr std::size_t shared_bytes(int sums) { return warp_bytes(sums) * (MAX_THREADS / LANES); }

/// Choices of the user of a session; 0 leaves a choice to the program. `near`: maximum KiB of weights that a block keeps in shared memory.
struct TeamWishes {
  int team_blocks, tile, clusters, near;
};

/// The kernels of a component, for one sample and for a tile of samples at a time, and their launches.
template <class Net> class Feedback {
public:
  using Kernel = void (*)(WHOLE_GRID Net net, WHOLE_GRID Run run);
  /// A direction in time: its kernels (null: this direction does not exist), and the sums that a lane keeps per sample.
  struct Way {
    Kernel narrow, wide;
    int sums;
    Kernel of(int tile) const { return tile == 1 ? narrow : wide; }
    std::size_t bytes(int tile) const { return shared_bytes(sums * tile); }
  };

  Feedback(const Work &takes, const Way &forward_way, const Way &backward_way) : work(takes), ahead(forward_way), back(backward_way) {}

  void lay_out(int batch, bool training, const TeamWishes &wishes, const std::vector<NearMatrix> &near_forward,
               const std::vector<NearMatrix> &near_backward) {
    const bool goes_back = back.narrow != nullptr, wide = shared_bytes(std::max(ahead.sums, back.sums) * MAX_TILE) <= most_shared();
    int limit = at_once(ahead, 1);
    if (wide)
      limit = std::min(limit, at_once(ahead, MAX_TILE));
    if (goes_back)
      limit = std::min(limit, at_once(back, 1));
    if (goes_back && wide)
      limit = std::min(limit, at_once(back, MAX_TILE));
    const std::size_t lists = shared_bytes(std::max(ahead.sums, back.sums) * (wide ? MAX_TILE : 1));
    sharing = share_out(work, batch, limit, wishes.team_blocks, wide ? wishes.tile : 1, training, [&](int each, bool backward) {
      return all_near(most_near(lists, wishes) - lists, each, backward ? near_backward : near_forward);
    });
    forward_shared = place(ahead, sharing.forward_tile, near_forward, wishes);
    sharing.clusters = wishes.clusters != 0 && forms_clusters(ahead.of(sharing.forward_tile), sharing, forward_shared);
    if (goes_back) {
      backward_shared = place(back, sharing.backward_tile, near_backward, wishes);
      sharing.clusters = sharing.clusters && forms_clusters(back.of(sharing.backward_tile), sharing, backward_shared);
    }
    counters.resize(static_cast<std::size_t>(sharing.teams));
  }

  void forward(const Net &net, const Run &run) { start(ahead.of(sharing.forward_tile), forward_shared, net, run); }
  void backward(const Net &net, const Run &run) { start(back.of(sharing.backward_tile), backward_shared, net, run); }

  Sharing sharing;

private:
  static int at_once(const Way &way, int tile) { return blocks_at_once(way.of(tile), 1, way.bytes(tile)); }
  /// Returns the maximum end of the weights in shared memory, which begin at byte `begin`.
  static std::size_t most_near(std::size_t begin, const TeamWishes &wishes) {
    return std::min(std::max(most_shared(), begin), begin + static_cast<std::size_t>(wishes.near) * 1024);
  }
  std::size_t place(const Way &way, int tile, const std::vector<NearMatrix> &near, const TeamWishes &wishes) {
    const std::size_t begin = way.bytes(tile), end = place_near(begin, most_near(begin, wishes), sharing.team_blocks, near);
    sharing.near_bytes += end - begin;
    return end;
  }
  void start(Kernel kernel, std::size_t shared, const Net &net, Run run) {
    run.team_samples = sharing.team_samples;
    run.team_blocks = sharing.team_blocks;
    run.counters = counters.data();
    run.clusters = sharing.clusters;
    counters.clear();
    launch_teams(kernel, sharing, shared, net, run);
  }

  const Work work;
  const Way ahead, back;
  std::size_t forward_shared = 0, backward_shared = 0;
  device::Array<unsigned> counters;
};

} // namespace snnc

#endif
