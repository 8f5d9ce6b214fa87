// A population with a recurrence of its own, one way through time: by a core that keeps its weights on chip, or as other feedbacks run.
#ifndef SNNC_RECURRENT_HPP
#define SNNC_RECURRENT_HPP

#include "feedback.hpp"
#include "recurrent_core.cuh"

namespace snnc {

template <class Way> class Recurrent {
public:
  using Net = typename Way::Net;

  /// `wanted`: a core runs where the device has room for one.
  void lay_out(int batch, bool wanted) { on_chip = wanted && core.choose(batch); }

  void run(const Net &net, const Run &run, Feedback<Net> &otherwise) {
    if (on_chip)
      core.run(net, run);
    else if (Way::BACK)
      otherwise.backward(net, run);
    else
      otherwise.forward(net, run);
  }

  bool is_on_chip() const { return on_chip; }
  std::string text() const { return on_chip ? core.text() : "teams of blocks"; }

private:
  RecurrentCore<Way> core;
  bool on_chip = false;
};

} // namespace snnc

#endif
