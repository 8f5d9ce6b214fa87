// Exchange between blocks of a cluster without barriers of the whole cluster: words are stored into each other's shared memory, and
// mbarriers count their bytes.
#ifndef SNNC_CLUSTERS_HPP
#define SNNC_CLUSTERS_HPP

#include "device.hpp"

namespace snnc {

#if !defined(SNNC_ON_HOST) && defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
/// Whether kernels for clusters, and kernels for bfloat16 fragments, are compiled for this architecture.
constexpr bool COMPILES_CLUSTERS = false, COMPILES_FRAGMENTS = __CUDA_ARCH__ >= 800;
#else
constexpr bool COMPILES_CLUSTERS = true, COMPILES_FRAGMENTS = true;
#endif

#if defined(SNNC_ON_HOST)
constexpr bool ON_HOST = true;
#else
constexpr bool ON_HOST = false;
#endif
#if defined(SNNC_WITHOUT_CLUSTERS)
/// Whether a check on the CPU runs the kernels of devices without clusters.
constexpr bool CHECKS_OLD_DEVICE = true;
#else
constexpr bool CHECKS_OLD_DEVICE = false;
#endif

#if defined(SNNC_ON_HOST)

/// An address in the shared memory of any block of the cluster.
using Place = char *;

/// A barrier with phases: a phase ends when all threads and all expected bytes have arrived.
struct Mbarrier {
  unsigned ended;
  int arrivals, left, bytes;

  void settle() {
    if (left == 0 && bytes == 0) {
      left = arrivals;
      ++ended;
    }
  }
};

inline int cluster_rank() { return static_cast<int>(host::cluster_rank()); }
inline Place own_place(const void *shared) { return const_cast<char *>(static_cast<const char *>(shared)); }
inline Place place_in(Place own, int rank) { return host::shared_of(static_cast<unsigned>(rank)) + (own - shared_memory()); }
inline Mbarrier &barrier_at(Place place) { return *reinterpret_cast<Mbarrier *>(place); }
inline void begin_barrier(Mbarrier *barrier, int arrivals) { *barrier = {0, arrivals, arrivals, 0}; }
inline void publish_barriers() {}
inline void expect_bytes(Mbarrier *barrier, int bytes) {
  --barrier->left;
  barrier->bytes += bytes;
  barrier->settle();
}
inline void arrive_at(Place place) {
  --barrier_at(place).left;
  barrier_at(place).settle();
}
inline void wait_for(Mbarrier *barrier, int phase) { host::wait_for_parity(&barrier->ended, static_cast<unsigned>(phase)); }
template <int WORDS> inline void store_shared(Place to, const std::uint32_t (&words)[WORDS]) { std::memcpy(to, words, sizeof words); }
template <int WORDS> struct Message {
  Place to, barrier;
  std::uint32_t words[WORDS];

  void operator()() const {
    std::memcpy(to, words, sizeof words);
    barrier_at(barrier).bytes -= static_cast<int>(sizeof words);
    barrier_at(barrier).settle();
  }
};
template <int WORDS> inline void send(Place to, const std::uint32_t (&words)[WORDS], Place barrier) {
  Message<WORDS> message{to, barrier, {}};
  std::memcpy(message.words, words, sizeof words);
  host::send(message);
}

#else

/// An address in the shared memory of any block of the cluster; the addresses of one block are contiguous.
using Place = std::uint32_t;

/// A barrier with phases: a phase ends when all threads and all expected bytes have arrived.
struct Mbarrier {
  std::uint64_t state;
};

DEVICE Place own_place(const void *shared) { return static_cast<Place>(__cvta_generic_to_shared(shared)); }
/// Stores words in the block's own shared memory.
template <int WORDS> DEVICE void store_shared(Place to, const std::uint32_t (&words)[WORDS]) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4, "1, 2 or 4 words are stored at a time");
  if constexpr (WORDS == 1)
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(words[0]) : "memory");
  else if constexpr (WORDS == 2)
    asm volatile("st.shared.v2.b32 [%0], {%1, %2};" ::"r"(to), "r"(words[0]), "r"(words[1]) : "memory");
  else
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3])
                 : "memory");
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900

DEVICE int cluster_rank() {
  std::uint32_t rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
}
/// Returns the same address in another block.
DEVICE Place place_in(Place own, int rank) {
  Place found;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(found) : "r"(own), "r"(rank));
  return found;
}
DEVICE void begin_barrier(Mbarrier *barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(own_place(barrier)), "r"(arrivals) : "memory");
}
/// Makes initialised barriers visible to other blocks after the next cluster barrier.
DEVICE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
/// Arrives, and adds to the bytes that the phase expects.
DEVICE void expect_bytes(Mbarrier *barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(own_place(barrier)), "r"(bytes) : "memory");
}
/// Arrives at a barrier of any block of the cluster.
DEVICE void arrive_at(Place barrier) {
  asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(barrier) : "memory");
}
DEVICE bool has_ended(Mbarrier *barrier, int phase) {
  std::uint32_t ended;
  asm volatile("{\n\t.reg .pred p;\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
               : "=r"(ended)
               : "r"(own_place(barrier)), "r"(phase & 1)
               : "memory");
  return ended != 0;
}
/// Waits for the end of a phase, counted from 0; the next phase cannot end while a thread waits here. A wait that never ends is a bug:
/// the kernel traps.
DEVICE void wait_for(Mbarrier *barrier, int phase) {
  constexpr unsigned MAX_TRIES = 1u << 28;
  for (unsigned tries = 0; !has_ended(barrier, phase);)
    if (++tries > MAX_TRIES)
      __trap();
}
/// Stores words in a block of the cluster, and counts their bytes at a barrier of that block.
template <int WORDS> DEVICE void send(Place to, const std::uint32_t (&words)[WORDS], Place barrier) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4, "1, 2 or 4 words are sent at a time");
  if constexpr (WORDS == 1)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to), "r"(words[0]), "r"(barrier)
                 : "memory");
  else if constexpr (WORDS == 2)
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(to), "r"(words[0]),
                 "r"(words[1]), "r"(barrier)
                 : "memory");
  else
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::"r"(to), "r"(words[0]),
                 "r"(words[1]), "r"(words[2]), "r"(words[3]), "r"(barrier)
                 : "memory");
}

#else

// Older devices do not support clusters.
DEVICE int cluster_rank() { return 0; }
DEVICE Place place_in(Place own, int) { return own; }
DEVICE void begin_barrier(Mbarrier *, int) {}
DEVICE void publish_barriers() {}
DEVICE void expect_bytes(Mbarrier *, int) {}
DEVICE void arrive_at(Place) {}
DEVICE void wait_for(Mbarrier *, int) {}
template <int WORDS> DEVICE void send(Place, const std::uint32_t (&)[WORDS], Place) {}

#endif
#endif

/// Four words that are read or written in one access.
struct alignas(16) Quad {
  std::uint32_t words[4];
};

/// Two words that are read or written in one access.
struct alignas(8) Pair {
  std::uint32_t words[2];
};

} // namespace snnc

#endif
