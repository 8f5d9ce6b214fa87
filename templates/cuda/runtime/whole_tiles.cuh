// Products over a whole sequence: layout of 16-bit factors in shared memory, and loads of their fragments.
//
// A factor is divided into matrices of 8 by 8 numbers, 128 bytes each: the unit that tensor cores read. Sums run over the depths of both
// factors. Four matrices (32 depths) of 8 outputs are contiguous, followed by those of the next 8 outputs.
#ifndef SNNC_WHOLE_TILES_CUH
#define SNNC_WHOLE_TILES_CUH

#include "half.hpp"
#include "sources.hpp"

#if defined(SNNC_ON_HOST)
#define PRODUCT_KERNEL
#else
#define PRODUCT_KERNEL __global__ __launch_bounds__(snnc::PRODUCT_THREADS, 1)
#endif

namespace snnc {

/// Threads per block of a product, and rows of its tile of the result.
constexpr int PRODUCT_THREADS = 256, TILE_ROWS = 128;
/// Depths that a block processes between two barriers: a word of spikes.
constexpr int STEP_DEPTH = 32;
/// Bytes of a matrix of 8 by 8 numbers, and of the matrices of 8 outputs in one step.
constexpr int MATRIX_BYTES = 128, GROUP_BYTES = STEP_DEPTH / 8 * MATRIX_BYTES;
/// Columns of a strip of prepared weights; a strip of a step is contiguous.
constexpr int STRIP = 128;

/// Spikes are 2 in both 16-bit formats: a single bit, at the same position.
constexpr std::uint32_t TWO_PAIR = 0x40004000u;
constexpr float SPIKE_SCALE = 0.5f;

#if defined(SNNC_ON_HOST)

/// An address in shared memory.
using Place16 = char *;
inline Place16 place_of(char *memory) { return memory; }

/// Loads four matrices of 8 by 8 numbers; lanes 8 i ... 8 i + 7 give the addresses of the 16-byte rows of matrix i; a lane gets two numbers of each.
template <bool TURNED> void load_matrices(std::uint32_t (&found)[4], Place16 row) {
  const std::uint64_t *all = host::exchange(reinterpret_cast<std::uint64_t>(row));
  const int lane = thread_index() % LANES;
  for (int i = 0; i < 4; ++i) {
    std::uint16_t pair[2];
    for (int e = 0; e < 2; ++e) {
      const int down = TURNED ? lane % 4 * 2 + e : lane / 4, along = TURNED ? lane / 4 : lane % 4 * 2 + e;
      std::memcpy(&pair[e], reinterpret_cast<const char *>(all[8 * i + down]) + 2 * along, 2);
    }
    found[i] = pair[0] | static_cast<std::uint32_t>(pair[1]) << 16;
  }
}

inline void copy_later(Place16 to, const void *from) {
  host::start(host::Pending::COPIES, [=] { std::memcpy(to, from, 16); });
}
inline void end_of_copies() { host::end_group(host::Pending::COPIES); }
template <int LATER> void wait_for_copies() { host::wait_for_groups(host::Pending::COPIES, LATER); }

#else

using Place16 = std::uint32_t;
DEVICE Place16 place_of(char *memory) { return static_cast<std::uint32_t>(__cvta_generic_to_shared(memory)); }

template <bool TURNED> DEVICE void load_matrices(std::uint32_t (&found)[4], Place16 row) {
  if (TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 { %0, %1, %2, %3 }, [%4];"
                 : "=r"(found[0]), "=r"(found[1]), "=r"(found[2]), "=r"(found[3])
                 : "r"(row)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 { %0, %1, %2, %3 }, [%4];"
                 : "=r"(found[0]), "=r"(found[1]), "=r"(found[2]), "=r"(found[3])
                 : "r"(row)
                 : "memory");
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
/// Copies 16 bytes to shared memory asynchronously.
DEVICE void copy_later(Place16 to, const void *from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(__cvta_generic_to_global(from)) : "memory");
}
DEVICE void end_of_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits for all copies of the thread except those of the last LATER groups.
template <int LATER> DEVICE void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(LATER) : "memory"); }
#else
DEVICE void copy_later(Place16 to, const void *from) {
  const uint4 found = *static_cast<const uint4 *>(from);
  asm volatile("st.shared.v4.u32 [%0], { %1, %2, %3, %4 };" ::"r"(to), "r"(found.x), "r"(found.y), "r"(found.z), "r"(found.w) : "memory");
}
DEVICE void end_of_copies() {}
template <int LATER> DEVICE void wait_for_copies() {}
#endif

