// Statistics of batch normalisations, computed by the operation itself from the moments that blocks measure.
#ifndef SNNC_BATCH_STATISTICS_HPP
#define SNNC_BATCH_STATISTICS_HPP

#include "layout.hpp"
#include "operation_graph.hpp"

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>
#include <popops/ElementWise.hpp>
#include <popops/Expr.hpp>
#include <popops/Reduce.hpp>
#include <popops/codelets.hpp>

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

namespace snnc {

/// A batch normalisation: the names of its parameters, and the tensors with which a pass computes its statistics.
struct Normalisation {
  std::string mean, variance, shift, slope, epsilon, gain, gain_gradient, bias_gradient;
  /// The largest number of other normalisations on a path to it.
  unsigned level;
  /// Whether a gradient passes it.
  bool passed;
  std::vector<std::size_t> shape;
  /// Dimensions of `shape` that share their statistics: those of space.
  std::vector<std::size_t> shared;
  const Population *population;
  /// For each block: the mean of each of its neurons, then the sum of squared distances from it.
  const Parts *moments;
};

class BatchStatistics {
public:
  BatchStatistics(poplar::Graph &owner, const Normalisation &of, std::size_t time_steps, std::size_t samples)
      : graph(owner), norm(of), steps(time_steps), batch(samples) {
    popops::addCodelets(graph); // PopART has added them; Poplar ignores codelets that a graph already has
  }

  /// Returns a variable with a number for each neuron, on the tiles of the first blocks with these neurons.
  poplar::Tensor variable(const std::string &name) const {
    const poplar::Tensor made = graph.addVariable(poplar::FLOAT, {norm.population->neurons}, name);
    unsigned placed = 0;
    for (const Block &b : norm.population->blocks)
      if (b.first == placed) {
        graph.setTileMapping(made.slice(b.first, b.first + b.count), b.tile);
        placed += b.count;
      }
    return made;
  }

  /// Sets mean and variance such that the layer returns its input.
  void pass_on(poplar::program::Sequence &to, const Named &values) const {
    namespace pe = popops::expr;
    fill(to, values.at(norm.mean), 0.0f);
    const poplar::Tensor eps = values.at(norm.epsilon).flatten(), variance = values.at(norm.variance).flatten();
    popops::mapWithOutput(graph, pe::Sub(pe::Const(1.0f), pe::_1), {every(eps, variance.numElements())}, variance, to, "N1 identity");
  }

  /// Computes mean and variance of a batch from the moments of its blocks (Chan, Golub & LeVeque 1983, DOI 10.2307/2683386).
  void merge(poplar::program::Sequence &to, const Named &values) const {
    namespace pe = popops::expr;
    const Shares shares = of_blocks();
    const float share = 1.0f / static_cast<float>(count());
    std::vector<std::size_t> dimensions{0};
    for (const std::size_t dimension : norm.shared)
      dimensions.push_back(dimension + 1);
    const poplar::Tensor parts =
        popops::map(graph, pe::Mul(pe::Mul(pe::_1, pe::_2), pe::Const(share)), {shares.means, shares.counts}, to, "N2 shares of means");
    const poplar::Tensor mean = wide(popops::reduce(graph, parts, dimensions, {popops::Operation::ADD}, to, "N2 mean"));
    to.add(poplar::program::Copy(mean.flatten(), values.at(norm.mean), false, "N2 mean"));
    const poplar::Tensor means = mean.expand({0}).broadcast(static_cast<unsigned>(shares.means.dim(0)), 0);
    const poplar::Tensor squares =
        popops::map(graph, pe::Mul(pe::Add(pe::_1, pe::Mul(pe::_2, pe::Square(pe::Sub(pe::_3, pe::_4)))), pe::Const(share)),
                    {shares.squares, shares.counts, shares.means, means}, to, "N2 squared distances");
    const poplar::Tensor variance = wide(popops::reduce(graph, squares, dimensions, {popops::Operation::ADD}, to, "N2 variance"));
    to.add(poplar::program::Copy(variance.flatten(), values.at(norm.variance), false, "N2 variance"));
  }

