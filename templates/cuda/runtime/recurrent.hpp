// A population with a dense recurrence, in one pass: run by a core that keeps the weights on chip, or like other feedbacks.
#ifndef SNNC_RECURRENT_HPP
#define SNNC_RECURRENT_HPP

#include "feedback.hpp"
#include "recurrent_core.hpp"

namespace snnc {

template <class Net> class Recurrent {
public:
  /// `otherwise` runs the population, forward or `backward`, if the core cannot.
  Recurrent(CoreShapes<Net> shapes, Feedback<Net> &otherwise, bool backward) : core(shapes), feedback(otherwise), back(backward) {}

  /// `wanted`: uses a core if the device has room for it.
  void lay_out(int batch, bool wanted) { on_chip = wanted && core.choose(batch); }

  void run(const Net &net, const Run &run) {
    if (on_chip)
      core.run(net, run);
    else if (back)
      feedback.backward(net, run);
    else
      feedback.forward(net, run);
  }

  bool is_on_chip() const { return on_chip; }
  std::string text() const { return on_chip ? core.text() : "teams of blocks"; }

private:
  RecurrentCore<Net> core;
  Feedback<Net> &feedback;
  const bool back;
  bool on_chip = false;
};

} // namespace snnc

#endif
