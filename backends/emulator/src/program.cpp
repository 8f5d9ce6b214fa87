// Construction of control programs.
#include <poplar/Program.hpp>
#include <poplar/exceptions.hpp>

#include <algorithm>

#include "program_data.hpp"

namespace poplar::program {

using core::ProgramData;
using core::ProgramKind;

namespace {

std::shared_ptr<ProgramData> make(ProgramKind kind, const DebugContext &context, std::vector<Program> children = {}) {
  auto data = std::make_shared<ProgramData>();
  data->kind = kind;
  data->name = context.getPathName();
  data->children = std::move(children);
  return data;
}

/// The data for a change: copies of the program keep the old data.
ProgramData &own(std::shared_ptr<ProgramData> &data) {
  if (data.use_count() > 1)
    data = std::make_shared<ProgramData>(*data);
  return *data;
}

void requirePredicate(const char *program, const Tensor &predicate) {
  if (predicate.numElements() != 1)
    throw graph_connection_error(std::string(program) + ": the predicate '" + predicate.getName() + "' has " +
                                 std::to_string(predicate.numElements()) + " elements");
  const Type type = predicate.elementType();
  if (type != BOOL && type != INT && type != UNSIGNED_INT)
    throw type_error(std::string(program) + ": the predicate '" + predicate.getName() + "' is of type " + type.toString());
}

} // namespace

Program::Program() : data_(make(ProgramKind::Sequence, {})) {}
Program::Program(const Program &other) = default;
Program::Program(Program &&other) noexcept = default;
Program &Program::operator=(const Program &other) = default;
Program &Program::operator=(Program &&other) noexcept = default;
Program::~Program() = default;
bool Program::isEmpty() const { return data_->kind == ProgramKind::Sequence && data_->children.empty(); }

Sequence::Sequence(const DebugContext &context) { data_ = make(ProgramKind::Sequence, context); }
Sequence::Sequence(std::initializer_list<Program> programs, const DebugContext &context) {
  data_ = make(ProgramKind::Sequence, context, std::vector<Program>(programs));
}
Sequence::Sequence(const std::vector<Program> &programs, const DebugContext &context) {
  data_ = make(ProgramKind::Sequence, context, programs);
}
void Sequence::add(const Program &program) { own(data_).children.push_back(program); }
void Sequence::add_front(const Program &program) {
  std::vector<Program> &children = own(data_).children;
  children.insert(children.begin(), program);
}

Block::Block(const Program &program, const DebugContext &context) { data_ = make(ProgramKind::Sequence, context, {program}); }

Execute::Execute(ComputeSet computeSet, const DebugContext &context) {
  data_ = make(ProgramKind::Execute, context);
  data_->number = computeSet.id;
}

Repeat::Repeat(unsigned count, const Program &body, const DebugContext &context) {
  data_ = make(ProgramKind::Repeat, context, {body});
  data_->number = count;
}

RepeatWhileTrue::RepeatWhileTrue(const Program &condition, const Tensor &predicate, const Program &body, const DebugContext &context) {
  requirePredicate("RepeatWhileTrue", predicate);
  data_ = make(ProgramKind::WhileTrue, context, {condition, body});
  data_->source = predicate;
}

RepeatWhileFalse::RepeatWhileFalse(const Program &condition, const Tensor &predicate, const Program &body, const DebugContext &context) {
  requirePredicate("RepeatWhileFalse", predicate);
  data_ = make(ProgramKind::WhileFalse, context, {condition, body});
  data_->source = predicate;
}

If::If(const Tensor &predicate, const Program &trueBody, const Program &falseBody, const DebugContext &context) {
  requirePredicate("If", predicate);
  data_ = make(ProgramKind::If, context, {trueBody, falseBody});
  data_->source = predicate;
}

Switch::Switch(const Tensor &control, const DebugContext &context) {
  requirePredicate("Switch", control);
  data_ = make(ProgramKind::Switch, context);
  data_->source = control;
}

Switch::Switch(const Tensor &control, const std::vector<std::pair<std::int32_t, Program>> &cases, const DebugContext &context)
    : Switch(control, context) {
  for (const auto &entry : cases)
    add(entry.first, entry.second);
}

Switch::Switch(const Tensor &control, const std::vector<std::pair<std::int32_t, Program>> &cases, const Program &defaultCase,
               const DebugContext &context)
    : Switch(control, cases, context) {
  data_->children.push_back(defaultCase);
  data_->hasDefault = true;
}

Switch Switch::switchWithBoundsChecking(const Tensor &control, const std::vector<std::pair<std::int32_t, Program>> &cases,
                                        const DebugContext &context) {
  return Switch(control, cases, Abort("Switch: no case for the control value", context), context);
}

Switch &Switch::add(std::int32_t value, const Program &body) {
  ProgramData &data = own(data_);
  if (std::find(data.cases.begin(), data.cases.end(), value) != data.cases.end())
    throw control_program_error("Switch: there are two cases for " + std::to_string(value));
  data.children.insert(data.children.begin() + std::ptrdiff_t(data.cases.size()), body);
  data.cases.push_back(value);
  return *this;
}

Call::Call(Function function, const DebugContext &context) {
  data_ = make(ProgramKind::Call, context);
  data_->number = function;
}
Call::Call(const Graph &, Function function, const DebugContext &context) : Call(function, context) {}

Copy::Copy(const Tensor &source, const Tensor &destination, bool, const DebugContext &context) {
  if (source.elementType() != destination.elementType())
    throw type_error("Copy: '" + source.getName() + "' is of type " + source.elementType().toString() + ", '" + destination.getName() +
                     "' of type " + destination.elementType().toString());
  if (source.numElements() != destination.numElements())
    throw graph_connection_error("Copy: '" + source.getName() + "' has " + std::to_string(source.numElements()) + " elements, '" +
                                 destination.getName() + "' has " + std::to_string(destination.numElements()));
  data_ = make(ProgramKind::Copy, context);
  data_->source = source;
  data_->destination = destination;
}

namespace {
void requireStream(const DataStream &stream, const Tensor &tensor, bool toDevice) {
  if (stream.toDevice != toDevice)
    throw stream_connection_error("Copy: stream '" + stream.name + "' goes the other way");
  if (stream.type != tensor.elementType())
    throw type_error("Copy: stream '" + stream.name + "' is of type " + stream.type.toString() + ", '" + tensor.getName() + "' of type " +
                     tensor.elementType().toString());
  if (stream.elements != tensor.numElements())
    throw stream_connection_error("Copy: stream '" + stream.name + "' carries " + std::to_string(stream.elements) + " elements, '" +
                                  tensor.getName() + "' has " + std::to_string(tensor.numElements()));
}
} // namespace

Copy::Copy(const DataStream &stream, const Tensor &destination, bool, const DebugContext &context) {
  requireStream(stream, destination, true);
  data_ = make(ProgramKind::StreamIn, context);
  data_->stream = stream;
  data_->destination = destination;
}

Copy::Copy(const Tensor &source, const DataStream &stream, bool, const DebugContext &context) {
  requireStream(stream, source, false);
  data_ = make(ProgramKind::StreamOut, context);
  data_->stream = stream;
  data_->source = source;
}

namespace {
std::shared_ptr<ProgramData> remoteCopy(ProgramKind kind, const RemoteBuffer &buffer, const Tensor &tensor, const Tensor *offset,
                                        const DebugContext &context) {
  const std::string who = "Copy: remote buffer '" + buffer.name + "'";
  if (buffer.type != tensor.elementType())
    throw type_error(who + " is of type " + buffer.type.toString() + ", '" + tensor.getName() + "' of type " +
                     tensor.elementType().toString());
  if (offset && offset->elementType() != UNSIGNED_INT && offset->elementType() != INT)
    throw type_error(who + ": the offset '" + offset->getName() + "' is of type " + offset->elementType().toString() + ", not of whole numbers");
  if (offset && offset->rank() > 1)
    throw graph_connection_error(who + ": the offset '" + offset->getName() + "' of shape " + offset->shapeToString() + " is no list of rows");
  const std::size_t rows = offset ? offset->numElements() : 1;
  if (tensor.numElements() != rows * buffer.elements)
    throw stream_connection_error(who + " moves " + std::to_string(rows) + " rows of " + std::to_string(buffer.elements) + " elements, '" +
                                  tensor.getName() + "' has " + std::to_string(tensor.numElements()));
  auto data = make(kind, context);
  data->remote = buffer;
  (kind == ProgramKind::RemoteIn ? data->destination : data->source) = tensor;
  data->hasOffset = offset != nullptr;
  if (offset)
    data->offset = *offset;
  return data;
}
} // namespace

Copy::Copy(const RemoteBuffer &buffer, const Tensor &destination, const DebugContext &context) {
  data_ = remoteCopy(ProgramKind::RemoteIn, buffer, destination, nullptr, context);
}
Copy::Copy(const Tensor &source, const RemoteBuffer &buffer, const DebugContext &context) {
  data_ = remoteCopy(ProgramKind::RemoteOut, buffer, source, nullptr, context);
}
Copy::Copy(const RemoteBuffer &buffer, const Tensor &destination, const Tensor &offset, const DebugContext &context) {
  data_ = remoteCopy(ProgramKind::RemoteIn, buffer, destination, &offset, context);
}
Copy::Copy(const Tensor &source, const RemoteBuffer &buffer, const Tensor &offset, const DebugContext &context) {
  data_ = remoteCopy(ProgramKind::RemoteOut, buffer, source, &offset, context);
}

Copy::Copy(const FunctionBuffer &buffer, const Function &function, const DebugContext &context) {
  if (buffer.function != function)
    throw graph_connection_error("Copy: a buffer of function " + std::to_string(buffer.function) + " holds no code of function " +
                                 std::to_string(function));
  data_ = make(ProgramKind::Sequence, context);
}
Copy::Copy(const Function &function, const FunctionBuffer &buffer, const DebugContext &context) : Copy(buffer, function, context) {}

WriteUndef::WriteUndef(const Tensor &tensor, const DebugContext &context) {
  data_ = make(ProgramKind::WriteUndef, context);
  data_->destination = tensor;
}

Sync::Sync(SyncType type, const DebugContext &context) {
  data_ = make(ProgramKind::Sync, context);
  data_->number = type != SyncType::INTERNAL;
}

PrintTensor::PrintTensor(const Tensor &tensor, const DebugContext &context) : PrintTensor(tensor.getName(), tensor, context) {}
PrintTensor::PrintTensor(const std::string &title, const Tensor &tensor, const DebugContext &context) {
  data_ = make(ProgramKind::Print, context);
  data_->name = title;
  data_->source = tensor;
}

PrintTensor::PrintTensor(const Tensor &tensor, const PrintTensorFmt &format, const DebugContext &context)
    : PrintTensor(tensor.getName(), tensor, format, context) {}
PrintTensor::PrintTensor(const std::string &title, const Tensor &tensor, const PrintTensorFmt &format, const DebugContext &context)
    : PrintTensor(title, tensor, context) {
  data_->format = format;
}

CrossReplicaCopy::CrossReplicaCopy(const Tensor &source, const Tensor &destination, const std::map<unsigned, unsigned> &replicaMap,
                                   const DebugContext &context) {
  // Checks of a copy.
  data_ = std::make_shared<ProgramData>(*Copy(source, destination, false, context).data());
  data_->kind = ProgramKind::CrossReplica;
  data_->replicas = replicaMap;
}

AssumeEqualAcrossReplicas::AssumeEqualAcrossReplicas(const Tensor &tensor, const DebugContext &context) {
  data_ = make(ProgramKind::AssumeEqual, context);
  data_->source = tensor;
}

ErrorProgram::ErrorProgram(const std::string &message, const Tensor &debugTensor, const DebugContext &context) {
  data_ = make(ProgramKind::Error, context);
  data_->name = message;
  data_->source = debugTensor;
}

Abort::Abort(const DebugContext &context) { data_ = make(ProgramKind::Abort, context); }
Abort::Abort(const std::string &message, const DebugContext &) { data_ = make(ProgramKind::Abort, message); }

AbortOnCondition::AbortOnCondition(const Tensor &predicate, const DebugContext &context) {
  requirePredicate("AbortOnCondition", predicate);
  data_ = make(ProgramKind::AbortIf, context);
  data_->source = predicate;
}
AbortOnCondition::AbortOnCondition(const Tensor &predicate, const std::string &message, const DebugContext &)
    : AbortOnCondition(predicate, DebugContext(message)) {}

} // namespace poplar::program