#endif

/// Loads four contiguous numbers of 16 or 32 bits; the address is a multiple of their total size.
DEVICE void load_four(const float *from, float (&found)[4]) {
#if defined(SNNC_ON_HOST)
  std::memcpy(found, from, sizeof found);
#else
  const float4 four = *reinterpret_cast<const float4 *>(from);
  found[0] = four.x, found[1] = four.y, found[2] = four.z, found[3] = four.w;
#endif
}
template <class Half> DEVICE void load_four(const Short<Half> *from, float (&found)[4]) {
#if defined(SNNC_ON_HOST)
  for (int i = 0; i < 4; ++i)
    found[i] = from[i];
#else
  const uint2 four = *reinterpret_cast<const uint2 *>(from);
  found[0] = Half::number(four.x & 0xffffu), found[1] = Half::number(four.x >> 16);
  found[2] = Half::number(four.y & 0xffffu), found[3] = Half::number(four.y >> 16);
#endif
}

/// Rows of `columns` numbers, `stride` apart; rows outside first ... last - 1 are read as 0.
/// `aligned`: every four numbers from a multiple of four on can be read in one access.
template <class Number> struct NumberRows {
  const Number *data;
  int columns, stride;
  long long first, last;
  bool aligned;

  DEVICE void end(long long row) { last = row < last ? row : last; }
  DEVICE const Number *at(long long row, int column) const { return data + row * stride + column; }
  /// Returns the remaining numbers of a row from a column on; 0 if the row does not exist.
  DEVICE int left(long long row, int column) const { return row >= first && row < last ? columns - column : 0; }
};

/// Reads four numbers, of which `left` exist; the others are 0.
template <bool ALIGNED, class Number> DEVICE void read_four(const Number *from, int left, float (&found)[4]) {
  UNROLL(4)
  for (int i = 0; i < 4; ++i)
    found[i] = 0;
  if (ALIGNED) {
    if (left > 0)
      load_four(from, found);
    return;
  }
  UNROLL(4)
  for (int i = 0; i < 4; ++i)
    if (i < left)
      found[i] = static_cast<float>(from[i]);
}

/// Rows of spikes, `words` words per row.
struct SpikeRows {
  const std::uint32_t *data;
  int words;
  long long rows;
  DEVICE void end(long long row) { rows = row < rows ? row : rows; }
  DEVICE std::uint32_t word(long long row, int index) const { return row < rows && index < words ? data[row * words + index] : 0; }
};

/// Splits two numbers into COUNT pairs whose sums equal them, with the largest parts first.
template <class Half, int COUNT> DEVICE void split_pair(float low, float high, std::uint32_t (&parts)[COUNT]) {
  UNROLL(3)
  for (int i = 0; i < COUNT; ++i) {
    parts[i] = Half::pair(low, high);
    low -= Half::number(parts[i] & 0xffffu);
    high -= Half::number(parts[i] >> 16);
  }
}

/// Division of a tile of COLUMNS columns among the warps of a block: each has DOWN fragments of 16 rows.
template <int DOWN_FRAGMENTS, int COLUMNS> struct Shares {
  static constexpr int DOWN = DOWN_FRAGMENTS, ROWS = 16 * DOWN, ABOVE = TILE_ROWS / ROWS, BESIDE = PRODUCT_THREADS / LANES / ABOVE,
                       WIDTH = COLUMNS / BESIDE;
  static_assert(WIDTH % 16 == 0, "a warp reads two column fragments at a time");
  /// The first row and column of a warp's part.
  DEVICE static int row(int warp) { return warp / BESIDE * ROWS; }
  DEVICE static int column(int warp) { return warp % BESIDE * WIDTH; }
};

