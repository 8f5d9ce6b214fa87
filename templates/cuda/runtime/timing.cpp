#include "timing.hpp"

namespace snnc {
namespace device {

KernelTimes::KernelTimes() = default;
KernelTimes::~KernelTimes() = default;

void KernelTimes::mark(int kernel) {
  if (used == marks.size())
    marks.emplace_back(0, std::make_unique<Moment>());
  marks[used].first = kernel;
  marks[used++].second->record();
}

void KernelTimes::finish(int kernels) {
  if (!std::exchange(runs, false) || used == 0)
    return;
  sums.resize(static_cast<std::size_t>(kernels), -1);
  marks[used - 1].second->wait();
  for (std::size_t i = 0; i + 1 < used; ++i)
    if (marks[i].first >= 0) {
      double &sum = sums[static_cast<std::size_t>(marks[i].first)];
      sum = (sum < 0 ? 0 : sum) + marks[i + 1].second->seconds_after(*marks[i].second);
    }
  ++steps;
}

std::string KernelTimes::text() const {
  if (steps == 0)
    return {};
  std::string found = ", \"timed_steps\": " + std::to_string(steps) + ", \"kernel_us\": [";
  for (std::size_t i = 0; i < sums.size(); ++i)
    found += (i == 0 ? "" : ", ") + (sums[i] < 0 ? std::string("null") : std::to_string(1e6 * sums[i] / steps));
  return found + "]";
}

} // namespace device
} // namespace snnc
