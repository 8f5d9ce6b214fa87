// Barriers.
#ifndef SNNC_POPLAR_SYNC_TYPE_HPP
#define SNNC_POPLAR_SYNC_TYPE_HPP
namespace poplar {
enum class SyncType { INTERNAL, EXTERNAL, GLOBAL };
}
#endif
