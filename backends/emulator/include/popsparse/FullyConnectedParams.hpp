// Sizes of a fully connected layer whose weights are sparse.
#ifndef SNNC_POPSPARSE_FULLY_CONNECTED_PARAMS_HPP
#define SNNC_POPSPARSE_FULLY_CONNECTED_PARAMS_HPP
#include <ostream>
#include <tuple>
#include <popsparse/SparsityParams.hpp>
namespace popsparse {
namespace dynamic {
class FullyConnectedParams {
public:
  static FullyConnectedParams createWithNzRatio(const SparsityParams &sparsity, double nzRatio, std::size_t batchSize,
                                                std::size_t numGroups, std::size_t inputChannels, std::size_t outputChannels);
  static FullyConnectedParams createWithNumNonZeroValues(const SparsityParams &sparsity, std::size_t values, std::size_t batchSize,
                                                         std::size_t numGroups, std::size_t inputChannels, std::size_t outputChannels);
  std::size_t getBatchSize() const { return batch_; }
  std::size_t getNumGroups() const { return groups_; }
  std::size_t getInputChannels() const { return groups_ * in_; }
  std::size_t getOutputChannels() const { return groups_ * out_; }
  std::size_t getInputChannelsPerGroup() const { return in_; }
  std::size_t getOutputChannelsPerGroup() const { return out_; }
  const SparsityParams &getSparsityParams() const { return sparsity_; }
  double getNzRatio() const { return double(values_) / double(groups_ * in_ * out_); }
  std::size_t getNumNonZeroValues() const { return values_; }
  friend bool operator<(const FullyConnectedParams &a, const FullyConnectedParams &b) { return a.all() < b.all(); }
  friend bool operator==(const FullyConnectedParams &a, const FullyConnectedParams &b) { return a.all() == b.all(); }
  friend bool operator!=(const FullyConnectedParams &a, const FullyConnectedParams &b) { return !(a == b); }
  friend std::ostream &operator<<(std::ostream &os, const FullyConnectedParams &p) {
    return os << "{sparsity: " << p.sparsity_ << ", values: " << p.values_ << ", batch: " << p.batch_ << ", groups: " << p.groups_
              << ", in: " << p.in_ << ", out: " << p.out_ << "}";
  }

private:
  std::tuple<std::array<std::size_t, 2>, std::size_t, std::size_t, std::size_t, std::size_t, std::size_t> all() const {
    return {sparsity_.blockDimensions, values_, batch_, groups_, in_, out_};
  }
  SparsityParams sparsity_;
  std::size_t values_ = 0, batch_ = 0, groups_ = 1, in_ = 0, out_ = 0;
};
} // namespace dynamic
} // namespace popsparse
#endif
