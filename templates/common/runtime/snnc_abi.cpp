// The C interface to snnc::Session: maps names to indices, and exceptions to error messages.
#include "snnc_session.hpp"

#include <exception>
#include <stdexcept>
#include <string>

struct snnc_session {
  std::unique_ptr<snnc::Session> session;
  std::string profile;
};

namespace {

thread_local std::string last_error;

template <class Function> int32_t guarded(const Function &function) {
  try {
    function();
    return 0;
  } catch (const std::exception &error) {
    last_error = error.what();
  } catch (...) {
    last_error = "unknown failure";
  }
  return -1;
}

snnc::Session &opened(snnc_session *session) {
  if (session == nullptr)
    throw std::invalid_argument("the session is NULL; snnc_open has failed or was not called");
  return *session->session;
}

std::size_t find(const snnc::Session &session, const char *name) {
  const std::string wanted = name == nullptr ? "" : name;
  for (std::size_t i = 0; i < session.tensors().size(); ++i)
    if (session.tensors()[i].name == wanted)
      return i;
  throw std::invalid_argument("there is no tensor " + wanted + "; project.json lists them");
}

std::size_t find(const snnc::Session &session, const char *name, uint64_t bytes) {
  const std::size_t index = find(session, name);
  const snnc::TensorInfo &info = session.tensors()[index];
  if (info.elements() * 4 != bytes)
    throw std::invalid_argument("tensor " + info.name + " holds " + std::to_string(info.elements() * 4) + " bytes, " +
                                std::to_string(bytes) + " were given");
  return index;
}

} // namespace

extern "C" {

int32_t snnc_abi_version(void) { return SNNC_ABI_VERSION; }

const char *snnc_last_error(void) { return last_error.c_str(); }

snnc_session *snnc_open(const char *folder) {
  snnc_session *made = nullptr;
  guarded([&] { made = new snnc_session{snnc::open_session(folder == nullptr ? "." : folder), {}}; });
  return made;
}

void snnc_close(snnc_session *session) { delete session; }

int32_t snnc_tensor_count(snnc_session *session) {
  int32_t count = -1;
  guarded([&] { count = static_cast<int32_t>(opened(session).tensors().size()); });
  return count;
}

int32_t snnc_tensor_info(snnc_session *session, int32_t index, snnc_tensor *info) {
  return guarded([&] {
    const snnc::TensorInfo &found = opened(session).tensors().at(static_cast<std::size_t>(index));
    *info = snnc_tensor{found.name.c_str(), found.type, found.role, static_cast<int32_t>(found.shape.size()), {}};
    for (std::size_t d = 0; d < found.shape.size() && d < SNNC_MAX_RANK; ++d)
      info->shape[d] = found.shape[d];
  });
}

int32_t snnc_set_tensor(snnc_session *session, const char *name, const void *data, uint64_t bytes) {
  return guarded([&] { opened(session).set(find(opened(session), name, bytes), data); });
}

int32_t snnc_get_tensor(snnc_session *session, const char *name, void *data, uint64_t bytes) {
  return guarded([&] { opened(session).get(find(opened(session), name, bytes), data); });
}

int32_t snnc_set_events(snnc_session *session, const char *name, const uint64_t *begin, uint64_t rows, const uint32_t *ids,
                        uint64_t count) {
  return guarded([&] {
    const std::size_t index = find(opened(session), name);
    const snnc::TensorInfo &info = opened(session).tensors()[index];
    if (info.role != SNNC_INPUT || info.shape.size() < 2 || info.shape[0] * info.shape[1] != rows)
      throw std::invalid_argument("tensor " + info.name + " is not an input with " + std::to_string(rows) + " rows of steps and samples");
    const std::uint64_t size = info.elements() / rows;
    if (begin[0] != 0 || begin[rows] != count)
      throw std::invalid_argument("the rows of events do not cover all " + std::to_string(count) + " events");
    for (std::uint64_t r = 0; r < rows; ++r) {
      if (begin[r] > begin[r + 1] || begin[r + 1] > count)
        throw std::invalid_argument("row " + std::to_string(r) + " of the events ends before it begins");
      bool wrong = begin[r] < begin[r + 1] && ids[begin[r + 1] - 1] >= size;
      for (std::uint64_t e = begin[r] + 1; e < begin[r + 1]; ++e)
        wrong |= ids[e] <= ids[e - 1];
      if (wrong)
        throw std::invalid_argument("row " + std::to_string(r) + " of the events does not contain neurons below " + std::to_string(size) +
                                    " in ascending order");
    }
    opened(session).set_events(index, begin, ids);
  });
}

int32_t snnc_run(snnc_session *session) {
  return guarded([&] { opened(session).run(); });
}

int32_t snnc_train_step(snnc_session *session, float *loss) {
  return guarded([&] {
    const float value = opened(session).train_step();
    if (loss != nullptr)
      *loss = value;
  });
}

const char *snnc_profile(snnc_session *session) {
  const int32_t failed = guarded([&] { session->profile = opened(session).profile(); });
  return failed != 0 ? nullptr : session->profile.c_str();
}

int32_t snnc_save(snnc_session *session, const char *path) {
  return guarded([&] { opened(session).save(path == nullptr ? "" : path); });
}

} // extern "C"
