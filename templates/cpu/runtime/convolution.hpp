// Convolutions: every nonzero value adds rows of weights to the windows that contain it; the channels of a position are contiguous.
#ifndef SNNC_CONVOLUTION_HPP
#define SNNC_CONVOLUTION_HPP

#include "parameters.hpp"
#include "windows.hpp"

#include <optional>

namespace snnc {

class Convolution {
public:
  explicit Convolution(const Windows &given);
  /// A convolution of which only maxima over windows (`read`) are read; `target` receives these maxima.
  Convolution(const Windows &given, const Windows &read);
  ~Convolution();

  /// Creates the weight. Stored order of [out][in / groups][kernel]: [in][kernel, each row reversed][outputs of the group, whole lines].
  Parameter weight(const char *name) const;
  /// Allocates the choices of maxima for `steps` steps, as a ring; 0: none.
  void keep(int steps, int samples);

  void forward(const Worker &w, const Source &source, int t, const Parameter &weight, const Parameter *bias, Rows &target, int now,
               Scratch &scratch);

  /// Results of a backward step; null: not needed.
  struct Found {
    float *weight, *bias;
    /// Adjoint of the source and, unless null, lists of the source neurons that receive a gradient.
    Rows *adjoint;
    const Source *near;
  };
  void backward(const Worker &w, const Source &source, int delay, const Rows &delta, int t, const Parameter &weight, const Found &found,
                Scratch &scratch) const;
  /// Allocates the copy that `pack` fills.
  void keep_packed();
  /// Copies the weight for the adjoint of the source; all workers share the work.
  void pack(const Parameter &weight, int worker, int workers);

private:
  const Windows windows;
  std::optional<LineMaximum> maximum;
  /// The copy: [group][output of the group][row of the kernel][tap, channels of the group, whole lines].
  Array<float> packed;

  /// Number of gradients that a row of taps returns, [tap][channel], padded to whole lines.
  std::size_t tap_row() const { return padded(static_cast<std::size_t>(windows.kernel[1] * windows.group_channels())); }
  std::size_t columns() const { return static_cast<std::size_t>(windows.kernel[0]) * tap_row(); }
  /// Whether each row of taps connects a value to adjacent windows, or to none.
  bool regular() const { return windows.stride[0] == 1 && windows.stride[1] == 1 && windows.dilation[1] == 1; }
  Lines lines_of_result() const;
  template <class Add> void for_rows_of_taps(const List &list, const Lines &of, Scratch &scratch, const Add &add) const;
  template <class Add> void for_runs(std::size_t id, const Lines &of, const Add &add) const;
  void near_gradient(const List &near, const Parameter &weight, const Lines &of, const float *lines, float *row) const;
  void input_gradient(const Lines &of, const float *lines, float *row, Scratch &scratch) const;
  void add_back(const float *given, int down, int along, float *back) const;
};

} // namespace snnc

#endif