/// A warp's fragments of the result, with two sums: one is periodically added to the other and cleared, or contains the small parts.
template <class Share> struct Sums {
  static constexpr int DOWN = Share::DOWN, ACROSS = Share::WIDTH / 8;
  float kept[DOWN][ACROSS][4], part[DOWN][ACROSS][4];

  DEVICE void clear() {
    UNROLL(4)
    for (int m = 0; m < DOWN; ++m)
      UNROLL(16)
    for (int n = 0; n < ACROSS; ++n)
      UNROLL(4)
    for (int i = 0; i < 4; ++i)
      kept[m][n][i] = part[m][n][i] = 0;
  }

  /// Tensor cores truncate when they add, so sums are kept short and added in float32 to limit the error.
  DEVICE void empty() {
    UNROLL(4)
    for (int m = 0; m < DOWN; ++m)
      UNROLL(16)
    for (int n = 0; n < ACROSS; ++n)
      UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      kept[m][n][i] += part[m][n][i];
      part[m][n][i] = 0;
    }
  }
};

/// Stores two contiguous numbers at a multiple of their size; `more`: adds to the destination.
DEVICE void put_two(float *to, float first, float second, bool more) {
#if defined(SNNC_ON_HOST)
  to[0] = more ? to[0] + first : first;
  to[1] = more ? to[1] + second : second;
#else
  float2 &place = *reinterpret_cast<float2 *>(to);
  const float2 before = more ? place : make_float2(0, 0);
  place = more ? make_float2(before.x + first, before.y + second) : make_float2(first, second);
#endif
}

/// Layout of the parts of the right factor in shared memory: bytes from one part to the next, and from 8 outputs to the next 8.
struct Layout {
  int plane, group;
};

/// Adds the products of half a step (16 depths): LEFT parts of a warp's rows, in fragments, with RIGHT parts of its columns in shared memory.
/// `right`: the lane's row of the first four matrices. Products of two small parts are omitted. `APART`: small parts have separate sums.
template <class Half, int LEFT, int RIGHT, bool TURNED, bool APART, class Share> DEVICE void
add_products(Sums<Share> &sums, const std::uint32_t (&left)[LEFT][Share::DOWN][4], Place16 right, const Layout &layout, int lane) {
  constexpr int MOST = LEFT > RIGHT ? LEFT : RIGHT;
  UNROLL(4)
  for (int n = 0; n < Share::WIDTH / 8; n += 2) {
    std::uint32_t found[RIGHT][4];
    UNROLL(3)
    for (int p = 0; p < RIGHT; ++p)
      load_matrices<TURNED>(found[p], right + p * layout.plane + n * layout.group);
    UNROLL(3)
    for (int order = MOST - 1; order >= 0; --order)
      UNROLL(3)
    for (int p = 0; p < RIGHT; ++p) {
      const int q = order - p;
      if (q < 0 || q >= LEFT)
        continue;
      UNROLL(4)
      for (int m = 0; m < Share::DOWN; ++m)
        UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        const std::uint32_t b[2] = {found[p][2 * half], found[p][2 * half + 1]};
        Half::multiply(APART && order == 0 ? sums.kept[m][n + half] : sums.part[m][n + half], left[q][m], b, lane);
      }
    }
  }
}

/// Returns the byte offset of a lane's row of the first four matrices of half a step, which are those of two groups of outputs.
DEVICE int matrix_row(int half, int lane, int group) {
  return lane / 16 * group + (2 * half + lane / 8 % 2) * MATRIX_BYTES + lane % 8 * 16;
}

} // namespace snnc

#endif
