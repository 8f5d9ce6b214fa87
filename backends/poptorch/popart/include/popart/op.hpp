// Substitute for popart::Op, as custom operations override it; see the chapter "Custom operators" of the PopART user guide.
#ifndef SNNC_POPART_OP_HPP
#define SNNC_POPART_OP_HPP

#include <popart/error.hpp>
#include <popart/names.hpp>
#include <popart/operatoridentifier.hpp>
#include <popart/opserialiser.hpp>
#include <popart/tensorinfo.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace popart {

enum class GradOpInType { In, Out, GradOut };

class GradInOutMapper {
public:
  GradInOutMapper(InIndex of_gradient, int of_forward, GradOpInType kind) : iGrad(of_gradient), iNonGrad(of_forward), type(kind) {}

  InIndex iGrad;
  int iNonGrad;
  GradOpInType type;
};

class Op {
public:
  struct Settings {
    std::string name;
  };

  Op(const OperatorIdentifier &id, const Settings &chosen) : opid(id), settings(chosen) {}
  virtual ~Op() = default;

  virtual std::unique_ptr<Op> clone() const = 0;
  virtual void setup() {}
  virtual std::vector<std::unique_ptr<Op>> getGradOps() { return {}; }
  virtual const std::vector<GradInOutMapper> &gradInputInfo() const { throw error("{} is not a gradient operation", opid); }
  virtual const std::map<int, int> &gradOutToNonGradIn() const { throw error("{} is not a gradient operation", opid); }
  virtual void appendAttributes(OpSerialiserBase &) const {}
  virtual void appendOutlineAttributes(OpSerialiserBase &) const {}
  virtual float getSubgraphValue() const = 0;
  virtual bool requiresRandomSeed() const { return false; }

  float getHighSubgraphValue() const { return 1000.0f; }
  float getLowSubgraphValue() const { return 0.1f; }

  TensorInfo &inInfo(InIndex index) { return inputs.at(index); }
  const TensorInfo &inInfo(InIndex index) const { return inputs.at(index); }
  TensorInfo &outInfo(OutIndex index) { return outputs[index]; }
  const TensorInfo &outInfo(OutIndex index) const { return outputs.at(index); }

  Settings &getSettings() { return settings; }
  const Settings &getSettings() const { return settings; }

  OperatorIdentifier opid;
  Settings settings;

  /// Only in the substitute: the connected inputs, and the outputs that setup() reported.
  std::map<int, TensorInfo> inputs, outputs;
};

} // namespace popart

#endif
