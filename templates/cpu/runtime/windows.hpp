// Windows over [channels][height][width], and the layout of lines for convolutions, in which the channels of a position are contiguous.
#ifndef SNNC_WINDOWS_HPP
#define SNNC_WINDOWS_HPP

#include "values.hpp"

namespace snnc {

/// Windows over [channels][size[0]][size[1]]; tap j of window i reads position i * stride - before + j * dilation.
struct Windows {
  int channels, outputs, groups;
  int size[2], output[2], kernel[2], stride[2], before[2], dilation[2];

  int positions() const { return output[0] * output[1]; }
  int values() const { return size[0] * size[1]; }
  int taps() const { return kernel[0] * kernel[1]; }
  /// Channels that a group reads, and channels that it writes, padded to whole lines.
  int group_channels() const { return channels / groups; }
  int group_outputs() const { return outputs / groups; }
  std::size_t line() const { return padded(static_cast<std::size_t>(group_outputs())); }
};

/// Lines [group][row][position of the row][channels of the group, padded to whole cache lines]. `margin` lines of zeros are before
/// each row and after the last one, so that runs may begin and end outside; before the first row there is space for `above` unread rows.
struct Lines {
  std::size_t groups, channels, rows, across, margin = 0, above = 0;

  std::size_t line() const { return padded(channels); }
  std::size_t positions() const { return rows * across; }
  /// Number of lines from one row to the next.
  std::size_t pitch() const { return across + margin; }
  std::size_t group_numbers() const { return ((above + rows) * pitch() + margin) * line(); }
  std::size_t numbers() const { return groups * group_numbers(); }
  /// Index of the first element at the first position of a row.
  std::size_t at(std::size_t group, std::size_t row) const { return group * group_numbers() + ((above + row) * pitch() + margin) * line(); }
  void clear_margins(float *lines) const;
  /// Transposes values [channel][position] to lines.
  void from_row(const float *row, float *lines) const;
  /// Adds lines and, unless null, a value per channel (`each`) to values [channel][position].
  void add_to_row(const float *lines, const float *each, float *row) const;
  /// Adds the sum of each channel over all positions to gradient[channel]; `sums` has space for a line.
  void add_sums(const float *lines, float *gradient, float *sums) const;
};

/// Maxima over windows of lines; the choice of each window is stored in a byte for the backward pass.
class LineMaximum {
public:
  explicit LineMaximum(const Windows &given);

  Lines made() const { return {whole(windows.groups), whole(windows.group_outputs()), whole(windows.output[0]), whole(windows.output[1])}; }
  /// Allocates the choices of `steps` steps for the adjoint, as a ring; 0: none.
  void keep(int steps, int samples);
  /// Computes the maxima of lines; unless null, `each` (one value per channel) is added first.
  void forward(const Lines &taken, const float *lines, const float *each, float *maxima, int t, int sample);
  /// Sets lines to the adjoint of the maxima at the chosen positions, and to 0 elsewhere.
  void backward(const float *maxima, const Lines &taken, float *lines, int t, int sample) const;

private:
  const Windows windows;
  int slots = 0, batch = 0;
  Array<std::uint8_t> choices;

  static std::size_t whole(int n) { return static_cast<std::size_t>(n); }
  std::size_t at(int t, int sample) const { return (whole(t % slots) * whole(batch) + whole(sample)) * made().numbers(); }
  /// Whether each position is in exactly one window, and no window overlaps the padding.
  bool tiles() const;
  /// A tap of a window: its index, and the distance of its line from the line of the first tap.
  struct Tap {
    std::uint8_t number;
    std::uint32_t behind;
  };
  template <class Work> void for_windows(const Lines &taken, const Work &work) const;
};

} // namespace snnc

#endif
