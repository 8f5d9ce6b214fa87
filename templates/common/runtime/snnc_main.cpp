// The executable: trains the project on the arrays in a folder, using only the C interface.
#include "snnc_abi.h"
#include "snnc_files.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

namespace {

const char *const USAGE = "usage: train [FOLDER [EPOCHS [LEARNING_RATE]]]\n"
                          "\n"
                          "Trains the network of the project in FOLDER (default: the current folder) for EPOCHS epochs (default 1).\n"
                          "FOLDER contains weights.safetensors and plan.bin, and the data as NumPy arrays:\n"
                          "  x0.npy, x1.npy ...  one per input, [samples, steps, n] ([samples, n] for an input without a time axis)\n"
                          "  labels.npy          class indices, [samples] of int32; other targets of float32, [samples, steps], [samples, "
                          "n] or [samples, steps, n]\n"
                          "The trained parameters are written to trained.safetensors in FOLDER, times and counters to profile.json.\n";

void check(bool good) {
  if (!good)
    throw std::runtime_error(snnc_last_error());
}

struct Column {
  std::string name;
  std::size_t steps;
  std::size_t width;
  snnc::Samples<float> data;
  std::vector<float> batch;
};

struct Trainer {
  snnc_session *session;
  std::size_t batch = 0;
  bool training = false;
  /// Whether the program accepts batches before their runs, and whether it has received the next one.
  bool ahead = false, given = false;
  std::vector<Column> inputs;
  /// The targets of the loss: a fixed number of 4-byte elements per sample.
  std::vector<char> targets;
  std::size_t samples = 0, width = 0;

  Trainer(snnc_session *opened, const std::string &folder) : session(opened) {
    for (int32_t i = 0; i < snnc_tensor_count(session); ++i) {
      snnc_tensor info;
      check(snnc_tensor_info(session, i, &info) == 0);
      if (info.role == SNNC_INPUT)
        add(info, folder);
      ahead = ahead || info.role == SNNC_NEXT;
      if (info.role == SNNC_LABEL) {
        training = true;
        batch = info.shape[0];
        const std::string path = folder + "/labels.npy";
        info.type == SNNC_FLOAT32 ? take(snnc::read_npy<float>(path)) : take(snnc::read_npy<std::int32_t>(path));
        std::size_t wanted = 1;
        for (int32_t d = 1; d < info.rank; ++d)
          wanted *= info.shape[d];
        if (width != wanted)
          throw std::runtime_error("labels.npy must have " + std::to_string(wanted) + " elements per sample");
      }
    }
    if (!training)
      throw std::runtime_error("this project was compiled for inference; it has no loss to train with");
    for (const Column &input : inputs)
      if (input.data.count != samples || input.data.width != input.steps * input.width)
        throw std::runtime_error(input.name + ".npy must be [" + std::to_string(samples) + ", " + std::to_string(input.steps) + ", " +
                                 std::to_string(input.width) + "]");
    if (samples < batch)
      throw std::runtime_error("the data contain fewer samples than the batch size " + std::to_string(batch));
  }

  void add(const snnc_tensor &info, const std::string &folder) {
    Column input;
    input.name = info.name;
    input.steps = info.rank == 3 ? info.shape[0] : 1;
    input.width = info.shape[info.rank - 1];
    input.data = snnc::read_npy<float>(folder + "/" + input.name + ".npy");
    input.batch.resize(input.steps * info.shape[info.rank - 2] * input.width);
    inputs.push_back(std::move(input));
  }

  template <class T> void take(const snnc::Samples<T> &given) {
    static_assert(sizeof(T) == 4, "tensors have 4-byte elements");
    samples = given.count;
    width = given.width;
    targets.resize(given.values.size() * sizeof(T));
    std::memcpy(targets.data(), given.values.data(), targets.size());
  }

  /// Passes a batch to the session, as the current batch or (if `behind` is "_next") as the next one.
  void give(std::size_t first, const std::string &behind) {
    for (Column &input : inputs) {
      for (std::size_t t = 0; t < input.steps; ++t)
        for (std::size_t b = 0; b < batch; ++b)
          std::copy_n(&input.data.values[((first + b) * input.steps + t) * input.width], input.width,
                      &input.batch[(t * batch + b) * input.width]);
      check(snnc_set_tensor(session, (input.name + behind).c_str(), input.batch.data(), input.batch.size() * sizeof(float)) == 0);
    }
    check(snnc_set_tensor(session, ("labels" + behind).c_str(), &targets[4 * first * width], 4 * batch * width) == 0);
  }

  /// Runs a step on the batch that begins at sample `first`; `next` is the first sample of the following batch (`samples`: none).
  float step(std::size_t first, std::size_t next) {
    if (!given)
      give(first, "");
    given = ahead && next < samples;
    if (given)
      give(next, "_next");
    float loss = 0;
    check(snnc_train_step(session, &loss) == 0);
    return loss;
  }
};

int train(const std::string &folder, int epochs, const char *rate) {
  snnc_session *session = snnc_open(folder.c_str());
  check(session != nullptr);
  Trainer trainer(session, folder);
  if (rate != nullptr) {
    const float lr = static_cast<float>(std::atof(rate));
    check(snnc_set_tensor(session, "lr", &lr, sizeof lr) == 0);
  }
  for (int epoch = 1; epoch <= epochs; ++epoch) {
    double sum = 0;
    int steps = 0;
    const std::size_t batches = trainer.samples / trainer.batch;
    for (std::size_t i = 0; i < batches; ++i, ++steps) {
      const std::size_t after = epoch == epochs && i + 1 == batches ? trainer.samples : (i + 1) % batches * trainer.batch;
      sum += trainer.step(i * trainer.batch, after);
    }
    std::printf("epoch %d  loss %.6f\n", epoch, sum / steps);
    std::fflush(stdout);
  }
  check(snnc_save(session, (folder + "/trained.safetensors").c_str()) == 0);
  const std::string profile = snnc_profile(session);
  snnc::write_file(folder + "/profile.json", {profile.begin(), profile.end()});
  snnc_close(session);
  return 0;
}

} // namespace

int main(int argc, char **argv) {
  const std::string folder = argc > 1 ? argv[1] : ".";
  const int epochs = argc > 2 ? std::atoi(argv[2]) : 1;
  if (argc > 4 || epochs < 1 || folder == "-h" || folder == "--help") {
    std::fputs(USAGE, folder == "-h" || folder == "--help" ? stdout : stderr);
    return folder == "-h" || folder == "--help" ? 0 : 2;
  }
  try {
    return train(folder, epochs, argc > 3 ? argv[3] : nullptr);
  } catch (const std::exception &error) {
    std::fprintf(stderr, "train: %s\n", error.what());
    return 2;
  }
}
