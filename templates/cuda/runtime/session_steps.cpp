// Forward and backward passes of a session in segments, and training steps.
#include "cuda_session.hpp"

#include <algorithm>

namespace snnc {

void CudaSession::ready(bool trains) {
  take_next();
  for (const Input &input : inputs)
    if (!input.filled)
      throw std::runtime_error("input " + input.name + " was not set after its size changed");
  if (!laid_out || (trains && !training)) {
    training = trains;
    kept = !trains ? most_steps_at_once() : wanted_segment > 0 ? std::min(wanted_segment, steps) : steps;
    // Truncation happens at the ends of segments.
    if (trains && cut_every() > 0)
      for (kept = std::min(kept, cut_every()); cut_every() % kept != 0;)
        --kept;
    lay_out();
    ++layouts;
    for (const std::unique_ptr<Initial> &initial : initials)
      if (segments() > 1)
        initial->checkpoints.resize(static_cast<std::size_t>(segments() * initial->held->kept()) * initial->held->row_words());
    laid_out = stale = true;
    if (resume != 0)
      throw std::runtime_error("there is no sequence to continue; run one first");
  }
  kernels::Moves moves;
  for (const std::unique_ptr<Initial> &initial : initials) {
    if (initial->values->changed)
      fill(*initial);
    begin_rows(*initial->held, initial.get(), moves);
  }
  // Several buffers may have the same initial values.
  for (const std::unique_ptr<Initial> &initial : initials)
    initial->values->changed = false;
  moves.start();
  open_segment(0);
  bind();
  if (stale)
    prepare();
  stale = false;
}

void CudaSession::open_segment(int number) {
  first = number * kept;
  length = std::min(kept, steps - first);
}

void CudaSession::keep(int segment, bool back) {
  for (const std::unique_ptr<Initial> &initial : initials) {
    const std::size_t words = static_cast<std::size_t>(initial->held->kept()) * initial->held->row_words();
    std::uint32_t *aside = initial->checkpoints.data() + static_cast<std::size_t>(segment) * words, *front = initial->held->data.data();
    if (words > 0)
      device::copy(back ? front : aside, back ? aside : front, words * sizeof(std::uint32_t));
  }
}

/// Copies the final values of the last segment, of `by` steps, to the slots before the next segment.
void CudaSession::carry_on(Held &held, int by) {
  for (int t = -held.past; !held.whole && held.slots > 1 && t < 0; ++t)
    device::copy(held.step(t), held.step(t + by), held.row_words() * sizeof(std::uint32_t));
}

void CudaSession::forward_pass() {
  for (int number = 0; number < segments(); ++number) {
    open_segment(number);
    for (const std::unique_ptr<Initial> &initial : initials)
      if (number > 0)
        carry_on(*initial->held, kept);
    if (segments() > 1)
      keep(number, false);
    bind();
    forward();
  }
  // The flags have not been read yet: results of an invalid input are set to NaN.
  const bool unseen = streams && std::any_of(inputs.begin(), inputs.end(), [](const Input &input) { return input.held->bits; });
  for (Held *record : unseen ? records : std::vector<Held *>())
    kernels::spoil(flags.data(), static_cast<int>(flags.size()), reinterpret_cast<float *>(record->data.data()),
                   static_cast<int>(record->data.size()));
}

void CudaSession::backward_pass() {
  kernels::Moves moves;
  begin_adjoints(moves);
  moves.start();
  for (int number = segments() - 1; number >= 0; --number) {
    open_segment(number);
    if (is_cut()) {
      forget_later(moves);
      moves.start();
    }
    if (!last_segment()) {
      keep(number, true);
      // Before the sums of this segment take the room of its deltas. Later steps first: what is read lies in front of what is written.
      for (const Deltas &some : deltas)
        for (int t = some.ahead - 1; t >= 0; --t)
          device::copy(some.held->step(length + t), some.held->step(t), some.held->row_words() * sizeof(std::uint32_t));
      again = true;
      bind();
      forward();
      again = false;
    }
    bind();
    backward();
  }
}

void CudaSession::run() {
  const double start = now();
  const device::Place here(device_number, stream);
  ready(autograd != 0);
  forward_pass();
  ran = autograd != 0;
  send_next();
  if (!streams) {
    device::finish();
    check_spikes();
  }
  ++forward_runs;
  seconds += now() - start;
}

float CudaSession::train_step() {
  check_trainable();
  const double start = now();
  const device::Place here(device_number, stream);
  if (autograd != 0) {
    if (!ran)
      throw std::runtime_error("no forward run precedes this backward pass; run the sequence with autograd first");
    ran = false;
    backward_pass();
    if (!streams)
      device::finish();
    ++train_runs;
    seconds += now() - start;
    return loss = 0;
  }
  if (gather == CHANGES) {
    change_parameters();
    device::finish();
    seconds += now() - start;
    return loss;
  }
  // An invalid input must not affect the parameters; the host waits for the loss in any case.
  if (streams)
    device::finish();
  check_spikes();
  for (Parameter *parameter : learned)
    parameter->summed = false;
  ready(true);
  losses.make_room(static_cast<std::size_t>(loss_numbers()));
  const auto passes = [this] {
    forward_pass();
    find_loss();
    backward_pass();
  };
  // Events that are recorded in a graph have no times.
  if (time_kernels != 0) {
    times.start();
    passes();
  } else {
    times.stop();
    replay.run({layouts, static_cast<std::size_t>(resume), static_cast<std::size_t>(averaged()), streams ? 1u : 0u}, passes);
  }
  if (gather == ALONE)
    change_parameters();
  else
    sum_gradients();
  send_next();
  std::vector<float> shares(losses.size());
  losses.get(shares.data(), shares.size());
  times.finish(kernels());
  try {
    check_spikes();
  } catch (const std::invalid_argument &) {
    // The update also saw the flag, and did not change the parameters.
    updates -= gather == ALONE ? 1 : 0;
    throw;
  }
  sum_losses(shares);
  ++train_runs;
  seconds += now() - start;
  return loss;
}

void CudaSession::sum_gradients() {
  for (Parameter *parameter : learned) {
    if (parameter->sum.size() != parameter->numbers)
      parameter->sum.resize(parameter->numbers);
    add_gradient(*parameter, gather == GOES_ON);
    parameter->summed = true;
  }
}

void CudaSession::change_parameters() {
  ++updates;
  update();
  stale = true;
}

} // namespace snnc
