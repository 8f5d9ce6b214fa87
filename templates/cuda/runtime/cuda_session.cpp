#include "cuda_session.hpp"

#include <algorithm>
#include <sstream>

namespace snnc {

void Parameter::slice(std::size_t items, std::size_t rows, std::size_t warps) {
  // A slice shorter than this is not worth its own partial sum.
  constexpr std::size_t MIN_ROWS = 16;
  const std::size_t wanted = std::max<std::size_t>(1, std::min((warps + items - 1) / items, rows / MIN_ROWS));
  slice_rows = static_cast<int>((rows + wanted - 1) / wanted);
  slices = static_cast<int>((rows + static_cast<std::size_t>(slice_rows) - 1) / static_cast<std::size_t>(slice_rows));
  gradient.resize(static_cast<std::size_t>(slices) * numbers);
}

void Parameter::slice_by(int rows_of_slice, std::size_t rows) {
  slice_rows = rows_of_slice > 0 ? rows_of_slice : static_cast<int>(rows);
  slices = static_cast<int>((rows + static_cast<std::size_t>(slice_rows) - 1) / static_cast<std::size_t>(slice_rows));
  gradient.resize(static_cast<std::size_t>(slices) * numbers);
}

CudaSession::CudaSession(const std::string &project, int first_steps, int first_batch, bool trains)
    : NativeSession(project, first_steps, first_batch, trains), device_number(device::check_ready()) {
  add_setting("steps", steps, 1, true);
  add_setting("batch", batch, 1, true);
  add_setting("team_blocks", team_blocks, 0, true);
  add_setting("tile", tile, 0, true);
  add_setting("clusters", clusters, 0, true);
  add_setting("near", near, 0, true);
  add_setting("segment", wanted_segment, 0, true);
  add_setting("resume", resume, 0, false);
  add_setting("autograd", autograd, 0, false);
  add_stream();
  add_setting("gather", gather, 0, false);
  add_setting("whole", samples_of_update, 0, false);
  resized();
}

void CudaSession::leave() {
  // Errors of the device are ignored when a session is closed.
  try {
    const device::Place here(device_number, nullptr);
    device::finish_all();
  } catch (const std::exception &) {
  }
}

// May be called by any thread: an autograd engine has one thread per device.
void CudaSession::set(std::size_t index, const void *data) {
  const device::Place here(device_number, stream);
  accesses.at(index).set(data);
  // The owner of device memory may change it after the call, or use it in another stream.
  if (!streams && device::is_device_memory(data))
    device::finish();
}

void CudaSession::get(std::size_t index, void *data) {
  const device::Place here(device_number, stream);
  accesses.at(index).get(data);
  if (!device::is_device_memory(data))
    check_spikes();
  else if (!streams)
    device::finish();
}

void CudaSession::add_stream() {
  // The address of the stream, in two words.
  add(
      {"stream", SNNC_INT32, SNNC_SETTING, {sizeof stream / sizeof(std::int32_t)}},
      [this](const void *data) {
        device::Stream given;
        std::memcpy(&given, data, sizeof given);
        // Pending work of the previous stream runs first.
        if (given != stream) {
          so_far.record(stream);
          so_far.hold(given);
        }
        stream = given;
        streams = true;
      },
      [this](void *data) { std::memcpy(data, &stream, sizeof stream); });
}

void CudaSession::resized() {
  resize_tensors();
  for (Input &input : inputs) {
    input.filled = false;
    input.forget_next();
  }
  labels.resize(static_cast<std::size_t>(batch));
  labels_next.clear();
  labels_there.clear();
  targets_next.clear();
  targets_there.clear();
}

void CudaSession::add_array(const std::string &name, snnc_role role, std::vector<std::size_t> shape, Parameter &of,
                            device::Array<float> &numbers) {
  add(
      {name, SNNC_FLOAT32, role, std::move(shape)},
      [this, &of, &numbers](const void *data) {
        stale = true;
        put_numbers(of, numbers, data);
        if (of.half && &numbers == &of.value) {
          kernels::round_to_half(numbers.data(), static_cast<int>(of.numbers));
          of.remainder.clear();
        }
      },
      [this, &of, &numbers](void *data) {
        const int inputs = static_cast<int>(of.inputs);
        if (inputs == 0)
          return device::download(data, numbers.data(), of.numbers * sizeof(float));
        staging.make_room(of.numbers);
        kernels::turn_numbers(numbers.data(), inputs, static_cast<int>(of.numbers) / inputs, staging.data());
        device::download(data, staging.data(), of.numbers * sizeof(float));
      });
}

void CudaSession::put_numbers(const Parameter &of, device::Array<float> &numbers, const void *data) {
  const int inputs = static_cast<int>(of.inputs);
  if (inputs == 0)
    return device::upload(numbers.data(), data, of.numbers * sizeof(float));
  staging.make_room(of.numbers);
  device::upload(staging.data(), data, of.numbers * sizeof(float));
  kernels::turn_numbers(staging.data(), static_cast<int>(of.numbers) / inputs, inputs, numbers.data());
}

void CudaSession::add_parameter(Parameter &made, std::vector<std::size_t> shape) {
  parameters.push_back(&made);
  add_array(made.name, SNNC_PARAMETER, std::move(shape), made, made.value);
}

void CudaSession::add_learned(Parameter &made, std::vector<std::size_t> shape, int moments) {
  add_parameter(made, shape);
  learned.push_back(&made);
  add(
      {"d_" + made.name, SNNC_FLOAT32, SNNC_GRADIENT, shape},
      [this, &made](const void *data) {
        made.sum.make_room(made.numbers);
        put_numbers(made, made.sum, data);
        made.summed = true;
      },
      [this, &made](void *data) {
        staging.make_room(made.numbers);
        gather_gradient(made, staging.data());
        device::download(data, staging.data(), made.numbers * sizeof(float));
      });
  device::Array<float> *const kept[] = {&made.moment1, &made.moment2, &made.moment3};
  for (int moment = 0; moment < moments; ++moment) {
    kept[moment]->resize(made.numbers);
    add_array(made.name + "_moment" + std::to_string(moment + 1), SNNC_MOMENT, shape, made, *kept[moment]);
  }
}

void CudaSession::add_remainder(Parameter &of, std::vector<std::size_t> shape) {
  of.remainder.resize(of.numbers);
  add_array(of.name + "_remainder", SNNC_MOMENT, std::move(shape), of, of.remainder);
}

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

void CudaSession::add_begun(const char *name, Held &held) {
  initials.push_back(std::unique_ptr<Initial>(new Initial{&held, &add_initial_values(name, held.size)}));
}

void CudaSession::add_sent(Held &sent, const Held &source) {
  InitialValues *values = nullptr;
  for (const std::unique_ptr<Initial> &initial : initials)
    if (initial->held == &source)
      values = initial->values;
  initials.push_back(std::unique_ptr<Initial>(new Initial{&sent, values == nullptr ? &add_initial_values(nullptr, sent.size) : values}));
}

void CudaSession::add_dropped() {
  dropped.resize(1);
  add(
      {"dropped_spikes", SNNC_INT32, SNNC_COUNTER, {1}},
      [this](const void *data) {
        std::int32_t given;
        std::memcpy(&given, data, sizeof given);
        const unsigned long long count = static_cast<unsigned long long>(given);
        dropped.set(&count, 1);
      },
      [this](void *data) {
        unsigned long long count = 0;
        dropped.get(&count, 1);
        const std::int32_t found = static_cast<std::int32_t>(count);
        std::memcpy(data, &found, sizeof found);
      });
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

void CudaSession::add_record(const char *name, Held &held) {
  records.push_back(&held);
  add(
      {name, SNNC_FLOAT32, SNNC_RECORD, {STEPS, BATCH, held.size}},
      [](const void *) { throw std::invalid_argument("records cannot be set"); },
      [&held](void *data) { device::download(data, held.data.data(), held.data.size() * sizeof(float)); });
}

void CudaSession::add_adjoint(const char *name, Held &held, bool given) {
  add_adjoint_tensor(
      name, held.size, given, [&held](const void *data) { device::upload(held.data.data(), data, held.data.size() * sizeof(float)); },
      [&held](void *data) { device::download(data, held.data.data(), held.data.size() * sizeof(float)); });
}

void CudaSession::add_labels(int classes) {
  add(
      {"labels", SNNC_INT32, SNNC_LABEL, {BATCH}},
      [this, classes](const void *data) {
        labels_next.clear();
        labels_there.clear();
        labels.set(checked_labels(data, classes).data(), static_cast<std::size_t>(batch));
      },
      [this](void *data) { labels.get(static_cast<std::int32_t *>(data), static_cast<std::size_t>(batch)); });
  add(
      {"labels_next", SNNC_INT32, SNNC_NEXT, {BATCH}}, [this, classes](const void *data) { labels_next = checked_labels(data, classes); },
      [](void *) { throw std::invalid_argument("labels_next cannot be read back"); });
  add_loss_tensors();
}

void CudaSession::add_targets(const TargetForm &form) {
  add(
      {"labels", SNNC_FLOAT32, SNNC_LABEL, form.shape(BATCH, STEPS)},
      [this, form](const void *data) {
        targets_next.clear();
        targets_there.clear();
        targets.resize(target_numbers(form));
        targets.set(checked_targets(data, form).data(), target_numbers(form));
      },
      [this, form](void *data) { targets.get(static_cast<float *>(data), target_numbers(form)); });
  add(
      {"labels_next", SNNC_FLOAT32, SNNC_NEXT, form.shape(BATCH, STEPS)},
      [this, form](const void *data) { targets_next = checked_targets(data, form); },
      [](void *) { throw std::invalid_argument("labels_next cannot be read back"); });
  add_loss_tensors();
}

void CudaSession::upload_tables(std::size_t count) {
  for (const Table &table : read_tables(folder + "/" + TABLES_FILE, count)) {
    tables.emplace_back();
    tables.back().resize(std::max<std::size_t>(1, table.numbers.size()));
    tables.back().set(table.numbers.data(), table.numbers.size());
  }
}

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
  replay.run({layouts, static_cast<std::size_t>(resume), static_cast<std::size_t>(averaged()), streams ? 1u : 0u}, [this] {
    forward_pass();
    find_loss();
    backward_pass();
  });
  if (gather == ALONE)
    change_parameters();
  else
    sum_gradients();
  send_next();
  std::vector<float> shares(losses.size());
  losses.get(shares.data(), shares.size());
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

std::string CudaSession::profile() {
  std::ostringstream out;
  out << "{\"forward_runs\": " << forward_runs << ", \"train_runs\": " << train_runs << ", \"sent_ahead\": " << sent_ahead
      << ", \"seconds\": " << seconds << ", \"device\": \"" << device::name() << "\", \"device_bytes\": " << device::bytes_taken()
      << sharing() << "}";
  return out.str();
}

} // namespace snnc