  /// Computes the terms of the gradient through mean and variance, from the gradients of the gain and the bias that follow.
  void through(poplar::program::Sequence &to, const Named &values, const poplar::Tensor &of_gain, const poplar::Tensor &of_bias) const {
    namespace pe = popops::expr;
    const poplar::Tensor gain = wide(values.at(norm.gain)).flatten();
    const auto term = pe::Mul(pe::Mul(pe::_1, pe::_2), pe::Const(-1.0f / static_cast<float>(count())));
    popops::mapWithOutput(graph, term, {gain, wide(of_bias).flatten()}, values.at(norm.shift), to, "N3 shift");
    popops::mapWithOutput(graph, term, {gain, wide(of_gain).flatten()}, values.at(norm.slope), to, "N3 slope");
  }

  /// Sets all elements of a tensor to a number.
  void fill(poplar::program::Sequence &to, const poplar::Tensor &tensor, float number) const {
    const poplar::Tensor constant = graph.addConstant<float>(poplar::FLOAT, {1}, number);
    graph.setTileMapping(constant, norm.population->blocks.front().tile);
    to.add(poplar::program::Copy(every(constant, tensor.numElements()), tensor.flatten()));
  }

private:
  poplar::Graph &graph;
  const Normalisation &norm;
  std::size_t steps, batch;

  /// Moments of all blocks and the number of values in each, [blocks of a neuron][shape]; the number is 0 where a neuron has fewer blocks.
  struct Shares {
    poplar::Tensor means, squares, counts;
  };

  /// Neurons [begin, end) of a block; `values` of each are in its moments.
  struct Piece {
    const Block *block;
    unsigned begin, end;
    std::size_t values;
  };

  /// Returns pieces that cover all neurons once for each block of a neuron.
  std::vector<Piece> pieces() const {
    const Population &p = *norm.population;
    std::set<unsigned> ends{p.neurons};
    for (const Block &b : p.blocks)
      ends.insert(b.first + b.count);
    std::size_t most = 1;
    std::vector<Piece> found;
    for (std::size_t k = 0; k < most; ++k) {
      unsigned begin = 0;
      for (const unsigned end : ends) {
        std::vector<const Block *> blocks;
        for (const Block &b : p.blocks)
          if (b.first <= begin && end <= b.first + b.count)
            blocks.push_back(&b);
        most = std::max(most, blocks.size());
        const Block *own = blocks[std::min(k, blocks.size() - 1)];
        found.push_back({own, begin, end, k < blocks.size() ? steps * own->samples : 0});
        begin = end;
      }
    }
    return found;
  }

  Shares of_blocks() const {
    std::vector<poplar::Tensor> means, squares, counts;
    for (const Piece &p : pieces()) {
      const Block &b = *p.block;
      const poplar::Tensor both = (*norm.moments)[b.index];
      means.push_back(both.slice(p.begin - b.first, p.end - b.first));
      squares.push_back(both.slice(b.count + p.begin - b.first, b.count + p.end - b.first));
      const poplar::Tensor values = graph.addConstant<float>(poplar::FLOAT, {1}, static_cast<float>(p.values));
      graph.setTileMapping(values, b.tile);
      counts.push_back(every(values, p.end - p.begin));
    }
    const poplar::Tensor whole = poplar::concat(means);
    std::vector<std::size_t> shape{whole.numElements() / norm.population->neurons};
    shape.insert(shape.end(), norm.shape.begin(), norm.shape.end());
    return {whole.reshape(shape), poplar::concat(squares).reshape(shape), poplar::concat(counts).reshape(shape)};
  }

  /// Returns the number of values in a mean.
  std::size_t count() const {
    std::size_t found = steps * batch;
    for (const std::size_t dimension : norm.shared)
      found *= norm.shape[dimension];
    return found;
  }

  /// Returns statistics of channels as numbers of neurons, [shape].
  poplar::Tensor wide(const poplar::Tensor &of_channels) const {
    std::vector<std::size_t> shape = norm.shape;
    for (const std::size_t dimension : norm.shared)
      shape[dimension] = 1;
    poplar::Tensor found = of_channels.reshape(shape);
    for (const std::size_t dimension : norm.shared)
      found = found.broadcast(static_cast<unsigned>(norm.shape[dimension]), static_cast<unsigned>(dimension));
    return found;
  }

  /// Returns a single number, or one per element, as `elements` elements.
  static poplar::Tensor every(const poplar::Tensor &flat, std::size_t elements) {
    return flat.numElements() == elements ? flat : flat.broadcast(static_cast<unsigned>(elements), 0);
  }
};

} // namespace snnc

#endif
