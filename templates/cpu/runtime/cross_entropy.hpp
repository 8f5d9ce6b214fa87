// Softmax cross entropy of one row of scores.
#ifndef SNNC_CROSS_ENTROPY_HPP
#define SNNC_CROSS_ENTROPY_HPP

#include <cmath>
#include <cstddef>

namespace snnc {

/// Returns the cross entropy; replaces `scores` by share * (softmax - one-hot label).
inline double cross_entropy(double *scores, std::size_t classes, std::size_t label, double share) {
  double highest = scores[0], sum = 0;
  for (std::size_t c = 1; c < classes; ++c)
    highest = scores[c] > highest ? scores[c] : highest;
  for (std::size_t c = 0; c < classes; ++c)
    sum += std::exp(scores[c] - highest);
  const double loss = std::log(sum) - (scores[label] - highest);
  for (std::size_t c = 0; c < classes; ++c)
    scores[c] = share * (std::exp(scores[c] - highest) / sum - (c == label ? 1.0 : 0.0));
  return loss;
}

} // namespace snnc

#endif
