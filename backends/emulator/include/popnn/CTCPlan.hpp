// The plan of a connectionist temporal classification: the emulator always works sample by sample, so it contains only the sizes.
#ifndef SNNC_POPNN_CTC_PLAN_HPP
#define SNNC_POPNN_CTC_PLAN_HPP

#include <ostream>
#include <string>
#include <tuple>

#include <poputil/DebugInfo.hpp>

namespace popnn {
namespace ctc {

class Plan {
public:
  Plan() = default;
  /// Internal to the emulator.
  Plan(unsigned batch, unsigned time, unsigned labels, unsigned classes) : sizes_(batch, time, labels, classes) {}
  friend bool operator<(const Plan &a, const Plan &b) { return a.sizes_ < b.sizes_; }
  friend bool operator==(const Plan &a, const Plan &b) { return a.sizes_ == b.sizes_; }
  friend bool operator!=(const Plan &a, const Plan &b) { return !(a == b); }
  friend std::ostream &operator<<(std::ostream &stream, const Plan &plan) {
    return stream << "CTC plan: batch " << std::get<0>(plan.sizes_) << ", time " << std::get<1>(plan.sizes_) << ", labels "
                  << std::get<2>(plan.sizes_) << ", classes " << std::get<3>(plan.sizes_) << "\n";
  }

private:
  std::tuple<unsigned, unsigned, unsigned, unsigned> sizes_;
};

} // namespace ctc
} // namespace popnn

#endif
