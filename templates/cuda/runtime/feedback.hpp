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

/// The part of a component that does not depend on the network: it chooses the teams.
class FeedbackTeams {
public:
  /// A direction in time: its kernels for one sample and for a tile of samples (null: this direction does not exist), and the sums that a
  /// lane keeps per sample.
  struct Way {
    const void *narrow, *wide;
    int sums;
    const void *of(int tile) const { return tile == 1 ? narrow : wide; }
    std::size_t bytes(int tile) const { return shared_bytes(sums * tile); }
  };
  using Matrices = std::initializer_list<NearMatrix>;

  FeedbackTeams(const Work &takes, const Way &forward_way, const Way &backward_way);
  ~FeedbackTeams();

  void lay_out(int batch, bool training, const TeamWishes &wishes, Matrices near_forward, Matrices near_backward);

  Sharing sharing;

protected:
  /// Returns the run of a launch by these teams, and resets their counters.
  Run started(Run run);

  const Work work;
  const Way ahead, back;
  std::size_t forward_shared = 0, backward_shared = 0;

private:
  device::Array<unsigned> counters;

  std::size_t place(const Way &way, int tile, Matrices near, const TeamWishes &wishes);
};

/// The kernels of a component, for one sample and for a tile of samples at a time, and their launches.
template <class Net> class Feedback : public FeedbackTeams {
public:
  using Kernel = void (*)(WHOLE_GRID Net net, WHOLE_GRID Run run);
  struct Way {
    Kernel narrow, wide;
    int sums;
  };

  Feedback(const Work &takes, const Way &forward_way, const Way &backward_way)
      : FeedbackTeams(takes, {address_of(forward_way.narrow), address_of(forward_way.wide), forward_way.sums},
                      {address_of(backward_way.narrow), address_of(backward_way.wide), backward_way.sums}),
        kernels{forward_way, backward_way} {}

  void forward(const Net &net, const Run &run) {
    launch_teams(sharing.forward_tile == 1 ? kernels[0].narrow : kernels[0].wide, sharing, forward_shared, net, started(run));
  }
  void backward(const Net &net, const Run &run) {
    launch_teams(sharing.backward_tile == 1 ? kernels[1].narrow : kernels[1].wide, sharing, backward_shared, net, started(run));
  }

private:
  const Way kernels[2];
};

} // namespace snnc

#endif
