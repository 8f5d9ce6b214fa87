// Launches of kernels: on the device or, in a check, as fibers on the CPU.
#ifndef SNNC_LAUNCH_HPP
#define SNNC_LAUNCH_HPP

#include "device.hpp"
#include "memory.hpp"
#include "sharing.hpp"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <type_traits>

namespace snnc {

/// Blocks per cluster, threads per block, and bytes of shared memory per block.
struct ClusterSize {
  int blocks, threads;
  std::size_t shared;
};

/// Returns the address of a kernel, by which the device is asked what it can run.
template <class... Given> const void *address_of(void (*kernel)(Given...)) { return reinterpret_cast<const void *>(kernel); }

#if defined(SNNC_ON_HOST)

/// A check has few and small blocks, which still exercise waiting, teams and slices.
inline int threads_of_block() { return 2 * LANES; }

/// Returns the number of resident blocks: 4, or SNNC_HOST_BLOCKS, with which a test compares devices of different sizes.
inline int host_blocks() {
  const char *given = std::getenv("SNNC_HOST_BLOCKS");
  return given == nullptr ? 4 : std::max(1, std::atoi(given));
}
inline int blocks_at_once(const void *, int, std::size_t) { return host_blocks(); }

/// Returns the number of blocks of a launch that could use `wanted` blocks and whose threads loop over the work: few in a check.
inline int most_blocks(long long wanted) { return static_cast<int>(std::min<long long>(wanted, host_blocks())); }

inline std::size_t most_shared() { return 232448; }

template <class... Given, class... Passed>
void launch(void (*kernel)(Given...), int blocks, std::size_t shared, bool together, const Passed &...arguments) {
  static_assert(std::is_same_v<std::tuple<Given...>, std::tuple<Passed...>>,
                "a launch takes the addresses of arguments and does not convert them");
  device::note("launch", device::stream());
  host::run({static_cast<unsigned>(blocks), static_cast<unsigned>(threads_of_block()), 1, shared, together}, [&] { kernel(arguments...); });
}

/// Launches blocks of `threads` threads that do not wait for each other.
template <class... Given, class... Passed>
void launch_blocks(void (*kernel)(Given...), int blocks, int threads, std::size_t shared, const Passed &...arguments) {
  static_assert(std::is_same_v<std::tuple<Given...>, std::tuple<Passed...>>,
                "a launch takes the addresses of arguments and does not convert them");
  device::note("launch", device::stream());
  host::run({static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 1, shared, false}, [&] { kernel(arguments...); });
}

inline bool forms_clusters(const void *, const Sharing &, std::size_t) { return false; }

template <class... Given, class... Passed>
void launch_teams(void (*kernel)(Given...), const Sharing &sharing, std::size_t shared, const Passed &...arguments) {
  launch(kernel, sharing.blocks(), shared, true, arguments...);
}

/// Launches blocks of `threads` threads that are all resident, so that they can wait for each other.
template <class... Given, class... Passed>
void launch_resident(void (*kernel)(Given...), int blocks, int threads, std::size_t shared, const Passed &...arguments) {
  static_assert(std::is_same_v<std::tuple<Given...>, std::tuple<Passed...>>,
                "a launch takes the addresses of arguments and does not convert them");
  device::note("launch", device::stream());
  host::run({static_cast<unsigned>(blocks), static_cast<unsigned>(threads), 1, shared, true}, [&] { kernel(arguments...); });
}

/// Returns the number of blocks of a kernel that are resident at the same time, one per multiprocessor.
inline int resident_blocks(const void *, int, std::size_t) { return host_blocks(); }

/// Returns whether the device multiplies fragments of both 16-bit types.
inline bool has_fragments() { return true; }
#if defined(SNNC_WITHOUT_CLUSTERS)
inline bool has_clusters() { return false; }
#else
inline bool has_clusters() { return true; }
#endif

/// Returns whether the device can run clusters of this size of a kernel.
inline bool runs_clusters(const void *, const ClusterSize &size) { return size.blocks == 1 || has_clusters(); }

/// Launches independent clusters, which run in any order.
template <class... Given, class... Passed>
void launch_clusters(void (*kernel)(Given...), int clusters, const ClusterSize &size, const Passed &...arguments) {
  static_assert(std::is_same_v<std::tuple<Given...>, std::tuple<Passed...>>,
                "a launch takes the addresses of arguments and does not convert them");
  device::note("launch", device::stream());
  host::run({static_cast<unsigned>(clusters * size.blocks), static_cast<unsigned>(size.threads), static_cast<unsigned>(size.blocks),
             size.shared, false},
            [&] { kernel(arguments...); });
}

#else

inline int threads_of_block() { return MAX_THREADS; }

/// Returns the number of blocks of a launch that could use `wanted` blocks and whose threads loop over the work.
inline int most_blocks(long long wanted) { return static_cast<int>(std::min<long long>(wanted, 1 << 20)); }

/// Returns the maximum bytes of shared memory per block.
inline std::size_t most_shared() {
  int most = 0;
  device::check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, device::current()), "shared memory of the device");
  return static_cast<std::size_t>(most);
}

