// Convolutions: a lane computes a value of the target or source, or a share of the windows of a weight.
#ifndef SNNC_CONVOLUTION_HPP
#define SNNC_CONVOLUTION_HPP

#include "gradients.hpp"

namespace snnc {

/// Windows over [channels][size[0]][size[1]]; tap j of window i reads position i * stride - before + j * dilation.
struct Windows {
  int channels, outputs, groups;
  int size[2], output[2], kernel[2], stride[2], before[2], dilation[2];

  DEVICE int positions() const { return output[0] * output[1]; }
  DEVICE int values() const { return size[0] * size[1]; }
  DEVICE int taps() const { return kernel[0] * kernel[1]; }
  DEVICE int group_channels() const { return channels / groups; }
  DEVICE int group_outputs() const { return outputs / groups; }
  /// Returns the position along an axis that a tap of a window reads; it may be outside the source.
  DEVICE int read(int axis, int window, int tap) const { return window * stride[axis] - before[axis] + tap * dilation[axis]; }
  DEVICE bool inside(int axis, int place) const { return place >= 0 && place < size[axis]; }
  /// Returns the window along an axis whose tap reads a position; -1 if there is none.
  DEVICE int window(int axis, int place, int tap) const {
    const int start = place + before[axis] - tap * dilation[axis], found = start / stride[axis];
    return start < 0 || start % stride[axis] != 0 || found >= output[axis] ? -1 : found;
  }
};

/// Returns value n of the target: the product of weights [out][in / groups][kernel] and its window.
template <class Row> DEVICE float window_sum(const Windows w, int n, const Row &values, const float *weights) {
  const int position = n % w.positions(), output = n / w.positions(), inner = w.group_channels();
  const int y0 = position / w.output[1], x0 = position % w.output[1], first = output / w.group_outputs() * inner;
  float sum = 0;
  for (int c = 0; c < inner; ++c)
    for (int i = 0; i < w.kernel[0]; ++i) {
      const int y = w.read(0, y0, i);
      if (!w.inside(0, y))
        continue;
      const int row = ((first + c) * w.size[0] + y) * w.size[1];
      const float *taps = weights + ((output * inner + c) * w.kernel[0] + i) * w.kernel[1];
      for (int j = 0; j < w.kernel[1]; ++j) {
        const int x = w.read(1, x0, j);
        if (w.inside(1, x))
          sum = fmaf(taps[j], values[row + x], sum);
      }
    }
  return sum;
}

/// Returns the gradient of value n of the source.
template <class Number> DEVICE float window_back(const Windows w, int n, const Number *delta, const float *weights) {
  const int channel = n / w.values(), y = n % w.values() / w.size[1], x = n % w.size[1];
  const int inner = w.group_channels(), outer = w.group_outputs(), first = channel / inner * outer, c = channel % inner;
  float sum = 0;
  for (int o = 0; o < outer; ++o)
    for (int i = 0; i < w.kernel[0]; ++i) {
      const int down = w.window(0, y, i);
      if (down < 0)
        continue;
      const Number *row = delta + ((first + o) * w.output[0] + down) * w.output[1];
      const float *taps = weights + (((first + o) * inner + c) * w.kernel[0] + i) * w.kernel[1];
      for (int j = 0; j < w.kernel[1]; ++j) {
        const int along = w.window(1, x, j);
        if (along >= 0)
          sum = fmaf(taps[j], row[along], sum);
      }
    }
  return sum;
}

/// Computes weight gradients: a warp processes a weight, and its lanes share the windows; row `lead` of the source belongs to row 0 of delta.
template <class Source, class Number> DEVICE void window_gradient(const Windows w, const Source &source, int lead,
                                                                  const Matrix<Number> &delta, int rows, const Slices &to,
                                                                  const Warp &warp) {
  const int positions = w.positions(), inner = w.group_channels();
  for (int at = warp.index; at < to.numbers * to.count; at += warp.count) {
    const int slice = at / to.numbers, weight = at % to.numbers, begin = to.first(slice, rows), end = to.first(slice + 1, rows);
    const int tap = weight % w.taps(), c = weight / w.taps() % inner, output = weight / w.taps() / inner;
    const int channel = output / w.group_outputs() * inner + c;
    float sum = 0;
    for (int position = warp.lane; position < positions; position += LANES) {
      const int y = w.read(0, position / w.output[1], tap / w.kernel[1]), x = w.read(1, position % w.output[1], tap % w.kernel[1]);
      if (!w.inside(0, y) || !w.inside(1, x))
        continue;
      const int from = (channel * w.size[0] + y) * w.size[1] + x, target = output * positions + position;
      for (int row = begin; row < end; ++row)
        sum = fmaf(source.flat(static_cast<std::size_t>(lead + row))[from], delta.row(row)[target], sum);
    }
    sum = warp_sum(sum);
    if (warp.lane == 0)
      to.put(slice, static_cast<std::size_t>(weight), sum);
  }
}

/// Computes the gradient of the bias of each output channel.
template <class Number>
DEVICE void window_bias_gradient(const Windows w, const Matrix<Number> &delta, int rows, const Slices &to, const Warp &warp) {
  const int positions = w.positions();
  for (int at = warp.index; at < w.outputs * to.count; at += warp.count) {
    const int slice = at / w.outputs, output = at % w.outputs, begin = to.first(slice, rows), end = to.first(slice + 1, rows);
    float sum = 0;
    for (int row = begin; row < end; ++row)
      for (int position = warp.lane; position < positions; position += LANES)
        sum += delta.row(row)[output * positions + position];
    sum = warp_sum(sum);
    if (warp.lane == 0)
      to.put(slice, static_cast<std::size_t>(output), sum);
  }
}

} // namespace snnc

#endif
