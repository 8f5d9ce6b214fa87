// Data that replicas receive from one stream.
#ifndef SNNC_POPLAR_REPLICATED_STREAM_MODE_HPP
#define SNNC_POPLAR_REPLICATED_STREAM_MODE_HPP
namespace poplar {
/// REPLICATE: each its own part. BROADCAST: all the same.
enum class ReplicatedStreamMode { REPLICATE, BROADCAST };
}
#endif