inline void allow_shared(const void *kernel, std::size_t shared) {
  // Kernels may use this amount without setting an attribute.
  constexpr std::size_t USUAL = 48 * 1024;
  if (shared <= USUAL)
    return;
  device::check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared)), "shared memory");
}

/// Returns the number of blocks of a kernel that are resident at the same time, at most `each` per multiprocessor.
inline int blocks_at_once(const void *kernel, int each, std::size_t shared) {
  int processors = 0, resident = 0;
  allow_shared(kernel, shared);
  device::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device::current()), "multiprocessors");
  device::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, MAX_THREADS, shared), "occupancy");
  if (resident == 0)
    throw std::runtime_error("a kernel does not fit on a multiprocessor of the device");
  return processors * std::min(each, resident);
}

/// Launches blocks of `threads` threads that do not wait for each other.
template <class... Given, class... Passed>
void launch_blocks(void (*kernel)(Given...), int blocks, int threads, std::size_t shared, const Passed &...arguments) {
  static_assert(std::is_same_v<std::tuple<Given...>, std::tuple<Passed...>>,
                "a launch takes the addresses of arguments and does not convert them");
  const void *pointers[] = {static_cast<const void *>(&arguments)...};
  const void *function = address_of(kernel);
  if (shared > 0)
    allow_shared(function, shared);
  device::check(cudaLaunchKernel(function, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
                                 const_cast<void **>(pointers), shared, device::stream()),
                "launch");
}

/// Launches a kernel. `together`: all blocks are resident, so that they can wait for each other.
template <class... Given, class... Passed>
void launch(void (*kernel)(Given...), int blocks, std::size_t shared, bool together, const Passed &...arguments) {
  static_assert(std::is_same_v<std::tuple<Given...>, std::tuple<Passed...>>,
                "a launch takes the addresses of arguments and does not convert them");
  const void *pointers[] = {static_cast<const void *>(&arguments)...};
  const void *function = address_of(kernel);
  allow_shared(function, shared);
  const dim3 grid(static_cast<unsigned>(blocks)), block(MAX_THREADS);
  void **given = const_cast<void **>(pointers);
  device::check(together ? cudaLaunchCooperativeKernel(function, grid, block, given, shared, device::stream())
                         : cudaLaunchKernel(function, grid, block, given, shared, device::stream()),
                "launch");
}

// Clusters need CUDA 11.8.
#if CUDART_VERSION >= 11080

/// A launch of blocks in clusters.
class ClusterLaunch {
public:
  ClusterLaunch(int blocks, const ClusterSize &size) {
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {static_cast<unsigned>(size.blocks), 1, 1};
    config.gridDim = dim3(static_cast<unsigned>(blocks));
    config.blockDim = dim3(static_cast<unsigned>(size.threads));
    config.dynamicSmemBytes = size.shared;
    config.stream = device::stream();
    config.attrs = &attribute;
    config.numAttrs = 1;
  }
  /// A launch in which each team is a cluster.
  ClusterLaunch(const Sharing &sharing, std::size_t shared) : ClusterLaunch(sharing.blocks(), {sharing.team_blocks, MAX_THREADS, shared}) {}
  ClusterLaunch(const ClusterLaunch &) = delete;
  ClusterLaunch &operator=(const ClusterLaunch &) = delete;
  const cudaLaunchConfig_t *get() const { return &config; }

private:
  cudaLaunchAttribute attribute{};
  cudaLaunchConfig_t config{};
};

