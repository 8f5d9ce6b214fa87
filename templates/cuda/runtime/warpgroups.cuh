// Warpgroup products of sm_90: four warps multiply 64 rows in registers with 128 columns in shared memory, asynchronously.
#ifndef SNNC_WARPGROUPS_CUH
#define SNNC_WARPGROUPS_CUH

#include "whole_tiles.cuh"

#if defined(SNNC_ON_HOST) || defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SNNC_HAS_WARPGROUPS 1
#else
#define SNNC_HAS_WARPGROUPS 0
#endif

namespace snnc {

/// Columns of a warpgroup product.
constexpr int GROUP_COLUMNS = 128;
/// The sums of a warp: 16 of the 64 rows.
using GroupShare = Shares<1, GROUP_COLUMNS>;

#if defined(SNNC_ON_HOST)

inline void begin_products() {}
inline void end_of_products() { host::end_group(host::Pending::PRODUCTS); }
template <int LATER> void wait_for_products() { host::wait_for_groups(host::Pending::PRODUCTS, LATER); }
/// Makes earlier stores to shared memory visible to tensor cores after the next barrier.
inline void show_stored() {}
#if defined(SNNC_WRONG_GROUPS)
/// For a test of the trial, which must detect wrong products: rows and columns of matrices are exchanged.
constexpr bool EXCHANGED = true;
#else
constexpr bool EXCHANGED = false;
#endif

/// The product of a lane: rows of A, which have left the registers, and B in shared memory, which is read when the product is computed.
template <class Half, bool TURNED> struct GroupProduct {
  float rows[2][16], (*d)[4];
  Place16 b;
  int group, column;
  bool add;

  void operator()() const {
    for (int n = 0; n < 16; ++n)
      for (int i = 0; i < 4; ++i) {
        float sum = add ? d[n][i] : 0.0f;
        for (int k = 0; k < 16; ++k) {
          const int c = column + i % 2;
          std::uint16_t bits;
          std::memcpy(&bits, b + n * group + k / 8 * MATRIX_BYTES + (TURNED != EXCHANGED ? k % 8 * 16 + c * 2 : c * 16 + k % 8 * 2), 2);
          sum = fmaf(rows[i / 2][k], Half::number(bits), sum);
        }
        d[n][i] = sum;
      }
  }
};

/// Adds A [16][16] (of this warp) times B [16][128], whose groups of 8 columns are `group` bytes apart and groups of 8 depths MATRIX_BYTES.
/// `TURNED`: a row of 16 bytes has 8 columns of a depth, else 8 depths of a column. `add`: adds to the sums, else overwrites them.
template <class Half, bool TURNED> void multiply_group(float (&d)[16][4], const std::uint32_t (&a)[4], Place16 b, int group, bool add) {
  const int lane = thread_index() % LANES, row = lane / 4 * 4;
  GroupProduct<Half, TURNED> product{{}, d, b, group, lane % 4 * 2, add};
  for (int half = 0; half < 2; ++half) {
    const std::uint64_t *all = host::exchange(a[2 * half] | static_cast<std::uint64_t>(a[2 * half + 1]) << 32);
    for (int part = 0; part < 4; ++part)
      for (int lower = 0; lower < 2; ++lower) {
        const std::uint32_t pair = static_cast<std::uint32_t>(all[row + part] >> (32 * lower));
        product.rows[lower][8 * half + 2 * part] = Half::number(pair & 0xffffu);
        product.rows[lower][8 * half + 2 * part + 1] = Half::number(pair >> 16);
      }
  }
  host::start(host::Pending::PRODUCTS, product);
}

#elif SNNC_HAS_WARPGROUPS

/// Orders earlier writes to registers of sums and fragments before the products.
DEVICE void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
DEVICE void end_of_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
/// Waits for all products of the warps except those of the last LATER groups.
template <int LATER> DEVICE void wait_for_products() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LATER) : "memory"); }
DEVICE void show_stored() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

#define SNNC_MULTIPLY_GROUP(TYPE, TURNED_TEXT)                                                                                             \
  asm volatile("{\n"                                                                                                                       \
               ".reg .pred more;\n"                                                                                                        \
               "setp.ne.b32 more, %69, 0;\n"                                                                                               \
               "wgmma.mma_async.sync.aligned.m64n128k16.f32." TYPE "." TYPE " "                                                            \
               "{ %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                                  \
               "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                                          \
               "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                                          \
               "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63 }, "                                        \
               "{ %64, %65, %66, %67 }, %68, more, 1, 1, " TURNED_TEXT ";\n"                                                               \
               "}\n"                                                                                                                       \
               : "+f"(d[0][0]), "+f"(d[0][1]), "+f"(d[0][2]), "+f"(d[0][3]), "+f"(d[1][0]), "+f"(d[1][1]), "+f"(d[1][2]), "+f"(d[1][3]),   \
                 "+f"(d[2][0]), "+f"(d[2][1]), "+f"(d[2][2]), "+f"(d[2][3]), "+f"(d[3][0]), "+f"(d[3][1]), "+f"(d[3][2]), "+f"(d[3][3]),   \
                 "+f"(d[4][0]), "+f"(d[4][1]), "+f"(d[4][2]), "+f"(d[4][3]), "+f"(d[5][0]), "+f"(d[5][1]), "+f"(d[5][2]), "+f"(d[5][3]),   \
                 "+f"(d[6][0]), "+f"(d[6][1]), "+f"(d[6][2]), "+f"(d[6][3]), "+f"(d[7][0]), "+f"(d[7][1]), "+f"(d[7][2]), "+f"(d[7][3]),   \
                 "+f"(d[8][0]), "+f"(d[8][1]), "+f"(d[8][2]), "+f"(d[8][3]), "+f"(d[9][0]), "+f"(d[9][1]), "+f"(d[9][2]), "+f"(d[9][3]),   \
                 "+f"(d[10][0]), "+f"(d[10][1]), "+f"(d[10][2]), "+f"(d[10][3]), "+f"(d[11][0]), "+f"(d[11][1]), "+f"(d[11][2]),           \
                 "+f"(d[11][3]), "+f"(d[12][0]), "+f"(d[12][1]), "+f"(d[12][2]), "+f"(d[12][3]), "+f"(d[13][0]), "+f"(d[13][1]),           \
                 "+f"(d[13][2]), "+f"(d[13][3]), "+f"(d[14][0]), "+f"(d[14][1]), "+f"(d[14][2]), "+f"(d[14][3]), "+f"(d[15][0]),           \
                 "+f"(d[15][1]), "+f"(d[15][2]), "+f"(d[15][3])                                                                            \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(place), "r"(static_cast<int>(add)))

template <class Half, bool TURNED>
DEVICE void multiply_group(float (&d)[16][4], const std::uint32_t (&a)[4], Place16 b, int group, bool add) {
  const std::uint64_t place = static_cast<std::uint64_t>((b & 0x3ffffu) >> 4) | static_cast<std::uint64_t>(MATRIX_BYTES >> 4) << 16 |
                              static_cast<std::uint64_t>(group >> 4) << 32;
  if constexpr (Half::NARROW)
    SNNC_MULTIPLY_GROUP("f16", "0");
  else if constexpr (TURNED)
    SNNC_MULTIPLY_GROUP("bf16", "1");
  else
    SNNC_MULTIPLY_GROUP("bf16", "0");
}

#endif

} // namespace snnc

#endif
