#ifndef SNNC_POPSPARSE_EXPERIMENTAL_BLOCK_SPARSE_HPP
#define SNNC_POPSPARSE_EXPERIMENTAL_BLOCK_SPARSE_HPP
namespace popsparse {
namespace experimental {
/// Which elements of blocks are zero in addition. The emulator accepts only None.
enum class SubBlockMask { None, ZeroUpperTriangle, ZeroLowerTriangle };
} // namespace experimental
} // namespace popsparse
#endif
