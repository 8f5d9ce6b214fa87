// The kinds of pooling.
#ifndef SNNC_POPNN_POOLING_DEF_HPP
#define SNNC_POPNN_POOLING_DEF_HPP
namespace popnn {
enum class PoolingType { MAX, AVG, SUM };
}
#endif
