// What a session has under a name: parameters and their gradients, inputs, values before the first step, records, labels.
#include "cpu_session.hpp"

namespace snnc {

void CpuSession::add(TensorInfo info, std::function<void(const void *)> set, std::function<void(void *)> get) {
  shapes.push_back(info.shape);
  for (std::size_t &n : info.shape)
    n = n == STEPS ? static_cast<std::size_t>(steps) : n == BATCH ? static_cast<std::size_t>(batch) : n;
  infos.push_back(std::move(info));
  accesses.push_back({std::move(set), std::move(get)});
}

void CpuSession::add_setting(const char *name, std::int32_t &setting, bool resizes, std::int32_t least) {
  const std::string text = name;
  add(
      {text, SNNC_INT32, SNNC_SETTING, {1}},
      [this, text, &setting, resizes, least](const void *data) {
        std::int32_t value;
        std::memcpy(&value, data, sizeof value);
        if (resizes && (value < least || value > (1 << 24)))
          throw std::invalid_argument(text + " is " + std::to_string(value) + "; it has to be " + std::to_string(least) +
                                      " or more, and less than 2^24");
        const bool changed = value != setting;
        setting = value;
        if (resizes && changed)
          resized();
      },
      [&setting](void *data) { std::memcpy(data, &setting, sizeof setting); });
}

void CpuSession::add_parameter(Parameter &made, std::vector<std::size_t> shape) {
  parameters.push_back(&made);
  add(
      {made.name, SNNC_FLOAT32, SNNC_PARAMETER, std::move(shape)},
      [this, &made](const void *data) {
        made.set(made.value, static_cast<const float *>(data));
        made.fill_up();
        stale = true;
      },
      [&made](void *data) { made.get(made.value, static_cast<float *>(data)); });
}

void CpuSession::add_learned(Parameter &made, std::vector<std::size_t> shape, int moments) {
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
  Array<float> *const kept[] = {&made.moment1, &made.moment2};
  for (int moment = 0; moment < moments; ++moment) {
    Array<float> &numbers = *kept[moment];
    numbers.resize(made.numbers);
    add(
        {made.name + "_moment" + std::to_string(moment + 1), SNNC_FLOAT32, SNNC_MOMENT, shape},
        [&made, &numbers](const void *data) { made.set(numbers, static_cast<const float *>(data)); },
        [&made, &numbers](void *data) { made.get(numbers, static_cast<float *>(data)); });
  }
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
  const std::size_t index = initials.size();
  initials.push_back({name, rows, source, size, std::vector<float>(size), {}});
  add(
      {name, SNNC_FLOAT32, SNNC_STATE, {BATCH, size}},
      [this, index](const void *data) {
        Initial &initial = initials[index];
        initial.given.resize(static_cast<std::size_t>(batch) * initial.size);
        std::memcpy(initial.given.data(), data, initial.given.size() * sizeof(float));
      },
      [this, index](void *data) {
        const Initial &initial = initials[index];
        for (int b = 0; b < batch; ++b)
          std::memcpy(static_cast<float *>(data) + static_cast<std::size_t>(b) * initial.size,
                      initial.given.empty() ? initial.usual.data() : initial.given.data() + static_cast<std::size_t>(b) * initial.size,
                      initial.size * sizeof(float));
      });
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
          throw std::runtime_error("the training step kept no record of every step, only what its loss reads; run the sequence for it");
        get_rows(rows, static_cast<float *>(data));
      });
}

void CpuSession::add_adjoint(const char *name, Rows &rows, bool given) {
  const std::string text = name;
  add(
      {name, SNNC_FLOAT32, SNNC_RESULT, {STEPS, BATCH, rows.size}},
      [this, text, given, &rows](const void *data) {
        if (!given || !ran)
          throw std::invalid_argument(text + (given ? " is set after a run with autograd" : " cannot be set"));
        const char *from = static_cast<const char *>(data);
        for (int t = 0; t < steps; ++t)
          for (int b = 0; b < batch; ++b, from += rows.size * sizeof(float))
            std::memcpy(rows.row(t, b), from, rows.size * sizeof(float));
      },
      [this, text, &rows](void *data) {
        if (!training)
          throw std::runtime_error(text + " is there after a training step");
        get_rows(rows, static_cast<float *>(data));
      });
}

void CpuSession::add_labels(int classes) {
  add(
      {"labels", SNNC_INT32, SNNC_LABEL, {BATCH}},
      [this, classes](const void *data) {
        std::vector<std::int32_t> given(labels.size());
        std::memcpy(given.data(), data, given.size() * sizeof(std::int32_t));
        for (const std::int32_t label : given)
          if (label < 0 || label >= classes)
            throw std::invalid_argument("label " + std::to_string(label) + " is not one of the " + std::to_string(classes) + " classes");
        labels = given;
      },
      [this](void *data) { std::memcpy(data, labels.data(), labels.size() * sizeof(std::int32_t)); });
  add(
      {"loss", SNNC_FLOAT32, SNNC_RESULT, {1}}, [](const void *) { throw std::invalid_argument("the loss cannot be set"); },
      [this](void *data) { std::memcpy(data, &loss, sizeof loss); });
  add(
      {"lr", SNNC_FLOAT32, SNNC_SETTING, {1}}, [this](const void *data) { std::memcpy(&learning_rate, data, sizeof learning_rate); },
      [this](void *data) { std::memcpy(data, &learning_rate, sizeof learning_rate); });
  add_setting("optimizer_step", updates, false);
}

} // namespace snnc
