// A session: its settings, and reading and writing its tensors. The steps that it runs are in session_steps.cpp.
#include "cuda_session.hpp"

#include <sstream>

namespace snnc {

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
  add_setting("time_kernels", time_kernels, 0, false);
  resized();
}

CudaSession::~CudaSession() = default;

void CudaSession::add_deltas(Held &held, int ahead) { deltas.push_back({&held, ahead}); }

int CudaSession::steps_in(std::size_t numbers) const {
  constexpr std::size_t SCRATCH_FLOATS = std::size_t(1) << 26;
  return static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(steps),
                                                std::max<std::size_t>(1, SCRATCH_FLOATS / (numbers * static_cast<std::size_t>(batch)))));
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

std::string CudaSession::profile() {
  std::ostringstream out;
  out << "{\"forward_runs\": " << forward_runs << ", \"train_runs\": " << train_runs << ", \"sent_ahead\": " << sent_ahead
      << ", \"seconds\": " << seconds << ", \"device\": \"" << device::name() << "\", \"device_bytes\": " << device::bytes_taken()
      << sharing() << times.text() << "}";
  return out.str();
}

} // namespace snnc
