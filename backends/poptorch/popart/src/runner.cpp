// Runs single operations on the emulator, each in its own graph, so that only tensors are exchanged between them.
#include <popart/opmanager.hpp>
#include <popart/popx/opxmanager.hpp>

#include <poplar/DeviceManager.hpp>
#include <poplar/Engine.hpp>
#include <poplar/IPUModel.hpp>
#include <poplar/Program.hpp>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace {

using popart::DataType;
using popart::Op;
using popart::TensorInfo;

thread_local std::string last_error;

poplar::Device device_of(const std::string &version, unsigned tiles, unsigned ipus) {
  poplar::IPUModel model(version.c_str());
  model.numIPUs = static_cast<int>(ipus);
  if (tiles != 0)
    model.tilesPerIPU = tiles;
  return model.createDevice();
}

poplar::Type type_of(const TensorInfo &info) {
  switch (info.dataType()) {
  case DataType::FLOAT:
    return poplar::FLOAT;
  case DataType::INT32:
    return poplar::INT;
  default:
    throw popart::error("the substitute for PopART supports only float and int32 tensors");
  }
}

/// A lowered operation: its graph is that of the first IPU, as if a block put it there.
class Running {
public:
  Running(std::unique_ptr<Op> made, const std::string &machine, unsigned tile_number, unsigned ipu_number)
      : op(std::move(made)), version(machine), tiles(tile_number), ipus(ipu_number), device(device_of(machine, tile_number, ipu_number)),
        graph(device.getTarget()), own(ipu_number == 1 ? graph.getTopLevelGraph() : graph.createVirtualGraph(0, device.getTarget().getTilesPerIPU())),
        lowering(own) {}

  /// Lowers the operation. `forward` is given for a gradient: shared inputs have the layout that the forward operation chose.
  void lower(Op *forward = nullptr) {
    op->setup();
    opx = popart::popx::OpxManager::createOpx(op.get(), &lowering);
    const auto first = forward ? popart::popx::OpxManager::createOpx(forward, &lowering) : nullptr;
    for (const auto &[index, info] : op->inputs)
      lowering.inputs.emplace(index, input(index, info, first.get()));
    poplar::program::Sequence program;
    opx->grow(program);
    for (const auto &[index, info] : op->outputs) {
      if (lowering.outputs.count(index) == 0)
        throw popart::error("{} did not return output {}", op->opid, index);
      if (reaches_others(lowering.outputs.at(index)))
        throw popart::error("{} returns output {} on tiles of other IPUs than its own", op->opid, index);
      graph.createHostRead("out" + std::to_string(index), lowering.outputs.at(index));
    }
    engine = std::make_unique<poplar::Engine>(graph, program);
    engine->load(device);
  }

  void run(const void *const *in, void *const *out) {
    for (const auto &[index, info] : op->inputs)
      engine->writeTensor("in" + std::to_string(index), in[index], static_cast<const char *>(in[index]) + bytes(info));
    engine->run(0);
    for (const auto &[index, info] : op->inputs) {
      std::vector<char> kept(bytes(info));
      engine->readTensor("in" + std::to_string(index), kept.data(), kept.data() + kept.size());
      if (std::memcmp(kept.data(), in[index], kept.size()) != 0)
        throw popart::error("{} writes its input {} in place", op->opid, index);
    }
    for (const auto &[index, info] : op->outputs)
      engine->readTensor("out" + std::to_string(index), out[index], static_cast<char *>(out[index]) + bytes(info));
  }

  const char *profile() {
    profiled = engine->getEmulatorProfile().toJson();
    return profiled.c_str();
  }

  std::unique_ptr<Op> op;
  std::string version;
  unsigned tiles, ipus;

private:
  poplar::Device device;
  poplar::Graph graph, own;
  popart::popx::Devicex lowering;
  std::unique_ptr<popart::popx::Opx> opx;
  std::unique_ptr<poplar::Engine> engine;
  std::string profiled;

  bool reaches_others(const poplar::Tensor &tensor) const {
    const auto mapping = graph.getTileMapping(tensor);
    const auto others = mapping.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(mapping.size(), device.getTarget().getTilesPerIPU()));
    return std::any_of(others, mapping.end(), [](const auto &held) { return !held.empty(); });
  }

  static std::size_t bytes(const TensorInfo &info) { return static_cast<std::size_t>(info.nelms()) * 4; }

  poplar::Tensor input(int index, const TensorInfo &info, const popart::popx::Opx *first) {
    const std::string name = "in" + std::to_string(index);
    const popart::popx::Opx *maker = opx.get();
    int at = index;
    if (first)
      for (const popart::GradInOutMapper &each : op->gradInputInfo())
        if (each.iGrad == index && each.type == popart::GradOpInType::In) {
          maker = first;
          at = each.iNonGrad;
        }
    const poplar::Tensor made = creates(*maker, at) ? maker->createInput(at, poplar::DebugNameAndId(name)) : spread(name, info);
    if (made.shape() != info.shape_szt())
      throw popart::error("{} creates input {} with a different shape", op->opid, index);
    graph.createHostWrite(name, made);
    graph.createHostRead(name, made);
    return made;
  }

  static bool creates(const popart::popx::Opx &maker, int index) {
    return maker.getInputCreatorType(index) == popart::popx::InputCreatorType::CanCreate && maker.mustExistBeforeCreate(index).empty();
  }

  /// Spreads a tensor that no operation creates evenly over all tiles, as PopART does.
  poplar::Tensor spread(const std::string &name, const TensorInfo &info) {
    const poplar::Tensor made = own.addVariable(type_of(info), info.shape_szt(), name);
    const poplar::Tensor flat = made.flatten();
    const std::size_t n = flat.numElements(), number = own.getTarget().getNumTiles(), each = std::max<std::size_t>((n + number - 1) / number, 32);
    for (std::size_t begin = 0, tile = 0; begin < n; begin += each, ++tile)
      own.setTileMapping(flat.slice(begin, std::min(begin + each, n)), static_cast<unsigned>(tile));
    return made;
  }
};

