// A population with a dense recurrence, in one pass: run by a core that keeps the weights on chip, or like other feedbacks.
#ifndef SNNC_RECURRENT_HPP
#define SNNC_RECURRENT_HPP

#include "feedback.hpp"
#include "recurrent_core.cuh"

namespace snnc {

template <class Way> class Recurrent {
public:
  using Net = typename Way::Net;

  /// `wanted`: uses a core if the device has room for it.
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
