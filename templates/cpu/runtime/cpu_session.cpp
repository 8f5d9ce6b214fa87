#include "cpu_session.hpp"

#include "lists.hpp"

#include <cstdlib>
#include <sstream>

namespace snnc {

namespace {

int usual_threads() {
  for (const char *name : {"SNNC_THREADS", "OMP_NUM_THREADS"})
    if (const char *wanted = std::getenv(name))
      if (const int asked = std::atoi(wanted); asked > 0)
        return asked;
  return processors();
}

} // namespace

CpuSession::CpuSession(const std::string &project, std::size_t table_count, int first_steps, int first_batch, bool trains)
    : NativeSession(project, first_steps, first_batch, trains), tables(read_tables(folder + "/" + TABLES_FILE, table_count)),
      threads(usual_threads()) {
  add_setting("steps", steps, 1, true);
  add_setting("batch", batch, 1, true);
  add_setting("threads", threads, 1, true);
  add_setting("segment", wanted_segment, 0, true);
  add_setting("resume", resume, 0, false);
  add_setting("autograd", autograd, 0, false);
  add_setting("gather", gather, 0, false);
  add_setting("whole", samples_of_update, 0, false);
  resized();
}

CpuSession::~CpuSession() = default;

void CpuSession::set(std::size_t index, const void *data) { accesses.at(index).set(data); }
void CpuSession::get(std::size_t index, void *data) { accesses.at(index).get(data); }

void CpuSession::measure_gradients() {}

bool CpuSession::alone() const { return static_cast<std::size_t>(batch) <= workers.size(); }

Scratch &CpuSession::scratch_of(int worker) { return scratches[static_cast<std::size_t>(worker)]; }

void CpuSession::resized() {
  segment = wanted_segment == 0 ? steps : std::min(wanted_segment, steps);
  const int count = std::min(threads, batch);
  if (count < static_cast<int>(workers.size()))
    pool.end();
  workers.resize(static_cast<std::size_t>(count));
  scratches.resize(workers.size());
  for (int i = 0; i < count; ++i) {
    const int first = static_cast<int>(static_cast<long long>(batch) * i / count);
    workers[static_cast<std::size_t>(i)] = {i, first, static_cast<int>(static_cast<long long>(batch) * (i + 1) / count) - first};
  }
  resize_tensors();
  for (Input &input : inputs)
    input.filled = false;
  labels.assign(static_cast<std::size_t>(batch), 0);
}

void CpuSession::ready(bool trains) {
  for (const Input &input : inputs)
    if (!input.filled)
      throw std::runtime_error("input " + input.name + " was not set after its size changed");
  if (!laid_out || (trains && !training)) {
    training = trains;
    for (const auto &[name, source] : sources)
      source->lists.resize(workers.size());
    lay_out();
    lay_out_checkpoints();
    laid_out = stale = true;
    trained = false;
    if (resume != 0)
      throw std::runtime_error("there is no sequence to continue; run one first");
  }
  if (stale)
    in_parallel(static_cast<int>(workers.size()), [&](int i) { prepare(i, static_cast<int>(workers.size())); });
  stale = false;
}

void CpuSession::run() {
  const double start = now();
  ready(trainable && autograd != 0);
  recording = true;
  trained = false;
  in_parallel(static_cast<int>(workers.size()), [&](int i) { run_forward(workers[static_cast<std::size_t>(i)]); });
  ran = autograd != 0;
  ++forward_runs;
  seconds += now() - start;
}

void CpuSession::lay_out_checkpoints() {
  checkpoints.restart(steps, segment);
  if (!training || !spares())
    return;
  for (const Initial &initial : initials)
    if (initial.rows != nullptr)
      checkpoints.keep(*initial.rows, std::min(initial.rows->past, initial.rows->slots));
  for (const auto &[name, source] : sources)
    checkpoints.keep(source->rows, std::min(source->rows.past, source->rows.slots - 1));
}

std::size_t CpuSession::keep_gradients() {
  std::size_t kept = 0;
  for (Parameter *parameter : parameters)
    if (!parameter->gradients.empty()) {
      const std::size_t there = gather == GOES_ON ? parameter->gradients.size() : 0;
      kept = std::max(kept, there);
      parameter->gradients.resize(parameter->shared ? 1 : std::max(there, workers.size()));
      for (Array<float> &gradient : parameter->gradients)
        gradient.reserve(parameter->numbers);
    }
  return kept;
}

void CpuSession::change_parameters() {
  ++updates;
  // A thread with too few elements (a tenth of a millisecond of work) costs more time than it saves.
  constexpr std::size_t SHARE = 1 << 18;
  std::size_t numbers = 0;
  for (const Parameter *parameter : parameters)
    numbers += parameter->gradients.empty() ? 0 : parameter->numbers;
  const int hands = std::min(threads, static_cast<int>(std::min<std::size_t>(numbers / SHARE, 1 << 10)) + 1);
  measure_gradients();
  in_parallel(hands, [&](int i) { update(i, hands); });
  for (Parameter *parameter : parameters)
    parameter->fill_up();
  stale = true;
}

void CpuSession::run_forward(const Worker &w) {
  begin(w);
  for (int first = 0; first < steps; first += segment) {
    checkpoints.save(w, first);
    forward(w, first, std::min(first + segment, steps), false);
  }
}

void CpuSession::backward_of_segment(const Worker &w, int from, int to) {
  const int first = from / segment * segment, last = std::min(first + segment, steps);
  if (last != steps && to == last) {
    checkpoints.restore(w, first);
    forward(w, first, last, true);
  }
  backward(w, from, to);
}

void CpuSession::backward_in_blocks(std::size_t kept) {
  const int count = static_cast<int>(workers.size()), block = block_length();
  for (int to = steps, from; to > 0; to = from) {
    from = std::max((to - 1) / segment * segment, to - block);
    in_parallel(count, [&](int i) {
      Worker w = workers[static_cast<std::size_t>(i)];
      w.fresh = static_cast<std::size_t>(i) >= kept;
      backward_of_segment(w, from, to);
      if (from == 0)
        end_adjoints(w);
    });
    in_parallel(count, [&](int i) { share_gradients(i, from, to, to == steps && gather != GOES_ON); });
  }
}

float CpuSession::train_step() {
  check_trainable();
  const double start = now();
  if (gather == CHANGES) {
    change_parameters();
    seconds += now() - start;
    return loss;
  }
  ready(true);
  if (autograd == 0)
    recording = records_training;
  else if (!ran)
    throw std::runtime_error("no forward run precedes this backward pass; run the sequence with autograd first");
  // If a sequence has several segments, the histories of the first ones are no longer stored.
  const bool goes_forward = autograd == 0 && !(gather == AGAIN && trained && segment >= steps);
  const std::size_t kept = keep_gradients();
  losses.assign(static_cast<std::size_t>(batch), 0.0f);
  const int count = static_cast<int>(workers.size());
  in_parallel(count, [&](int i) {
    Worker w = workers[static_cast<std::size_t>(i)];
    w.fresh = static_cast<std::size_t>(i) >= kept;
    if (goes_forward)
      run_forward(w);
    find_loss(w, losses.data());
    for (Parameter *parameter : parameters)
      if (!parameter->gradients.empty() && !parameter->written && w.fresh)
        parameter->gradients[static_cast<std::size_t>(i)].clear();
    begin_adjoints(w);
    if (shares)
      return;
    for (int last = steps; last > 0; last = (last - 1) / segment * segment)
      backward_of_segment(w, (last - 1) / segment * segment, last);
    end_adjoints(w);
  });
  if (shares)
    backward_in_blocks(kept);
  if (autograd == 0 && gather == ALONE)
    change_parameters();
  ran = false;
  trained = true;
  sum_losses(losses);
  ++train_runs;
  seconds += now() - start;
  return loss;
}

std::string CpuSession::profile() {
  std::ostringstream out;
  out << "{\"forward_runs\": " << forward_runs << ", \"train_runs\": " << train_runs << ", \"seconds\": " << seconds
      << ", \"threads\": " << workers.size() << ", \"listed\": {";
  const char *between = "";
  const auto tell = [&](const std::string &name, const Source &source) {
    const double share = source.listed ? source.share() : -1;
    if (share < 0)
      return;
    out << between << "\"" << name << "\": " << share;
    between = ", ";
  };
  for (const Input &input : inputs)
    tell(input.name, *input.source);
  for (const auto &[name, source] : sources)
    tell(name, *source);
  out << "}}";
  return out.str();
}

int CpuSession::block_length() const {
  const int own = (batch + static_cast<int>(workers.size()) - 1) / static_cast<int>(workers.size());
  const int most = std::max(1, BLOCK_ROWS / own);
  // Shared gradients read the deltas of all threads. A block has at least a few steps, so that weights are used several times once loaded.
  return std::min(segment, shares ? std::max(BLOCK_ROWS / batch, std::min(FEW_STEPS, most)) : most);
}

std::pair<std::size_t, std::size_t> CpuSession::part(std::size_t numbers, int worker, int workers) {
  const std::size_t lines = (numbers + LINE - 1) / LINE;
  const auto bound = [&](int i) {
    return std::min(numbers, lines * static_cast<std::size_t>(i) / static_cast<std::size_t>(workers) * LINE);
  };
  return {bound(worker), bound(worker + 1)};
}

} // namespace snnc
