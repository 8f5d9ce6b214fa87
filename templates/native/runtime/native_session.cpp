#include "native_session.hpp"

#include "constants.hpp"
#include "snnc_targets.hpp"

#include <chrono>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <utility>

namespace snnc {

NativeSession::NativeSession(const std::string &project, int first_steps, int first_batch, bool trains)
    : folder(project), trainable(trains), steps(first_steps), batch(first_batch) {}

NativeSession::~NativeSession() = default;

const float *InitialValues::of_sample(std::size_t sample) const { return given.empty() ? usual.data() : given.data() + sample * size; }

const std::vector<TensorInfo> &NativeSession::tensors() const { return infos; }

double NativeSession::now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

std::size_t NativeSession::sized(std::size_t axis) const {
  return axis == STEPS ? static_cast<std::size_t>(steps) : axis == BATCH ? static_cast<std::size_t>(batch) : axis;
}

void NativeSession::add(TensorInfo info, Setter set, Getter get) {
  shapes.push_back(info.shape);
  for (std::size_t &axis : info.shape)
    axis = sized(axis);
  infos.push_back(std::move(info));
  accesses.push_back({std::move(set), std::move(get)});
}

void NativeSession::add_setting(const char *name, std::int32_t &setting, std::int32_t least, bool resizes, std::int32_t most) {
  const std::string text = name;
  add(
      {text, SNNC_INT32, SNNC_SETTING, {1}},
      [this, text, &setting, least, resizes, most](const void *data) {
        std::int32_t value;
        std::memcpy(&value, data, sizeof value);
        if (value < least || value > most)
          throw std::invalid_argument(text + " is " + std::to_string(value) + "; it must be " + std::to_string(least) +
                                      " or more, and less than 2^24");
        const bool changed = value != setting;
        setting = value;
        if (resizes && changed)
          resized();
      },
      [&setting](void *data) { std::memcpy(data, &setting, sizeof setting); });
}

InitialValues &NativeSession::add_initial_values(const char *name, std::size_t size) {
  initial_values.push_back({name == nullptr ? "" : name, size, std::vector<float>(size), {}, true});
  InitialValues &values = initial_values.back();
  if (name == nullptr)
    return values;
  add(
      {name, SNNC_FLOAT32, SNNC_STATE, {BATCH, size}},
      [this, &values](const void *data) {
        values.given.resize(static_cast<std::size_t>(batch) * values.size);
        std::memcpy(values.given.data(), data, values.given.size() * sizeof(float));
        values.changed = true;
      },
      [this, &values](void *data) {
        for (std::size_t b = 0; b < static_cast<std::size_t>(batch); ++b)
          std::memcpy(static_cast<float *>(data) + b * values.size, values.of_sample(b), values.size * sizeof(float));
      });
  return values;
}

void NativeSession::add_adjoint_tensor(const char *name, std::size_t size, bool given, Setter set, Getter get) {
  const std::string text = name;
  add(
      {text, SNNC_FLOAT32, SNNC_RESULT, {STEPS, BATCH, size}},
      [this, text, given, set = std::move(set)](const void *data) {
        if (!given || !ran)
          throw std::invalid_argument(text + (given ? " can only be set after a run with autograd" : " cannot be set"));
        set(data);
      },
      [this, text, get = std::move(get)](void *data) {
        if (!training)
          throw std::runtime_error(text + " is only available after a training step");
        get(data);
      });
}

void NativeSession::add_loss_tensors() {
  add(
      {"loss", SNNC_FLOAT32, SNNC_RESULT, {1}}, [](const void *) { throw std::invalid_argument("the loss cannot be set"); },
      [this](void *data) { std::memcpy(data, &loss, sizeof loss); });
  add(
      {"lr", SNNC_FLOAT32, SNNC_SETTING, {1}}, [this](const void *data) { std::memcpy(&learning_rate, data, sizeof learning_rate); },
      [this](void *data) { std::memcpy(data, &learning_rate, sizeof learning_rate); });
  add_setting("optimizer_step", updates, 0, false, std::numeric_limits<std::int32_t>::max());
}

std::vector<std::int32_t> NativeSession::checked_labels(const void *data, int classes) const {
  std::vector<std::int32_t> labels(static_cast<std::size_t>(batch));
  std::memcpy(labels.data(), data, labels.size() * sizeof(std::int32_t));
  for (const std::int32_t label : labels)
    if (label < 0 || label >= classes)
      throw std::invalid_argument("label " + std::to_string(label) + " is not one of the " + std::to_string(classes) + " classes");
  return labels;
}

std::size_t NativeSession::target_numbers(const TargetForm &form) const {
  return form.numbers(static_cast<std::size_t>(batch), static_cast<std::size_t>(steps));
}

std::vector<float> NativeSession::checked_targets(const void *data, const TargetForm &form) const {
  return snnc::checked_targets(data, form, static_cast<std::size_t>(batch), static_cast<std::size_t>(steps));
}

void NativeSession::load(const Stored *places, std::size_t count) {
  stored = places;
  stored_count = count;
  const std::vector<char> bytes = read_file(folder + "/" + WEIGHTS_FILE);
  for (std::size_t k = 0; k < count; ++k) {
    const Stored &place = places[k];
    if (place.offset + place.elements * sizeof(float) > bytes.size())
      throw std::runtime_error(std::string(WEIGHTS_FILE) + " is truncated");
    const char *from = bytes.data() + place.offset;
    for (InitialValues &values : initial_values)
      if (values.name == place.name)
        std::memcpy(values.usual.data(), from, values.usual.size() * sizeof(float));
    for (std::size_t i = 0; i < infos.size(); ++i)
      if (infos[i].name == place.name && infos[i].role != SNNC_STATE)
        set(i, from);
  }
}

void NativeSession::save(const std::string &path) {
  std::vector<char> bytes = read_file(folder + "/" + WEIGHTS_FILE);
  for (std::size_t k = 0; k < stored_count; ++k)
    for (std::size_t i = 0; i < infos.size(); ++i)
      if (infos[i].name == stored[k].name && infos[i].role != SNNC_STATE)
        get(i, bytes.data() + stored[k].offset);
  write_file(path, bytes);
}

void NativeSession::resize_tensors() {
  for (std::size_t i = 0; i < infos.size(); ++i)
    for (std::size_t axis = 0; axis < shapes[i].size(); ++axis)
      infos[i].shape[axis] = sized(shapes[i][axis]);
  for (InitialValues &values : initial_values) {
    values.given.clear();
    values.changed = true;
  }
  laid_out = training = ran = false;
}

void NativeSession::check_trainable() const {
  if (!trainable)
    throw std::runtime_error("this project was compiled for inference; it cannot be trained");
}

void NativeSession::sum_losses(const std::vector<float> &losses) {
  double sum = 0;
  for (const float share : losses)
    sum += static_cast<double>(share);
  loss = static_cast<float>(sum);
}

} // namespace snnc
