// The named tensors of a session: parameters and their gradients, inputs, values before the first step, records, labels.
#include "cpu_session.hpp"

#include "snnc_targets.hpp"

namespace snnc {

void CpuSession::add_parameter(Parameter &made, Shape shape) {
  parameters.push_back(&made);
  add(
      {made.name, SNNC_FLOAT32, SNNC_PARAMETER, shape},
      [this, &made](const void *data) {
        made.set(made.value, static_cast<const float *>(data));
        made.fill_up();
        if (made.settled)
          made.settled(made);
        stale = true;
      },
      [&made](void *data) { made.get(made.value, static_cast<float *>(data)); });
}

void CpuSession::add_learned(Parameter &made, Shape shape, int moments) {
  add_parameter(made, shape);
  made.gradients.resize(1);
  made.gradients[0].resize(made.numbers);
  const std::size_t index = parameters.size() - 1;
  add(
      {"d_" + made.name, SNNC_FLOAT32, SNNC_GRADIENT, shape},
      [this, index](const void *data) {
        Parameter &of = *parameters[index];
        for (Array<float> &gradient : of.gradients)
          gradient.clear();
        of.set(of.gradients[0], static_cast<const float *>(data));
      },
      [this, index](void *data) {
        const Parameter &of = *parameters[index];
        Array<float> sum(of.numbers);
        for (const Array<float> &gradient : of.gradients)
          for (std::size_t i = 0; i < of.numbers; ++i)
            sum[i] += gradient[i];
        of.get(sum, static_cast<float *>(data));
      });
  Array<float> *const kept[] = {&made.moment1, &made.moment2, &made.moment3};
  for (int moment = 0; moment < moments; ++moment) {
    Array<float> &numbers = *kept[moment];
    numbers.resize(made.numbers);
    add(
        {made.name + "_moment" + std::to_string(moment + 1), SNNC_FLOAT32, SNNC_MOMENT, shape},
        [&made, &numbers](const void *data) { made.set(numbers, static_cast<const float *>(data)); },
        [&made, &numbers](void *data) { made.get(numbers, static_cast<float *>(data)); });
  }
}

void CpuSession::add_remainder(Parameter &made, Shape shape) {
  made.remainder.resize(made.numbers);
  add(
      {made.name + "_remainder", SNNC_FLOAT32, SNNC_MOMENT, shape},
      [&made](const void *data) { made.set(made.remainder, static_cast<const float *>(data)); },
      [&made](void *data) { made.get(made.remainder, static_cast<float *>(data)); });
}

void CpuSession::add_input(const char *name, Source &source, bool spikes, bool dense, bool lists) {
  const std::size_t index = inputs.size();
  inputs.push_back({name, &source, spikes, dense, lists, false});
  add(
      {name, SNNC_FLOAT32, SNNC_INPUT, {STEPS, BATCH, source.rows.size}},
      [this, index](const void *data) { set_input(inputs[index], static_cast<const float *>(data)); },
      [this, index](void *) { throw std::invalid_argument("input " + inputs[index].name + " cannot be read back"); });
}

void CpuSession::add_initial(const char *name, Rows *rows, Source *source, std::size_t size) {
  initials.push_back({rows, source, &add_initial_values(name, size)});
}

void CpuSession::add_state(const char *name, Rows &rows) { add_initial(name, &rows, nullptr, rows.size); }

void CpuSession::add_source(const char *name, const char *initial, Source &source) {
  sources.emplace_back(name, &source);
  if (initial != nullptr)
    add_initial(initial, nullptr, &source, source.rows.size);
}

void CpuSession::get_rows(const Rows &rows, float *to) const {
  for (int t = 0; t < steps; ++t)
    for (int b = 0; b < batch; ++b, to += rows.size)
      std::memcpy(to, rows.row(t, b), rows.size * sizeof(float));
}

void CpuSession::add_record(const char *name, Rows &rows) {
  add(
      {name, SNNC_FLOAT32, SNNC_RECORD, {STEPS, BATCH, rows.size}},
      [](const void *) { throw std::invalid_argument("records cannot be set"); },
      [this, &rows](void *data) {
        if (!recording)
          throw std::runtime_error("the training step did not store the records of all steps; run the sequence to get them");
        get_rows(rows, static_cast<float *>(data));
      });
}

void CpuSession::add_adjoint(const char *name, Rows &rows, bool given) {
  add_adjoint_tensor(
      name, rows.size, given,
      [this, &rows](const void *data) {
        const char *from = static_cast<const char *>(data);
        for (int t = 0; t < steps; ++t)
          for (int b = 0; b < batch; ++b, from += rows.size * sizeof(float))
            std::memcpy(rows.row(t, b), from, rows.size * sizeof(float));
      },
      [this, &rows](void *data) { get_rows(rows, static_cast<float *>(data)); });
}

void CpuSession::limit_spikes(Source &source, const Parameter &capacity, const Parameter &key) {
  source.limit = {&capacity.value, &key.value, &dropped};
  for (const TensorInfo &info : infos)
    if (info.name == "dropped_spikes")
      return;
  add(
      {"dropped_spikes", SNNC_INT32, SNNC_COUNTER, {1}},
      [this](const void *data) {
        std::int32_t count = 0;
        std::memcpy(&count, data, sizeof count);
        dropped = static_cast<std::uint64_t>(count);
      },
      [this](void *data) {
        const std::int32_t count = static_cast<std::int32_t>(dropped.load());
        std::memcpy(data, &count, sizeof count);
      });
}

void CpuSession::add_labels(int classes) {
  add(
      {"labels", SNNC_INT32, SNNC_LABEL, {BATCH}}, [this, classes](const void *data) { labels = checked_labels(data, classes); },
      [this](void *data) { std::memcpy(data, labels.data(), labels.size() * sizeof(std::int32_t)); });
  add_loss_tensors();
}

void CpuSession::add_targets(const TargetForm &form) {
  add(
      {"labels", SNNC_FLOAT32, SNNC_LABEL, form.shape(BATCH, STEPS)},
      [this, form](const void *data) { targets = checked_targets(data, form); },
      [this, form](void *data) {
        targets.resize(target_numbers(form));
        std::memcpy(data, targets.data(), targets.size() * sizeof(float));
      });
  add_loss_tensors();
}

} // namespace snnc
