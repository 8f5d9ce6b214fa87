// The named tensors of a session: parameters, moments, gradients, records, labels.
#include "cuda_session.hpp"

#include "snnc_targets.hpp"

#include <algorithm>

namespace snnc {

Held::~Held() = default;

Parameter::Parameter(const char *given, std::size_t count, std::size_t turned_inputs) : name(given), numbers(count), inputs(turned_inputs) {
  value.resize(count);
}

Parameter::~Parameter() = default;

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

void CudaSession::add_parameter(Parameter &made, Shape shape) {
  parameters.push_back(&made);
  add_array(made.name, SNNC_PARAMETER, shape, made, made.value);
}

void CudaSession::add_learned(Parameter &made, Shape shape, int moments) {
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

void CudaSession::add_remainder(Parameter &of, Shape shape) {
  of.remainder.resize(of.numbers);
  add_array(of.name + "_remainder", SNNC_MOMENT, shape, of, of.remainder);
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

} // namespace snnc
