#include "parameters.hpp"

#include <utility>

namespace snnc {

Parameter::Parameter(const char *of_name, std::size_t of_elements, std::size_t of_numbers, Order of_order, bool of_neurons)
    : name(of_name), elements(of_elements), numbers(of_numbers), order(std::move(of_order)), neurons(of_neurons), value(of_numbers) {}

Parameter::~Parameter() = default;

void Parameter::set(Array<float> &own, const float *model) const {
  if (order)
    order(own.data(), const_cast<float *>(model), Way::in);
  else
    std::memcpy(own.data(), model, elements * sizeof(float));
}

void Parameter::get(const Array<float> &own, float *model) const {
  if (order)
    order(const_cast<float *>(own.data()), model, Way::out);
  else
    std::memcpy(model, own.data(), elements * sizeof(float));
}

const float *Parameter::gradient_sum(std::size_t first, std::size_t count, float *room) const {
  if (gradients.size() == 1)
    return gradients[0].data() + first;
  std::memcpy(room, gradients[0].data() + first, count * sizeof(float));
  for (std::size_t thread = 1; thread < gradients.size(); ++thread) {
    const float *own = gradients[thread].data() + first;
    for (std::size_t i = 0; i < count; ++i)
      room[i] += own[i];
  }
  return room;
}

float *Parameter::gradient(int worker) { return gradients[static_cast<std::size_t>(shared ? 0 : worker)].data(); }

void Parameter::fill_up() {
  for (std::size_t i = elements; neurons && i < numbers; ++i)
    value[i] = value[elements - 1];
}

Parameter plain(const char *name, std::size_t elements) { return {name, elements, padded(elements), nullptr, true}; }

Parameter dense(const char *name, const Panels &panels) {
  return {name, panels.inputs * panels.outputs, panels.numbers(), order_of(panels), false};
}

} // namespace snnc
