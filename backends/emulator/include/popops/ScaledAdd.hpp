// Sums of scaled tensors, in place.
#ifndef SNNC_POPOPS_SCALED_ADD_HPP
#define SNNC_POPOPS_SCALED_ADD_HPP
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>
namespace popops {
/// A += scaleB * B
void scaledAddTo(poplar::Graph &graph, poplar::Tensor A, poplar::Tensor B, float scaleB, poplar::program::Sequence &prog,
                 const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void scaledAddTo(poplar::Graph &graph, poplar::Tensor A, poplar::Tensor B, poplar::Tensor scaleB, poplar::program::Sequence &prog,
                 const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// A = scaleA * A + scaleB * B
void scaledAddTo(poplar::Graph &graph, poplar::Tensor A, float scaleA, poplar::Tensor B, float scaleB, poplar::program::Sequence &prog,
                 const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void scaledAddTo(poplar::Graph &graph, poplar::Tensor A, poplar::Tensor scaleA, poplar::Tensor B, poplar::Tensor scaleB,
                 poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// The factor of A: scaleA, or 1 - scaleA.
enum class ScaledAddSpecialisation { DEFAULT, X_MINUS_AX_PLUS_BY };
void scaledAddTo(poplar::Graph &graph, poplar::Tensor A, float scaleA, poplar::Tensor B, float scaleB, poplar::program::Sequence &prog,
                 ScaledAddSpecialisation speciality, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void scaledAddTo(poplar::Graph &graph, poplar::Tensor A, poplar::Tensor scaleA, poplar::Tensor B, poplar::Tensor scaleB,
                 poplar::program::Sequence &prog, ScaledAddSpecialisation speciality, const poplar::DebugContext &context = {},
                 const poplar::OptionFlags &options = {});
/// A = scaleA * A - scaleB * B
void scaledSubtractFrom(poplar::Graph &graph, poplar::Tensor A, float scaleA, poplar::Tensor B, float scaleB, poplar::program::Sequence &prog,
                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void scaledSubtractFrom(poplar::Graph &graph, poplar::Tensor A, poplar::Tensor scaleA, poplar::Tensor B, poplar::Tensor scaleB,
                        poplar::program::Sequence &prog, const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
/// A -= scaleB * B
void scaledSubtractFrom(poplar::Graph &graph, poplar::Tensor A, poplar::Tensor B, float scaleB, poplar::program::Sequence &prog,
                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
void scaledSubtractFrom(poplar::Graph &graph, poplar::Tensor A, poplar::Tensor B, poplar::Tensor scaleB, poplar::program::Sequence &prog,
                        const poplar::DebugContext &context = {}, const poplar::OptionFlags &options = {});
} // namespace popops
#endif
