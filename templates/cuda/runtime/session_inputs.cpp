// Inputs of a session: set from the host or the device, as numbers or events, now or for the next batch; and the rows before the first step.
#include "cuda_session.hpp"

#include <algorithm>

namespace snnc {

void CudaSession::add_input(const char *name, Held &held) {
  const std::size_t index = inputs.size();
  inputs.emplace_back();
  inputs.back().name = name;
  inputs.back().held = &held;
  flags.resize(inputs.size());
  host_flags = std::make_unique<device::HostFlags>(inputs.size());
  add(
      {name, SNNC_FLOAT32, SNNC_INPUT, {STEPS, BATCH, held.size}},
      [this, index](const void *data) { set_input(inputs[index], static_cast<const float *>(data)); },
      [this, index](void *) { throw std::invalid_argument("input " + inputs[index].name + " cannot be read back"); });
  add(
      {inputs.back().name + "_next", SNNC_FLOAT32, SNNC_NEXT, {STEPS, BATCH, held.size}},
      [this, index](const void *data) { inputs[index].next = static_cast<const float *>(data); },
      [this, index](void *) { throw std::invalid_argument("input " + inputs[index].name + "_next cannot be read back"); });
}

void CudaSession::set_input(Input &input, const float *data) {
  check_spikes();
  input.forget_next();
  Held &held = *input.held;
  begin_input(held);
  if (device::is_device_memory(data)) {
    // The data may still be computed in another stream.
    if (!streams)
      device::finish_all();
    return fill_input(input, data);
  }
  const std::size_t bytes = input.numbers(steps) * sizeof(float);
  if (held.bits) {
    staging.make_room(input.numbers(steps));
    uploads.copy(staging.data(), data, bytes, device::stream());
    return fill_input(input, staging.data());
  }
  uploads.copy(held.step(0), data, bytes, device::stream());
  input.filled = true;
}

/// Sets an input from `numbers` in device memory.
void CudaSession::fill_input(Input &input, const float *numbers) {
  Held &held = *input.held;
  input.filled = true;
  if (!held.bits)
    return device::copy(held.step(0), numbers, input.numbers(steps) * sizeof(float));
  const std::size_t number = static_cast<std::size_t>(&input - inputs.data());
  device::clear(flags.data() + number, sizeof(int));
  kernels::pack_rows(numbers, steps * batch, static_cast<int>(held.size), held.step(0), flags.data() + number, host_flags->data() + number);
}

void CudaSession::check_spikes() {
  const Input *wrong = nullptr;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (host_flags->take(i) != 0) {
      inputs[i].filled = false;
      wrong = wrong == nullptr ? &inputs[i] : wrong;
    }
  if (wrong != nullptr)
    throw std::invalid_argument("input " + wrong->name + " takes spikes, 0 or 1; another number was given" +
                                (streams ? " in a call before this one, and its results are NaN" : ""));
}

void CudaSession::send_next() {
  for (Input &input : inputs) {
    if (input.next == nullptr)
      continue;
    // A pending copy may still write to the memory that is released.
    if (input.ahead.size() != input.numbers(steps))
      device::finish_all();
    input.ahead.make_room(input.numbers(steps));
    copies.begin();
    copies.copy(input.ahead.data(), input.next, input.numbers(steps) * sizeof(float));
    input.next = nullptr;
    input.there = true;
    ++sent_ahead;
  }
  labels_there = std::exchange(labels_next, {});
  targets_there = std::exchange(targets_next, {});
}

void CudaSession::take_next() {
  for (Input &input : inputs) {
    if (!input.there)
      continue;
    input.there = false;
    begin_input(*input.held);
    copies.arrive();
    fill_input(input, input.ahead.data());
    copies.taken();
  }
  if (!labels_there.empty())
    labels.set(labels_there.data(), labels_there.size());
  labels_there.clear();
  if (!targets_there.empty())
    targets.set(targets_there.data(), targets_there.size());
  targets_there.clear();
}

void CudaSession::begin_input(Held &held) {
  if (held.slots != steps + held.past || held.batch != batch)
    held.resize(steps + held.past, batch);
  kernels::Moves moves;
  begin_rows(held, nullptr, moves);
  moves.start();
}

void CudaSession::set_events(std::size_t index, const std::uint64_t *begin, const std::uint32_t *ids) {
  const device::Place here(device_number, stream);
  check_spikes();
  for (Input &input : inputs)
    if (input.name == infos.at(index).name) {
      Held &held = *input.held;
      input.forget_next();
      begin_input(held);
      const std::size_t rows = static_cast<std::size_t>(steps) * static_cast<std::size_t>(batch), count = begin[rows];
      event_rows.make_room(rows + 1);
      event_ids.make_room(std::max<std::size_t>(1, count));
      uploads.copy(event_rows.data(), begin, (rows + 1) * sizeof(std::uint64_t), device::stream());
      uploads.copy(event_ids.data(), ids, count * sizeof(std::uint32_t), device::stream());
      device::clear(flags.data() + (&input - inputs.data()), sizeof(int));
      device::clear(held.step(0), rows * held.words * sizeof(std::uint32_t));
      kernels::mark_events(event_rows.data(), event_ids.data(), static_cast<int>(rows), static_cast<int>(held.words), held.bits,
                           held.step(0));
      input.filled = true;
    }
}

void CudaSession::fill(Initial &initial) {
  const Held &held = *initial.held;
  const std::size_t samples = static_cast<std::size_t>(batch);
  std::vector<std::uint32_t> rows(samples * held.words);
  for (std::size_t b = 0; b < samples; ++b) {
    const float *from = initial.values->of_sample(b);
    for (std::size_t i = 0; i < held.size; ++i)
      if (held.bits)
        rows[b * held.words + i / 32] |= static_cast<std::uint32_t>(from[i] != 0.0f) << (i % 32);
      else
        std::memcpy(&rows[b * held.words + i], &from[i], sizeof(float));
  }
  initial.rows.resize(rows.size());
  initial.rows.set(rows.data(), rows.size());
}

void CudaSession::begin_rows(Held &held, Initial *initial, kernels::Moves &moves) {
  const std::size_t words = held.row_words();
  // A single slot is updated in place, so it already contains the final values of the previous sequence.
  if (resume != 0 && held.slots == 1)
    return;
  for (int t = -held.past; t < 0; ++t)
    if (resume != 0)
      device::copy(held.step(t), held.step(t + (held.whole ? steps : length)), words * sizeof(std::uint32_t));
    else if (initial != nullptr)
      moves.copy(held.step(t), initial->rows.data(), words);
    else
      moves.clear(held.step(t), words);
}

} // namespace snnc
