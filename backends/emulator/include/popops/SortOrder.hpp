// The order in which results are sorted.
#ifndef SNNC_POPOPS_SORT_ORDER_HPP
#define SNNC_POPOPS_SORT_ORDER_HPP
namespace popops {
enum class SortOrder { NONE, ASCENDING, DESCENDING };
}
#endif
