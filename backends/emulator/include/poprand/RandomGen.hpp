// Random tensors. The sequence is the emulator's own: a program may rely on distributions and reproducibility, not on values.
#ifndef SNNC_POPRAND_RANDOM_GEN_HPP
#define SNNC_POPRAND_RANDOM_GEN_HPP
#include <cstdint>
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
namespace poprand {
/// `masterSeed`: UNSIGNED_INT {2}, or null. Returns a tensor with the shape and mapping of `reference`.
poplar::Tensor uniform(poplar::Graph &graph, const poplar::Tensor *masterSeed, std::uint32_t seedModifier, const poplar::Tensor &reference,
                       const poplar::Type &outType, double minVal, double maxVal, poplar::program::Sequence &prog,
                       const poplar::DebugContext &context = {});
poplar::Tensor normal(poplar::Graph &graph, const poplar::Tensor *masterSeed, std::uint32_t seedModifier, const poplar::Tensor &reference,
                      const poplar::Type &outType, double mean, double stdDev, poplar::program::Sequence &prog,
                      const poplar::DebugContext &context = {});
/// Normally distributed numbers; those farther than `alpha` standard deviations from the mean are drawn again.
poplar::Tensor truncatedNormal(poplar::Graph &graph, const poplar::Tensor *masterSeed, std::uint32_t seedModifier,
                               const poplar::Tensor &reference, const poplar::Type &outType, double mean, double stdDev, double alpha,
                               poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
/// 1 with probability `prob`, otherwise 0.
poplar::Tensor bernoulli(poplar::Graph &graph, const poplar::Tensor *masterSeed, std::uint32_t seedModifier, const poplar::Tensor &reference,
                         const poplar::Type &outType, double prob, poplar::program::Sequence &prog, const poplar::DebugContext &context = {});
/// Elements are kept with `keepProbability` and then multiplied by `scale`.
poplar::Tensor dropout(poplar::Graph &graph, const poplar::Tensor *masterSeed, std::uint32_t seedModifier, const poplar::Tensor &in,
                       const poplar::Tensor &reference, double keepProbability, double scale, poplar::program::Sequence &prog,
                       const poplar::DebugContext &context = {});
/// The result is mapped like the reference; the flag `outputClonesRef` is ignored.
inline poplar::Tensor dropout(poplar::Graph &graph, const poplar::Tensor *masterSeed, std::uint32_t seedModifier, const poplar::Tensor &in,
                              const poplar::Tensor &reference, double keepProbability, double scale, bool, poplar::program::Sequence &prog,
                              const poplar::DebugContext &context = {}) {
  return dropout(graph, masterSeed, seedModifier, in, reference, keepProbability, scale, prog, context);
}
/// Keeps or drops together all elements of the input to which one element of `reference` is broadcast.
poplar::Tensor shapedDropout(poplar::Graph &graph, const poplar::Tensor *masterSeed, std::uint32_t seedModifier, const poplar::Tensor &in,
                             const poplar::Tensor &reference, double keepProbability, double scale, poplar::program::Sequence &prog,
                             const poplar::DebugContext &context = {});
/// Numbers whose logarithm is uniformly distributed.
poplar::Tensor logUniform(poplar::Graph &graph, const poplar::Tensor *masterSeed, std::uint32_t seedModifier, const poplar::Tensor &reference,
                          const poplar::Type &outType, double minVal, double maxVal, poplar::program::Sequence &prog,
                          double base = 2.718281828459045, const poplar::DebugContext &context = {});
/// Has no effect: every call has its own sequence.
void setSeed(poplar::Graph &graph, const poplar::Tensor &masterSeed, std::uint32_t seedModifier, poplar::program::Sequence &prog,
             const poplar::DebugContext &context = {});
} // namespace poprand
#endif
