// The choice of teams, and the places of weights in their shared memory.
#include "feedback.hpp"

#include "share_out.hpp"

#include <algorithm>
#include <numeric>

namespace snnc {

std::string Sharing::text() const {
  return ", \"teams\": " + std::to_string(teams) + ", \"team_blocks\": " + std::to_string(team_blocks) +
         ", \"team_samples\": " + std::to_string(team_samples) + ", \"tile\": " + std::to_string(backward_tile) +
         ", \"clusters\": " + (clusters ? "true" : "false") + ", \"near_bytes\": " + std::to_string(near_bytes);
}

int NearMatrix::own(int team_blocks) const { return chunks() / std::gcd(team_blocks, chunks()); }

namespace {

/// Returns whether all matrices fit in `room` bytes of a block.
bool all_near(std::size_t room, int team_blocks, FeedbackTeams::Matrices all) {
  std::size_t bytes = 0;
  for (const NearMatrix &one : all)
    bytes += one.bytes(team_blocks);
  return bytes <= room;
}

/// Returns the maximum end of the weights in shared memory, which begin at byte `begin`.
std::size_t most_near(std::size_t begin, const TeamWishes &wishes) {
  return std::min(std::max(most_shared(), begin), begin + static_cast<std::size_t>(wishes.near) * 1024);
}

int at_once(const FeedbackTeams::Way &way, int tile) { return blocks_at_once(way.of(tile), 1, way.bytes(tile)); }

} // namespace

FeedbackTeams::FeedbackTeams(const Work &takes, const Way &forward_way, const Way &backward_way)
    : work(takes), ahead(forward_way), back(backward_way) {}

FeedbackTeams::~FeedbackTeams() = default;

void FeedbackTeams::lay_out(int batch, bool training, const TeamWishes &wishes, Matrices near_forward, Matrices near_backward) {
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

/// Allocates matrices in the shared memory of a team's blocks; returns the end of the last one.
std::size_t FeedbackTeams::place(const Way &way, int tile, Matrices near, const TeamWishes &wishes) {
  const std::size_t first = way.bytes(tile), end = most_near(first, wishes);
  std::size_t begin = first;
  for (const NearMatrix &one : near) {
    const int own = one.own(sharing.team_blocks);
    const std::size_t bytes = one.bytes(sharing.team_blocks);
    *one.place = begin + bytes <= end ? Near{static_cast<int>(begin / sizeof(std::uint32_t)), one.chunks() / own, own * LANES} : Near();
    begin += one.place->there() ? bytes : 0;
  }
  sharing.near_bytes += begin - first;
  return begin;
}

Run FeedbackTeams::started(Run run) {
  run.team_samples = sharing.team_samples;
  run.team_blocks = sharing.team_blocks;
  run.counters = counters.data();
  run.clusters = sharing.clusters;
  counters.clear();
  return run;
}

} // namespace snnc