/// Calls `work`; if it throws, stores the error and returns a default value.
template <class Work> auto guarded(const Work &work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception &found) {
    last_error = found.what();
  } catch (...) {
    last_error = "an unknown exception";
  }
  return decltype(work()){};
}

} // namespace

extern "C" {

const char *snnc_popart_error(void) { return last_error.c_str(); }

/// Opens an operation; `sizes` contains the concatenated shapes of all inputs. Returns null on an error.
void *snnc_popart_open(const char *domain, const char *name, unsigned version, unsigned attributes, const char *const *keys,
                       const char *const *values, unsigned inputs, const unsigned *ranks, const std::int64_t *sizes, const char *machine,
                       unsigned tiles, unsigned ipus) {
  return guarded([&]() -> void * {
    std::map<std::string, std::string> given;
    for (unsigned i = 0; i < attributes; ++i)
      given[keys[i]] = values[i];
    auto running = std::make_unique<Running>(popart::OpManager::create({domain, name, version}, popart::Attributes(given)), machine, tiles, ipus);
    for (unsigned i = 0; i < inputs; sizes += ranks[i], ++i)
      running->op->inputs[static_cast<int>(i)] = TensorInfo(DataType::FLOAT, popart::Shape(sizes, sizes + ranks[i]));
    running->lower();
    return running.release();
  });
}

/// Opens the gradient operation. Returns null if the operation has none, or on an error.
void *snnc_popart_open_gradient(void *forward) {
  return guarded([&]() -> void * {
    last_error = "the operation has no gradient";
    const auto *of = static_cast<Running *>(forward);
    auto found = of->op->getGradOps();
    if (found.empty())
      return nullptr;
    if (found.size() > 1)
      throw popart::error("the substitute for PopART supports only one operation for all gradients");
    auto running = std::make_unique<Running>(std::move(found[0]), of->version, of->tiles, of->ipus);
    for (const popart::GradInOutMapper &each : running->op->gradInputInfo())
      running->op->inputs[each.iGrad] = each.type == popart::GradOpInType::In ? of->op->inInfo(each.iNonGrad) : of->op->outInfo(each.iNonGrad);
    running->lower(of->op.get());
    return running.release();
  });
}

void snnc_popart_close(void *opened) { delete static_cast<Running *>(opened); }

int snnc_popart_inputs(void *opened) { return static_cast<int>(static_cast<Running *>(opened)->op->inputs.size()); }

int snnc_popart_outputs(void *opened) { return static_cast<int>(static_cast<Running *>(opened)->op->outputs.size()); }

/// Returns the rank of an output and writes its shape to `sizes`, which has room for 8 axes.
int snnc_popart_output_shape(void *opened, int index, std::int64_t *sizes) {
  return guarded([&] {
    const popart::Shape &shape = static_cast<Running *>(opened)->op->outInfo(index).shape();
    std::copy_n(shape.begin(), std::min<std::size_t>(shape.size(), 8), sizes);
    return static_cast<int>(shape.size());
  });
}

/// Returns the kind of input `index` of a gradient operation: 0: a forward input, 1: a forward output, 2: the gradient of an output.
int snnc_popart_gradient_input(void *opened, int index, int *of_forward) {
  return guarded([&] {
    for (const popart::GradInOutMapper &each : static_cast<Running *>(opened)->op->gradInputInfo())
      if (each.iGrad == index) {
        *of_forward = each.iNonGrad;
        return static_cast<int>(each.type);
      }
    throw popart::error("the gradient operation has no input {}", index);
  });
}

/// Returns the index of the forward input whose gradient output `index` is.
int snnc_popart_gradient_output(void *opened, int index) {
  return guarded([&] { return static_cast<Running *>(opened)->op->gradOutToNonGradIn().at(index); });
}

/// Returns the emulator's profile of all runs as JSON, valid until the next call; null if it cannot be read.
const char *snnc_popart_profile(void *opened) {
  return guarded([&]() -> const char * { return static_cast<Running *>(opened)->profile(); });
}

/// Runs the operation; returns 0 on success.
int snnc_popart_run(void *opened, const void *const *in, void *const *out) {
  bool done = false;
  guarded([&] {
    static_cast<Running *>(opened)->run(in, out);
    done = true;
    return 0;
  });
  return done ? 0 : 1;
}
}
