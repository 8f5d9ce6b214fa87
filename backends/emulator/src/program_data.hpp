// The tree behind a Program.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <poplar/Program.hpp>

namespace poplar::core {

enum class ProgramKind {
  Sequence, Execute, Repeat, WhileTrue, WhileFalse, If, Switch, Call, Copy, StreamIn, StreamOut, RemoteIn, RemoteOut, WriteUndef, Sync, Print, Abort, AbortIf,
  CrossReplica, AssumeEqual, Error, CycleStamp
};

struct ProgramData {
  ProgramKind kind = ProgramKind::Sequence;
  std::string name;
  std::vector<program::Program> children;
  /// Repeat count, compute set, function.
  std::uint32_t number = 0;
  Tensor source, destination;
  DataStream stream;
  RemoteBuffer remote;
  /// The copied rows of `remote`; if invalid, the first row.
  Tensor offset;
  bool hasOffset = false;
  std::vector<std::int32_t> cases;
  bool hasDefault = false;
  PrintTensorFmt format;
  /// The destination replica of each replica.
  std::map<unsigned, unsigned> replicas;
};

} // namespace poplar::core
