// Kernels that wait for asynchronous work correctly or not at all, run on the CPU. The argument names a kernel; prints whether its results
// are right, or why it cannot end.
#include "clusters.hpp"
#include "launch.hpp"
#include "warpgroups.cuh"

#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

using namespace snnc;

namespace {

constexpr int THREADS = 128;

/// Copies to shared memory in two groups, of which the first is read after a wait for all groups but the last LATER ones (-1: no wait).
template <int LATER> KERNEL void copied(const std::uint32_t *from, std::uint32_t *to) {
  std::uint32_t *own = reinterpret_cast<std::uint32_t *>(shared_memory()) + 8 * thread_index();
  for (int part = 0; part < 2; ++part) {
    copy_later(place_of(reinterpret_cast<char *>(own + 4 * part)), from + 4 * thread_index());
    end_of_copies();
  }
  if constexpr (LATER >= 0)
    wait_for_copies<LATER>();
  to[thread_index()] = own[0];
}

enum class Fault { NONE, NO_WAIT, OVERWRITES, NO_GROUP };

/// Multiplies ones by twos, with 16 depths.
template <Fault FAULT> KERNEL void multiplied(const std::uint32_t *, std::uint32_t *to) {
  std::uint16_t *twos = reinterpret_cast<std::uint16_t *>(shared_memory());
  const std::uint32_t ones = BFloat16::pair(1.0f, 1.0f);
  for (int i = thread_index(); i < 16 * 128; i += block_size())
    twos[i] = static_cast<std::uint16_t>(BFloat16::of(2.0f));
  show_stored();
  sync_block();
  float sums[16][4] = {};
  const std::uint32_t left[4] = {ones, ones, ones, ones};
  begin_products();
  multiply_group<BFloat16, false>(sums, left, place_of(shared_memory()), 2 * MATRIX_BYTES, false);
  if (FAULT != Fault::NO_GROUP)
    end_of_products();
  if (FAULT == Fault::OVERWRITES) {
    sync_block();
    for (int i = thread_index(); i < 16 * 128; i += block_size())
      twos[i] = 0;
    sync_block();
  }
  if (FAULT != Fault::NO_WAIT)
    wait_for_products<0>();
  to[thread_index()] = static_cast<std::uint32_t>(sums[3][1]);
}

enum class Wait { EACH, NONE, SECOND_ONLY, TWICE };

/// The first block of a cluster sends two words to the second, one in each phase of a barrier.
template <Wait WAIT> KERNEL void sent(const std::uint32_t *, std::uint32_t *to) {
  Mbarrier *barrier = reinterpret_cast<Mbarrier *>(shared_memory());
  std::uint32_t *place = reinterpret_cast<std::uint32_t *>(shared_memory() + 64);
  if (thread_index() == 0) {
    begin_barrier(barrier, 1);
    publish_barriers();
    expect_bytes(barrier, 4);
  }
  sync_cluster();
  if (cluster_rank() == 0) {
    if (thread_index() == 0) {
      send(place_in(own_place(place), 1), {32u}, place_in(own_place(barrier), 1));
      wait_for(barrier, 0);
      send(place_in(own_place(place + 1), 1), {64u}, place_in(own_place(barrier), 1));
    }
    return;
  }
  if (WAIT != Wait::SECOND_ONLY && WAIT != Wait::NONE)
    wait_for(barrier, 0);
  if (thread_index() == 0) {
    expect_bytes(barrier, 4);
    send(place_in(own_place(place), 0), {1u}, place_in(own_place(barrier), 0));
  }
  if (WAIT != Wait::NONE)
    wait_for(barrier, 1);
  to[thread_index()] = place[1] / 2;
  if (WAIT == Wait::TWICE)
    wait_for(barrier, 2);
}

using Kernel = void (*)(const std::uint32_t *, std::uint32_t *);
struct Case {
  Kernel kernel;
  int blocks;
};

const std::map<std::string, Case> CASES = {
    {"copies", {copied<0>, 1}},
    {"copies: all but the last group", {copied<1>, 1}},
    {"copies: all but the last two groups", {copied<2>, 1}},
    {"copies: no wait", {copied<-1>, 1}},
    {"products", {multiplied<Fault::NONE>, 1}},
    {"products: no wait", {multiplied<Fault::NO_WAIT>, 1}},
    {"products: no group", {multiplied<Fault::NO_GROUP>, 1}},
    {"products: factors overwritten", {multiplied<Fault::OVERWRITES>, 1}},
    {"words", {sent<Wait::EACH>, 2}},
    {"words: no wait", {sent<Wait::NONE>, 2}},
    {"words: a phase is not waited for", {sent<Wait::SECOND_ONLY>, 2}},
    {"words: a phase that never ends", {sent<Wait::TWICE>, 2}},
};

} // namespace

int main(int, char **arguments) {
  const Case &of = CASES.at(arguments[1]);
  const std::vector<std::uint32_t> from(4 * THREADS, 32u);
  std::vector<std::uint32_t> to(THREADS, 0u);
  try {
    launch_clusters(of.kernel, 1, ClusterSize{of.blocks, THREADS, 8192}, from.data(), to.data());
  } catch (const std::exception &error) {
    std::printf("%s\n", error.what());
    return 0;
  }
  std::printf("%s\n", to == std::vector<std::uint32_t>(THREADS, 32u) ? "right" : "wrong");
}