/// Returns the number of resident clusters of this launch; 0 if the device does not support this size.
inline int clusters_at_once(const void *function, const ClusterLaunch &wanted, int blocks) {
  constexpr int PORTABLE = 8;
  int has = 0, most = 0;
  const bool known =
      cudaDeviceGetAttribute(&has, cudaDevAttrClusterLaunch, device::current()) == cudaSuccess && has != 0 &&
      (blocks <= PORTABLE || cudaFuncSetAttribute(function, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess) &&
      cudaOccupancyMaxActiveClusters(&most, function, wanted.get()) == cudaSuccess;
  // A size that the device does not support makes only this query fail.
  if (!known)
    cudaGetLastError();
  return known ? most : 0;
}

/// Returns whether the device can run all teams at once as clusters.
inline bool forms_clusters(const void *kernel, const Sharing &sharing, std::size_t shared) {
  if (sharing.team_blocks == 1)
    return false;
  allow_shared(kernel, shared);
  return clusters_at_once(kernel, ClusterLaunch(sharing, shared), sharing.team_blocks) >= sharing.teams;
}

#else

inline bool forms_clusters(const void *, const Sharing &, std::size_t) { return false; }

#endif

/// Launches blocks of `threads` threads that are all resident, so that they can wait for each other.
template <class... Given, class... Passed>
void launch_resident(void (*kernel)(Given...), int blocks, int threads, std::size_t shared, const Passed &...arguments) {
  static_assert(std::is_same_v<std::tuple<Given...>, std::tuple<Passed...>>,
                "a launch takes the addresses of arguments and does not convert them");
  const void *pointers[] = {static_cast<const void *>(&arguments)...};
  const void *function = address_of(kernel);
  allow_shared(function, shared);
  device::check(cudaLaunchCooperativeKernel(function, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
                                            const_cast<void **>(pointers), shared, device::stream()),
                "launch");
}

/// Returns the number of blocks of a kernel that are resident at the same time, one per multiprocessor; 0 if none fits.
inline int resident_blocks(const void *kernel, int threads, std::size_t shared) {
  int processors = 0, resident = 0;
  if (shared > most_shared())
    return 0;
  allow_shared(kernel, shared);
  device::check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device::current()), "multiprocessors");
  device::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, threads, shared), "occupancy");
  return resident > 0 ? processors : 0;
}

/// Returns whether the device supports clusters (sm_90 and newer).
inline bool has_clusters() {
  int major = 0;
  device::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device::current()), "compute capability");
  return major >= 9;
}

/// Returns whether the device multiplies fragments of both 16-bit types (sm_80 and newer).
inline bool has_fragments() {
  int major = 0;
  device::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device::current()), "compute capability");
  return major >= 8;
}

/// Returns whether the device can run clusters of this size of a kernel.
inline bool runs_clusters(const void *kernel, const ClusterSize &size) {
  if (size.shared > most_shared())
    return false;
  allow_shared(kernel, size.shared);
#if CUDART_VERSION >= 11080
  if (size.blocks > 1)
    return clusters_at_once(kernel, ClusterLaunch(size.blocks, size), size.blocks) > 0;
#endif
  int resident = 0;
  device::check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, size.threads, size.shared), "occupancy");
  return size.blocks == 1 && resident > 0;
}

/// Launches independent clusters, which run in any order.
template <class... Given, class... Passed>
void launch_clusters(void (*kernel)(Given...), int clusters, const ClusterSize &size, const Passed &...arguments) {
  static_assert(std::is_same_v<std::tuple<Given...>, std::tuple<Passed...>>,
                "a launch takes the addresses of arguments and does not convert them");
  const void *pointers[] = {static_cast<const void *>(&arguments)...};
  void **given = const_cast<void **>(pointers);
  const void *function = address_of(kernel);
#if CUDART_VERSION >= 11080
  if (size.blocks > 1) {
    const ClusterLaunch config(clusters * size.blocks, size);
    device::check(cudaLaunchKernelExC(config.get(), function, given), "launch");
    return;
  }
#endif
  device::check(cudaLaunchKernel(function, dim3(static_cast<unsigned>(clusters)), dim3(static_cast<unsigned>(size.threads)), given,
                                 size.shared, device::stream()),
                "launch");
}

/// Launches all teams, resident at the same time.
template <class... Given, class... Passed>
void launch_teams(void (*kernel)(Given...), const Sharing &sharing, std::size_t shared, const Passed &...arguments) {
#if CUDART_VERSION >= 11080
  if (sharing.clusters) {
    const void *pointers[] = {static_cast<const void *>(&arguments)...};
    const void *function = address_of(kernel);
    allow_shared(function, shared);
    const ClusterLaunch config(sharing, shared);
    device::check(cudaLaunchKernelExC(config.get(), function, const_cast<void **>(pointers)), "launch");
    return;
  }
#endif
  launch(kernel, sharing.blocks(), shared, true, arguments...);
}

#endif

} // namespace snnc

#endif
