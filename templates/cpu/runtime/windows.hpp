// Windows over [channels][height][width], and the lines that convolutions compute with: channels of a position side by side.
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
  /// Channels that one group reads and writes; the latter fill whole lines.
  int group_channels() const { return channels / groups; }
  int group_outputs() const { return outputs / groups; }
  std::size_t line() const { return padded(static_cast<std::size_t>(group_outputs())); }
};

/// Lines [group][row][position of the row][channels of the group, filled up to whole cache lines]. `margin` lines, which are 0, stand before
/// each row and behind the last one, so that runs may begin and end outside; before the first row is room for `above` rows that no one reads.
struct Lines {
  std::size_t groups, channels, rows, across, margin = 0, above = 0;

  std::size_t line() const { return padded(channels); }
  std::size_t positions() const { return rows * across; }
  /// Lines from one row to the next.
  std::size_t pitch() const { return across + margin; }
  std::size_t group_numbers() const { return ((above + rows) * pitch() + margin) * line(); }
  std::size_t numbers() const { return groups * group_numbers(); }
  /// First number of a row's first position.
  std::size_t at(std::size_t group, std::size_t row) const { return group * group_numbers() + ((above + row) * pitch() + margin) * line(); }
  void clear_margins(float *lines) const;
  /// Turns numbers [channel][position] into lines.
  void from_row(const float *row, float *lines) const;
  /// Adds lines, and a number for each channel unless null, to numbers [channel][position].
  void add_to_row(const float *lines, const float *each, float *row) const;
  /// gradient[channel] += the sum of the channel over all positions; `sums` has room for a line.
  void add_sums(const float *lines, float *gradient, float *sums) const;
};

/// Maxima over windows of lines: what the windows chose is kept, a byte each, for the way back.
class LineMaximum {
public:
  explicit LineMaximum(const Windows &given);

  Lines made() const { return {whole(windows.groups), whole(windows.group_outputs()), whole(windows.output[0]), whole(windows.output[1])}; }
  /// Keeps what was chosen at so many steps, used in turn, for the adjoint; 0: at none.
  void keep(int steps, int samples);
  /// Maxima of lines, to each number of which `each` (by channel) is added first unless it is null.
  void forward(const Lines &taken, const float *lines, const float *each, float *maxima, int t, int sample);
  /// lines = the adjoint of the maxima where they were chosen, else 0.
  void backward(const float *maxima, const Lines &taken, float *lines, int t, int sample) const;

private:
  const Windows windows;
  int slots = 0, batch = 0;
  Array<std::uint8_t> choices;

  static std::size_t whole(int n) { return static_cast<std::size_t>(n); }
  std::size_t at(int t, int sample) const { return (whole(t % slots) * whole(batch) + whole(sample)) * made().numbers(); }
  /// Whether each position lies in one window, and each tap of a window in the lines.
  bool tiles() const;
  /// A tap of a window: its number, and how far behind the window's first tap it has its line.
  struct Tap {
    std::uint8_t number;
    std::uint32_t behind;
  };
  template <class Work> void for_windows(const Lines &taken, const Work &work) const;
};

} // namespace snnc

#endif
