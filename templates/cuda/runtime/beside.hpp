// A second stream for kernels that can run while a kernel of the pass leaves multiprocessors idle.
#ifndef SNNC_BESIDE_HPP
#define SNNC_BESIDE_HPP

#include "uploads.hpp"

namespace snnc {
namespace device {

class Beside {
public:
  /// Work that is started with run() may begin after all kernels that were started before this call.
  void mark() { marked.record(stream()); }

  /// Starts the kernels of `work` in the second stream or, if `alone`, in the current one.
  template <class Work> void run(bool alone, const Work &work) {
    if (alone)
      return work();
    marked.hold(own.get());
    {
      const Place here(current(), own.get());
      work();
    }
    ended.record(own.get());
    open = true;
  }

  /// Kernels that are started after this call wait for those in the second stream.
  void join() {
    if (open)
      ended.hold(stream());
    open = false;
  }

private:
  OwnStream own;
  Event marked, ended;
  bool open = false;
};

} // namespace device
} // namespace snnc

#endif
