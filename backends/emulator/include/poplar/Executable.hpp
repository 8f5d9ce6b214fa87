// A graph and its programs, compiled.
#ifndef SNNC_POPLAR_EXECUTABLE_HPP
#define SNNC_POPLAR_EXECUTABLE_HPP

#include <functional>
#include <iosfwd>
#include <memory>
#include <vector>

#include <poplar/ArrayRef.hpp>
#include <poplar/Graph.hpp>
#include <poplar/OptionFlags.hpp>
#include <poplar/Program.hpp>

namespace poplar {

/// Completed steps, total steps.
using ProgressFunc = std::function<void(int, int)>;

class Executable {
public:
  Executable() = default;
  /// Graph, programs, options and the compiled codelets: another process on a machine of this kind can run it.
  void serialize(std::ostream &stream) const;
  /// Reads exactly the bytes that serialize wrote. Throws graph_object_load_error for any other contents of the stream.
  static Executable deserialize(std::istream &stream, bool checkPackageHash = true);
  static Executable deserialize(std::unique_ptr<std::istream> stream, bool checkPackageHash = true);
  bool valid() const { return graph_ != nullptr; }

  /// Internal to the emulator.
  Executable(std::shared_ptr<core::GraphData> graph, std::vector<program::Program> programs, OptionFlags options);
  const std::shared_ptr<core::GraphData> &graph() const { return graph_; }
  const std::vector<program::Program> &programs() const { return programs_; }
  const OptionFlags &options() const { return options_; }

private:
  std::shared_ptr<core::GraphData> graph_;
  std::vector<program::Program> programs_;
  OptionFlags options_;
};

/// The data from which an Engine is made later.
Executable compileGraph(const Graph &graph, ArrayRef<program::Program> programs, const OptionFlags &options = {}, ProgressFunc progress = {},
                        const DebugContext &context = {});

} // namespace poplar

#endif
