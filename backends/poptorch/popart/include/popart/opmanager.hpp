// Substitute for the registry of PopART operations.
#ifndef SNNC_POPART_OPMANAGER_HPP
#define SNNC_POPART_OPMANAGER_HPP

#include <popart/attributes.hpp>
#include <popart/op.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace popart {

class OpDefinition {
public:
  struct Input {
    std::string name;
    std::vector<DataType> supportedTensors;
  };
  using Output = Input;
  struct Attribute {
    std::string supportedValuesRegex;
  };
  using DataTypes = std::vector<DataType>;
  using Inputs = std::vector<Input>;
  using Outputs = std::vector<Output>;
  using Attributes = std::map<std::string, Attribute>;

  OpDefinition() = default;
  OpDefinition(Inputs, Outputs, Attributes) {}
};

using OpDefinitions = std::map<OperatorIdentifier, OpDefinition, OperatorIdentifierLess>;

class OpCreatorInfo {
public:
  const OperatorIdentifier &opid;
  const Op::Settings &settings;
  const Attributes &attributes;
};

class OpManager {
public:
  using OpFactoryFunc = std::function<std::unique_ptr<Op>(const OpCreatorInfo &)>;

  static void registerOp(const OperatorIdentifier &id, OpFactoryFunc make);
  /// Only in the substitute: creates an operation by its identifier.
  static std::unique_ptr<Op> create(const OperatorIdentifier &id, const Attributes &attributes);
};

template <class OP> class OpCreator {
public:
  OpCreator(const OpDefinitions &definitions, bool = true) {
    for (const auto &each : definitions)
      OpManager::registerOp(each.first, [](const OpCreatorInfo &info) -> std::unique_ptr<Op> { return std::make_unique<OP>(info.opid, info.settings); });
  }
  OpCreator(const OpDefinitions &definitions, OpManager::OpFactoryFunc make, bool = true) {
    for (const auto &each : definitions)
      OpManager::registerOp(each.first, make);
  }
};

} // namespace popart

#endif
