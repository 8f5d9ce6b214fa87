// Control programs.
#ifndef SNNC_POPLAR_PROGRAM_HPP
#define SNNC_POPLAR_PROGRAM_HPP

#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <poplar/DataStream.hpp>
#include <poplar/DebugContext.hpp>
#include <poplar/HostFunctionCallback.hpp>
#include <poplar/PrintTensor.hpp>
#include <poplar/SyncType.hpp>
#include <poplar/Tensor.hpp>
#include <poplar/VertexRef.hpp>
#include <poplar/core/Language.hpp>

namespace poplar {

class Graph;

namespace core {
struct ProgramData;
}

namespace program {

/// Base of all programs: a value; copies do not change with the original.
class Program {
public:
  Program();
  Program(const Program &other);
  Program(Program &&other) noexcept;
  Program &operator=(const Program &other);
  Program &operator=(Program &&other) noexcept;
  ~Program();
  bool isEmpty() const;

  /// Internal to the emulator.
  explicit Program(std::shared_ptr<core::ProgramData> data) : data_(std::move(data)) {}
  const std::shared_ptr<core::ProgramData> &data() const { return data_; }
  /// Whether both are the same program, not just two with the same effect.
  friend bool operator==(const Program &a, const Program &b) { return a.data_ == b.data_; }
  friend bool operator!=(const Program &a, const Program &b) { return !(a == b); }

protected:
  std::shared_ptr<core::ProgramData> data_;
};

class Sequence : public Program {
public:
  Sequence() : Sequence(DebugContext()) {}
  explicit Sequence(const DebugContext &context);
  Sequence(std::initializer_list<Program> programs, const DebugContext &context = {});
  explicit Sequence(const std::vector<Program> &programs, const DebugContext &context = {});
  template <class First, class... Rest,
            class = core::EnableIf<std::is_base_of<Program, typename std::decay<First>::type>::value && !(sizeof...(Rest) == 0 && std::is_base_of<Sequence, typename std::decay<First>::type>::value)>>
  Sequence(First &&first, Rest &&...rest) : Sequence(DebugContext()) {
    add(std::forward<First>(first));
    const int inOrder[] = {0, (addOne(std::forward<Rest>(rest)), 0)...};
    (void)inOrder;
  }
  void add(const Program &program);
  void add_back(const Program &program) { add(program); }
  void add_front(const Program &program);

private:
  void addOne(const Program &program) { add(program); }
  void addOne(const DebugContext &) {}
};

class Block : public Program {
public:
  explicit Block(const Program &program, const DebugContext &context = {});
};

class Execute : public Program {
public:
  explicit Execute(ComputeSet computeSet, const DebugContext &context = {});
};

class Repeat : public Program {
public:
  Repeat(unsigned count, const Program &body, const DebugContext &context = {});
};

class RepeatWhileTrue : public Program {
public:
  RepeatWhileTrue(const Program &condition, const Tensor &predicate, const Program &body, const DebugContext &context = {});
};

class RepeatWhileFalse : public Program {
public:
  RepeatWhileFalse(const Program &condition, const Tensor &predicate, const Program &body, const DebugContext &context = {});
};

class If : public Program {
public:
  If(const Tensor &predicate, const Program &trueBody, const Program &falseBody, const DebugContext &context = {});
};

class Switch : public Program {
public:
  explicit Switch(const Tensor &control, const DebugContext &context = {});
  Switch(const Tensor &control, const std::vector<std::pair<std::int32_t, Program>> &cases, const DebugContext &context = {});
  Switch(const Tensor &control, const std::vector<std::pair<std::int32_t, Program>> &cases, const Program &defaultCase,
         const DebugContext &context = {});
  static Switch switchWithBoundsChecking(const Tensor &control, const std::vector<std::pair<std::int32_t, Program>> &cases,
                                         const DebugContext &context = {});
  Switch &add(std::int32_t value, const Program &body);
};

class Call : public Program {
public:
  explicit Call(Function function, const DebugContext &context = {});
  Call(const Graph &graph, Function function, const DebugContext &context = {});
  /// Sends the inputs to the host, calls the function there and receives the outputs.
  Call(const HostFunction &function, ArrayRef<Tensor> inputs, ArrayRef<Tensor> outputs, const DebugContext &context = {});
};

class Copy : public Program {
public:
  Copy(const Tensor &source, const Tensor &destination, bool dontOutline = false, const DebugContext &context = {});
  Copy(const DataStream &stream, const Tensor &destination, bool optimiseMemory = false, const DebugContext &context = {});
  Copy(const Tensor &source, const DataStream &stream, bool optimiseMemory = false, const DebugContext &context = {});
  /// The first row of a remote buffer.
  Copy(const RemoteBuffer &buffer, const Tensor &destination, const DebugContext &context = {});
  Copy(const Tensor &source, const RemoteBuffer &buffer, const DebugContext &context = {});
  /// The rows that `offset` names at run time, one after the other in the tensor.
  Copy(const RemoteBuffer &buffer, const Tensor &destination, const Tensor &offset, const DebugContext &context = {});
  Copy(const Tensor &source, const RemoteBuffer &buffer, const Tensor &offset, const DebugContext &context = {});
  /// Copies the code of a function to its tiles, where the emulator already has it: no data moves and no time passes.
  Copy(const FunctionBuffer &buffer, const Function &function, const DebugContext &context = {});
  Copy(const Function &function, const FunctionBuffer &buffer, const DebugContext &context = {});
};

class WriteUndef : public Program {
public:
  explicit WriteUndef(const Tensor &tensor, const DebugContext &context = {});
};

class Sync : public Program {
public:
  explicit Sync(SyncType type, const DebugContext &context = {});
};

class PrintTensor : public Program {
public:
  explicit PrintTensor(const Tensor &tensor, const DebugContext &context = {});
  PrintTensor(const Tensor &tensor, const PrintTensorFmt &format, const DebugContext &context = {});
  PrintTensor(const std::string &title, const Tensor &tensor, const DebugContext &context = {});
  PrintTensor(const std::string &title, const Tensor &tensor, const PrintTensorFmt &format, const DebugContext &context = {});
  PrintTensor(const char *title, const Tensor &tensor, const DebugContext &context = {}) : PrintTensor(std::string(title), tensor, context) {}
};

/// Sends `source` of replica r to `destination` of replica replicaMap[r]; every replica sends and receives once.
class CrossReplicaCopy : public Program {
public:
  CrossReplicaCopy(const Tensor &source, const Tensor &destination, const std::map<unsigned, unsigned> &replicaMap,
                   const DebugContext &context = {});
};

/// The program may rely on the tensor being the same in every replica; the emulator checks this.
class AssumeEqualAcrossReplicas : public Program {
public:
  explicit AssumeEqualAcrossReplicas(const Tensor &tensor, const DebugContext &context = {});
};

/// Stops with a message and the tensor's value.
class ErrorProgram : public Program {
public:
  ErrorProgram(const std::string &message, const Tensor &debugTensor, const DebugContext &context = {});
};

class Abort : public Program {
public:
  explicit Abort(const DebugContext &context = {});
  explicit Abort(const std::string &message, const DebugContext &context = {});
  explicit Abort(const char *message, const DebugContext &context = {}) : Abort(std::string(message), context) {}
};

class AbortOnCondition : public Program {
public:
  explicit AbortOnCondition(const Tensor &predicate, const DebugContext &context = {});
  AbortOnCondition(const Tensor &predicate, const std::string &message, const DebugContext &context = {});
  AbortOnCondition(const Tensor &predicate, const char *message, const DebugContext &context = {})
      : AbortOnCondition(predicate, std::string(message), context) {}
};

/// One line per program, with nested programs below it.
void dumpProgram(const Graph &graph, const Program &program, std::ostream &out);
/// The kind of the program, in a word.
std::ostream &operator<<(std::ostream &os, const Program &program);

} // namespace program
} // namespace poplar

#endif
