// Definitions of poplar_session.hpp.
#include "poplar_session.hpp"

#include <poplar/DeviceManager.hpp>
#include <poplar/IPUModel.hpp>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <stdexcept>

namespace snnc {

#ifndef SNNC_POPLAR_SDK
/// Returns the properties of the machine that the emulator uses.
static poplar::EmulatorModel emulator_model(const Machine &machine) {
  poplar::EmulatorModel model;
  model.exchangeBytesPerCycle = machine.exchange_bytes_per_cycle;
  model.fragmentCycles = machine.fragment_cycles;
  model.fragmentCodeBytes = machine.fragment_code_bytes;
  model.controlCodeBytes = machine.control_code_bytes;
  model.stackBytes = machine.stack_bytes;
  model.syncCycles = machine.sync_cycles;
  model.globalSyncCycles = machine.link_sync_cycles;
  model.exchangeSetupCycles = machine.setup_cycles;
  model.controlCycles = machine.control_cycles;
  model.vertexStartCycles = machine.vertex_start_cycles;
  if (machine.host_bytes_per_second > 0)
    model.hostBytesPerSecond = machine.host_bytes_per_second;
  model.streamingBytesPerIpu = machine.streaming_bytes;
  if (machine.streaming_bytes_per_second > 0)
    model.streamingBytesPerSecond = machine.streaming_bytes_per_second;
  for (const Wire &wire : machine.wires)
    model.wires.push_back({wire.from, wire.to, wire.bytes_per_second});
  return model;
}
#endif

static poplar::Device open_device(const Machine &machine) {
#ifdef SNNC_POPLAR_SDK
  auto manager = poplar::DeviceManager::createDeviceManager();
  for (poplar::Device &device : manager.getDevices(poplar::TargetType::IPU, machine.ipus))
    if (device.getTarget().getTilesPerIPU() == machine.tiles_per_ipu && device.attach())
      return std::move(device);
#endif
  poplar::IPUModel model(machine.version);
  model.numIPUs = machine.ipus;
  model.tilesPerIPU = machine.tiles_per_ipu;
  model.memoryBytesPerTile = machine.bytes_per_tile;
  model.tileClockFrequency = machine.clock_hz;
  model.numWorkerContexts = machine.workers;
#ifndef SNNC_POPLAR_SDK
  model.emulator = emulator_model(machine);
#endif
  return model.createDevice();
}

std::shared_ptr<int> Turns::begin() {
  counts.push_back(std::make_shared<int>(0));
  return counts.back();
}

void Turns::again() {
  for (const auto &count : counts)
    *count = 0;
}

int Turns::of(int turn) const { return turn < segments ? turn : 2 * segments - 2 - turn; }

std::size_t Ring::first(int of) const {
  const int distance = of * turns->segment - offset;
  return distance > 0 ? static_cast<std::size_t>((distance + turns->interval - 1) / turns->interval) : 0;
}

/// An input in host memory: all steps for each relay, in the relay's layout.
template <class Number> struct Kept {
  std::size_t steps, slots;
  std::vector<Number> values;

  Kept(const Parts &parts, std::size_t of_steps, const Ring &ring)
      : steps(of_steps), slots(ring.turns ? ring.slots : of_steps), values(parts.all.numElements() / slots * steps) {}
  /// Returns the first step of a relay.
  Number *of(const Parts &parts, const Relay &r) { return values.data() + parts.begin[r.index] / slots * steps; }
  /// Copies the steps from `first` on into the slots of all relays.
  void fill(const std::vector<std::size_t> &begin, std::size_t first, Number *to) const {
    for (std::size_t i = 0; i + 1 < begin.size(); ++i) {
      const std::size_t each = (begin[i + 1] - begin[i]) / slots;
      for (std::size_t t = first; t < std::min(first + slots, steps); ++t)
        std::copy_n(values.data() + begin[i] / slots * steps + t * each, each, to + begin[i] + t % slots * each);
    }
  }
};

PoplarSession::~PoplarSession() = default;

const std::vector<TensorInfo> &PoplarSession::tensors() const { return infos; }

void PoplarSession::set(std::size_t index, const void *data) { accesses.at(index).set(data); }

void PoplarSession::get(std::size_t index, void *data) { accesses.at(index).get(data); }

void PoplarSession::run() {
  refresh();
  timed(gather == MEASURES ? MEASURE : FORWARD);
  ++forward_runs;
}

float PoplarSession::train_step() {
  if (!training)
    throw std::runtime_error("this project was compiled for inference; it cannot be trained");
  refresh();
  if (gather == REPEATS)
    timed(AGAIN);
  else if (gather != CHANGES)
    timed(TRAIN);
  if (passes && (gather == CHANGES || gather == ALONE))
    timed(CHANGE);
  ++train_runs;
  float loss = 0;
  engine->readTensor("loss", &loss, &loss + 1);
  return loss;
}

std::string PoplarSession::profile() {
  std::ostringstream out;
  out << "{\"forward_runs\": " << forward_runs << ", \"train_runs\": " << train_runs << ", \"seconds\": " << seconds
      << ", \"build_seconds\": " << build_seconds;
  for (std::size_t i = 0; i < infos.size(); ++i)
    if (infos[i].role == SNNC_COUNTER) {
      std::int32_t count = 0;
      get(i, &count);
      out << ", \"" << infos[i].name << "\": " << count;
    }
#if __has_include(<poplar/EmulatorProfile.hpp>)
  out << ", \"emulator\": " << engine->getEmulatorProfile().toJson();
#endif
  out << "}";
  return out.str();
}

void PoplarSession::save(const std::string &path) {
  std::vector<char> bytes = read_file(folder + "/" + WEIGHTS_FILE);
  for (const Stored &tensor : stored)
    for (std::size_t i = 0; i < infos.size(); ++i)
      if (infos[i].name == tensor.name)
        get(i, bytes.data() + tensor.offset);
  write_file(path, bytes);
}

PoplarSession::PoplarSession(const std::string &project, const Machine &machine, unsigned samples, bool trains)
    : folder(project), training(trains), device(open_device(machine)), graph(device.getTarget()), layout(graph, samples) {
  graph.addCodelets(folder + "/codelets.cpp");
}

void PoplarSession::tensor(const char *called, snnc_role role, Dims shape, const poplar::Tensor &on_device,
                           Order order, bool writable, snnc_type type) {
  const std::string name = called;
  const std::size_t n = on_device.numElements();
  graph.createHostRead(name, on_device);
  if (writable)
    graph.createHostWrite(name, on_device);
  const TensorInfo info{name, type, role, shape};
  const std::size_t elements = info.elements();
  const auto get = [this, name, n, elements, order](void *data) {
    if (order.empty())
      return engine->readTensor(name, data, static_cast<char *>(data) + n * 4);
    std::vector<std::uint32_t> raw(n);
    engine->readTensor(name, raw.data(), raw.data() + n);
    std::vector<std::uint32_t> sorted(elements);
    for (std::size_t i = 0; i < n; ++i)
      if (order[i] != NOWHERE)
        sorted[order[i]] = raw[i];
    std::memcpy(data, sorted.data(), elements * 4);
  };
  const auto set = [this, name, n, elements, order, writable, role](const void *data) {
    if (!writable)
      throw std::invalid_argument("tensor " + name + " cannot be set");
    stale = stale || role == SNNC_PARAMETER;
    if (order.empty())
      return engine->writeTensor(name, data, static_cast<const char *>(data) + n * 4);
    std::vector<std::uint32_t> given(elements), raw(n);
    std::memcpy(given.data(), data, elements * 4);
    for (std::size_t i = 0; i < n; ++i)
      raw[i] = order[i] == NOWHERE ? 0 : given[order[i]];
    engine->writeTensor(name, raw.data(), raw.data() + n);
  };
  if (writable)
    zero_at_open.push_back(infos.size());
  add(info, set, get);
}

void PoplarSession::add_passes() {
  passes = true;
  add(
      {"gather", SNNC_INT32, SNNC_SETTING, {1}}, [this](const void *data) { std::memcpy(&gather, data, sizeof gather); },
      [this](void *data) { std::memcpy(data, &gather, sizeof gather); });
}

void PoplarSession::parameter_of_blocks(const char *name, Dims shape, const poplar::Tensor &on_device,
                                        Order order) {
  tensor(name, SNNC_PARAMETER, shape, on_device, std::move(order), true);
  accesses.back().set = [this, set = accesses.back().set](const void *data) {
    const bool before = stale;
    set(data);
    stale = before;
  };
}

void PoplarSession::half_parameter(const char *called, Dims shape, const poplar::Tensor &on_device, Order order) {
  halves({called, SNNC_FLOAT32, SNNC_PARAMETER, shape}, on_device, std::move(order));
}

void PoplarSession::half_state(const char *called, Dims shape, const poplar::Tensor &on_device, Order order) {
  halves({called, SNNC_FLOAT32, SNNC_STATE, shape}, on_device, std::move(order));
}

void PoplarSession::halves(TensorInfo info, const poplar::Tensor &on_device, Order order) {
  const std::size_t n = on_device.numElements();
  const std::string name = info.name;
  const bool parameter = info.role == SNNC_PARAMETER;
  graph.createHostRead(name, on_device);
  graph.createHostWrite(name, on_device);
  const auto get = [this, name, n, order](void *data) {
    std::vector<std::uint16_t> raw(n);
    engine->readTensor(name, raw.data(), raw.data() + n);
    std::vector<float> wide(n);
    poplar::copyDeviceHalfToFloat(graph.getTarget(), raw.data(), wide.data(), n);
    for (std::size_t i = 0; i < n; ++i)
      if (order[i] != NOWHERE)
        static_cast<float *>(data)[order[i]] = wide[i];
  };
  const auto set = [this, name, n, order, parameter](const void *data) {
    stale = stale || parameter;
    std::vector<float> wide(n);
    for (std::size_t i = 0; i < n; ++i)
      wide[i] = order[i] == NOWHERE ? 0.0f : std::clamp(static_cast<const float *>(data)[order[i]], -65504.0f, 65504.0f);
    std::vector<std::uint16_t> raw(n);
    poplar::copyFloatToDeviceHalf(graph.getTarget(), wide.data(), raw.data(), n);
    engine->writeTensor(name, raw.data(), raw.data() + n);
  };
  zero_at_open.push_back(infos.size());
  add(std::move(info), set, get);
}

void PoplarSession::counter(const char *called, const poplar::Tensor &counts) {
  const std::string name = called;
  const std::size_t n = counts.numElements();
  graph.createHostRead(name, counts);
  graph.createHostWrite(name, counts);
  zero_at_open.push_back(infos.size());
  add(
      {name, SNNC_INT32, SNNC_COUNTER, {1}},
      [this, name, n](const void *data) {
        std::vector<std::uint32_t> raw(n);
        std::memcpy(raw.data(), data, 4);
        engine->writeTensor(name, raw.data(), raw.data() + n);
      },
      [this, name, n](void *data) {
        std::vector<std::uint32_t> raw(n);
        engine->readTensor(name, raw.data(), raw.data() + n);
        std::uint32_t sum = 0;
        for (std::uint32_t count : raw)
          sum += count;
        std::memcpy(data, &sum, 4);
      });
}

template <class Number> void PoplarSession::stream(const std::string &handle, const Parts &to, const std::shared_ptr<Kept<Number>> &kept,
                                                   const Ring &ring, poplar::program::Sequence &load) {
  stream(handle, to.all, load);
  if (!ring.turns)
    return streams.push_back({handle, kept->values.data(), kept->values.data() + kept->values.size()});
  turns = ring.turns;
  filled.emplace_back(handle, [=, begin = to.begin, turn = ring.turns->begin()](void *data) {
    kept->fill(begin, ring.first(ring.turns->of((*turn)++)), static_cast<Number *>(data));
  });
}

template <class Id> void PoplarSession::event_input(const char *called, const std::vector<std::size_t> &shape,
                                                    const std::vector<Relay> &relays, const Parts &ids, const Parts &numbers,
                                                    std::size_t stored_ids, const Ring &ring, poplar::program::Sequence &load) {
  const std::string name = called;
  const std::size_t width = shape.back(), batch = shape[shape.size() - 2], steps = shape.size() == 3 ? shape[0] : 1;
  auto kept_ids = std::make_shared<Kept<Id>>(ids, steps, ring);
  auto kept_numbers = std::make_shared<Kept<std::uint32_t>>(numbers, steps, ring);
  stream(name + "_ids", ids, kept_ids, ring, load);
  stream(name + "_numbers", numbers, kept_numbers, ring, load);
  const auto set = [=](const void *data) {
    const float *dense = static_cast<const float *>(data);
    for (const Relay &r : relays)
      for (std::size_t t = 0; t < steps; ++t)
        for (std::size_t s = 0; s < r.samples; ++s) {
          const float *row = dense + (t * batch + r.sample + s) * width;
          Id *list = kept_ids->of(ids, r) + (t * r.samples + s) * stored_ids;
          std::uint32_t found = 0;
          for (std::size_t i = 0; i < width; ++i)
            if (row[i] != 0.0f) {
              if (row[i] != 1.0f)
                throw std::invalid_argument("input " + name + " takes spikes, 0 or 1; another number was given");
              if (found < stored_ids)
                list[found] = static_cast<Id>(i);
              ++found;
            }
          kept_numbers->of(numbers, r)[t * r.samples + s] = found;
        }
  };
  add_input(name, shape, set);
}
template void PoplarSession::event_input<unsigned short>(const char *, const std::vector<std::size_t> &, const std::vector<Relay> &,
                                                         const Parts &, const Parts &, std::size_t, const Ring &,
                                                         poplar::program::Sequence &);
template void PoplarSession::event_input<unsigned>(const char *, const std::vector<std::size_t> &, const std::vector<Relay> &, const Parts &,
                                                   const Parts &, std::size_t, const Ring &, poplar::program::Sequence &);

void PoplarSession::bit_input(const char *called, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays, const Parts &bits,
                              const Ring &ring, poplar::program::Sequence &load) {
  const std::string name = called;
  const std::size_t width = shape.back(), batch = shape[shape.size() - 2], steps = shape.size() == 3 ? shape[0] : 1;
  auto kept = std::make_shared<Kept<std::uint32_t>>(bits, steps, ring);
  stream(name + "_bits", bits, kept, ring, load);
  const auto set = [=](const void *data) {
    const float *dense = static_cast<const float *>(data);
    for (const Relay &r : relays)
      for (std::size_t t = 0; t < steps; ++t)
        for (std::size_t s = 0; s < r.samples; ++s)
          put_bits("input " + name, dense + (t * batch + r.sample + s) * width, width,
                   kept->of(bits, r) + (t * r.samples + s) * words_of_bits(width));
  };
  add_input(name, shape, set);
}

void PoplarSession::initial_bits(const char *called, std::size_t samples, std::size_t width, const std::vector<Relay> &relays,
                                 const Parts &bits, std::size_t slots) {
  const std::string name = called;
  const poplar::Tensor first = first_slots(bits, slots);
  graph.createHostWrite(name + "_bits", first);
  zero_at_open.push_back(infos.size());
  auto kept = std::make_shared<std::vector<float>>(samples * width);
  add(
      {name, SNNC_FLOAT32, SNNC_STATE, {samples, width}},
      [=](const void *data) {
        const float *dense = static_cast<const float *>(data);
        std::vector<std::uint32_t> words(first.numElements());
        std::size_t row = 0;
        for (const Relay &r : relays)
          for (std::size_t s = 0; s < r.samples; ++s, ++row)
            put_bits(name, dense + (r.sample + s) * width, width, words.data() + row * words_of_bits(width));
        std::copy_n(dense, kept->size(), kept->begin());
        engine->writeTensor(name + "_bits", words.data(), words.data() + words.size());
      },
      [kept](void *data) { std::memcpy(data, kept->data(), kept->size() * 4); });
}

void PoplarSession::value_input(const char *called, const std::vector<std::size_t> &shape, const std::vector<Relay> &relays,
                                const Parts &values, const Ring &ring, poplar::program::Sequence &load) {
  const std::string name = called;
  const std::size_t width = shape.back(), batch = shape[shape.size() - 2], steps = shape.size() == 3 ? shape[0] : 1;
  auto kept = std::make_shared<Kept<float>>(values, steps, ring);
  stream(name, values, kept, ring, load);
  const auto set = [=](const void *data) {
    const float *dense = static_cast<const float *>(data);
    for (const Relay &r : relays)
      for (std::size_t t = 0; t < steps; ++t)
        std::memcpy(kept->of(values, r) + t * r.samples * width, dense + (t * batch + r.sample) * width, r.samples * width * sizeof(float));
  };
  add_input(name, shape, set);
}

void PoplarSession::label_input(const poplar::Tensor &labels, int classes, poplar::program::Sequence &load) {
  auto buffer = std::make_shared<std::vector<std::int32_t>>(labels.numElements());
  stream("labels", labels, load);
  streams.push_back({"labels", buffer->data(), buffer->data() + buffer->size()});
  const auto set = [buffer, classes](const void *data) {
    const std::int32_t *given = static_cast<const std::int32_t *>(data);
    for (std::size_t i = 0; i < buffer->size(); ++i)
      if (given[i] < 0 || given[i] >= classes)
        throw std::invalid_argument("label " + std::to_string(given[i]) + " is not one of the " + std::to_string(classes) + " classes");
    std::copy_n(given, buffer->size(), buffer->begin());
  };
  add({"labels", SNNC_INT32, SNNC_LABEL, {labels.numElements()}}, set,
      [buffer](void *data) { std::memcpy(data, buffer->data(), buffer->size() * 4); });
}

void PoplarSession::target_input(const poplar::Tensor &targets, const TargetForm &form, std::size_t steps,
                                 poplar::program::Sequence &load) {
  auto buffer = std::make_shared<std::vector<float>>(targets.numElements());
  const std::size_t batch = buffer->size() / form.numbers(1, steps);
  stream("labels", targets, load);
  streams.push_back({"labels", buffer->data(), buffer->data() + buffer->size()});
  add(
      {"labels", SNNC_FLOAT32, SNNC_LABEL, form.shape(batch, steps)},
      [=](const void *data) {
        const std::vector<float> given = checked_targets(data, form, batch, steps);
        std::copy(given.begin(), given.end(), buffer->begin());
      },
      [buffer](void *data) { std::memcpy(data, buffer->data(), buffer->size() * sizeof(float)); });
}

void PoplarSession::adjoint_input(const char *called, Dims shape, const poplar::Tensor &on_device,
                                  const Order &order, poplar::program::Sequence &load) {
  const std::string name = called;
  auto buffer = std::make_shared<std::vector<float>>(on_device.numElements());
  stream(name, on_device, load);
  streams.push_back({name, buffer->data(), buffer->data() + buffer->size()});
  add_input(name, shape, [buffer, order](const void *data) {
    for (std::size_t i = 0; i < buffer->size(); ++i)
      (*buffer)[i] = order[i] == NOWHERE ? 0.0f : static_cast<const float *>(data)[order[i]];
  });
}

template <class Id> void PoplarSession::initial_events(const char *called, std::size_t batch, std::size_t width,
                                                       const std::vector<Relay> &relays, const Parts &ids, const Parts &numbers,
                                                       std::size_t slots, std::size_t stored_ids) {
  const std::string name = called;
  const poplar::Tensor first_ids = first_slots(ids, slots), first_numbers = first_slots(numbers, slots);
  graph.createHostWrite(name + "_ids", first_ids);
  graph.createHostWrite(name + "_numbers", first_numbers);
  zero_at_open.push_back(infos.size());
  auto kept = std::make_shared<std::vector<float>>(batch * width);
  add(
      {name, SNNC_FLOAT32, SNNC_STATE, {batch, width}},
      [=](const void *data) {
        const float *dense = static_cast<const float *>(data);
        std::vector<Id> list(first_ids.numElements());
        std::vector<std::uint32_t> count(batch);
        std::size_t row = 0;
        for (const Relay &r : relays)
          for (std::size_t s = 0; s < r.samples; ++s, ++row)
            for (std::size_t i = 0; i < width; ++i) {
              const float value = dense[(r.sample + s) * width + i];
              if (value != 0.0f && value != 1.0f)
                throw std::invalid_argument(name + " takes spikes, 0 or 1; another number was given");
              if (value != 0.0f) {
                if (count[row] < stored_ids)
                  list[row * stored_ids + count[row]] = static_cast<Id>(i);
                ++count[row];
              }
            }
        std::copy_n(dense, kept->size(), kept->begin());
        engine->writeTensor(name + "_ids", list.data(), list.data() + list.size());
        engine->writeTensor(name + "_numbers", count.data(), count.data() + count.size());
      },
      [kept](void *data) { std::memcpy(data, kept->data(), kept->size() * 4); });
}
template void PoplarSession::initial_events<unsigned short>(const char *, std::size_t, std::size_t, const std::vector<Relay> &,
                                                            const Parts &, const Parts &, std::size_t, std::size_t);
template void PoplarSession::initial_events<unsigned>(const char *, std::size_t, std::size_t, const std::vector<Relay> &,
                                                      const Parts &, const Parts &, std::size_t, std::size_t);

void PoplarSession::load(const std::vector<poplar::program::Program> &programs, std::initializer_list<Stored> offsets) {
  const auto start = std::chrono::steady_clock::now();
  engine = std::make_unique<poplar::Engine>(graph, programs);
  for (const Connected &stream : streams)
    engine->connectStream(stream.handle, stream.begin, stream.end);
  for (const auto &[handle, fill] : filled)
    engine->connectStreamToCallback(handle, fill);
  engine->load(device);
  stored = offsets;
  for (std::size_t index : zero_at_open)
    set(index, std::vector<std::uint32_t>(infos[index].elements()).data());
  for (const auto &[name, value] : first_numbers)
    for (std::size_t i = 0; i < infos.size(); ++i)
      if (infos[i].name == name)
        set(i, &value);
  const std::vector<char> weights = read_file(folder + "/" + WEIGHTS_FILE);
  for (const Stored &tensor : stored)
    for (std::size_t i = 0; i < infos.size(); ++i)
      if (infos[i].name == tensor.name) {
        if (tensor.offset + tensor.elements * 4 > weights.size())
          throw std::runtime_error(std::string(WEIGHTS_FILE) + " is truncated");
        set(i, weights.data() + tensor.offset);
      }
  build_seconds = elapsed(start);
}

poplar::Tensor PoplarSession::spread_samples(const poplar::Type &type, const char *name, const Table &tiles) {
  const poplar::Tensor made = graph.addVariable(type, {tiles.rows()}, name);
  for (std::size_t i = 0; i < tiles.rows(); ++i)
    graph.setTileMapping(made.slice(i, i + 1), tiles.at(i, 0));
  return made;
}

poplar::Tensor PoplarSession::constant(int value) { return whole_number(graph, value); }

void PoplarSession::add(TensorInfo info, std::function<void(const void *)> set, std::function<void(void *)> get) {
  infos.push_back(std::move(info));
  accesses.push_back({std::move(set), std::move(get)});
}

void PoplarSession::add_input(const std::string &name, std::vector<std::size_t> shape, std::function<void(const void *)> set) {
  add({name, SNNC_FLOAT32, SNNC_INPUT, std::move(shape)}, std::move(set),
      [name](void *) { throw std::invalid_argument("input " + name + " cannot be read back"); });
}

void PoplarSession::stream(const std::string &handle, const poplar::Tensor &to, poplar::program::Sequence &load) {
  const poplar::DataStream made = graph.addHostToDeviceFIFO(handle, to.elementType(), to.numElements());
  load.add(poplar::program::Copy(made, to));
}

std::size_t PoplarSession::words_of_bits(std::size_t width) { return (width + 31) / 32; }

void PoplarSession::put_bits(const std::string &name, const float *row, std::size_t width, std::uint32_t *words) {
  std::fill_n(words, words_of_bits(width), 0u);
  for (std::size_t i = 0; i < width; ++i) {
    if (row[i] != 0.0f && row[i] != 1.0f)
      throw std::invalid_argument(name + " takes spikes, 0 or 1; another number was given");
    words[i / 32] |= (row[i] != 0.0f ? 0x80000000u : 0u) >> i % 32;
  }
}

void PoplarSession::refresh() {
  if (stale)
    engine->run(REFRESH);
  stale = false;
}

void PoplarSession::timed(unsigned program) {
  if (turns)
    turns->again();
  const auto start = std::chrono::steady_clock::now();
  engine->run(program);
  seconds += elapsed(start);
}

double PoplarSession::elapsed(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace snnc
