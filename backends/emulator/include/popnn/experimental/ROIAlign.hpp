// Regions of images, resampled to one size.
#ifndef SNNC_POPNN_EXPERIMENTAL_ROI_ALIGN_HPP
#define SNNC_POPNN_EXPERIMENTAL_ROI_ALIGN_HPP
#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
namespace popnn {
namespace experimental {

/// Each element of the result is the mean of samplingRatio² bilinear interpolations in its part of the region. With `aligned`, a pixel's
/// value is that at its centre, half a pixel from its corner; otherwise a region has a height and width of at least 1.
struct roiAlignParams {
  unsigned long samplingRatio_, alignedHeight_, alignedWidth_;
  bool aligned_;
  float spatialScale_;
  roiAlignParams(unsigned long samplingRatio, unsigned long poolH, unsigned long poolW, bool aligned, float spatialScale)
      : samplingRatio_(samplingRatio), alignedHeight_(poolH), alignedWidth_(poolW), aligned_(aligned), spatialScale_(spatialScale) {}
};

/// [regions, channels, alignedHeight, alignedWidth]
///
/// bottomData: [images, channels, height, width]; bottomRois: [regions, 4], x and y of two corners, multiplied by spatialScale;
/// bottomBatchIndex: [regions], the image of each region.
poplar::Tensor roiAlignFwd(poplar::Graph &graph, poplar::program::Sequence &prog, const poplar::Tensor &bottomData,
                           const poplar::Tensor &bottomRois, const poplar::Tensor &bottomBatchIndex, const roiAlignParams &params,
                           const poplar::DebugContext &context = {});
/// [images, channels, height, width], for gradients of the result (topDataGrad).
poplar::Tensor roiAlignInputGradient(poplar::Graph &graph, poplar::program::Sequence &prog, const poplar::Tensor &bottomData,
                                     const poplar::Tensor &bottomRois, const poplar::Tensor &bottomBatchIndex,
                                     const poplar::Tensor &topDataGrad, const roiAlignParams &params,
                                     const poplar::DebugContext &context = {});

} // namespace experimental
} // namespace popnn
#endif
