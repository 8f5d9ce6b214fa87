// Tiles set aside for the host's streams: the inputs of the next step wait there while this one runs.
#ifndef SNNC_STAGING_HPP
#define SNNC_STAGING_HPP

#include <poplar/Graph.hpp>
#include <poplar/Program.hpp>
#include <poplar/Tensor.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace snnc {

/// The last tiles of each IPU, on which nothing is computed.
class Staging {
public:
  Staging(poplar::Graph &made, unsigned tiles_per_ipu);

  /// Fill them with what the streams bring once a step, and what they bring for each segment. Poplar runs it beside what uses other tiles alone.
  poplar::program::Sequence fetch, fetch_segment;

  /// Lets a stream fill a copy of `to` on these tiles, from which a copy in `load` brings it on; `in_turns`: for each segment.
  void add(const poplar::DataStream &stream, const std::string &handle, const poplar::Tensor &to, const poplar::program::Sequence &load,
           bool in_turns);

  /// Adds the copies to `load`: one of words, one of half words.
  void end(poplar::program::Sequence &load, const char *name) const;

private:
  struct Piece {
    std::size_t begin, end;
    unsigned ipu;
  };

  poplar::Graph &graph;
  unsigned tiles;
  /// By where they are added, and whether of half words: from, to.
  std::map<std::pair<const poplar::program::Sequence *, bool>, std::vector<std::pair<poplar::Tensor, poplar::Tensor>>> copies;

  /// In what order elements lie on IPUs.
  std::vector<Piece> pieces_of(const poplar::Tensor &to) const;
  /// Deals the elements of each IPU, in order, to its tiles: whole pairs, and as many to each.
  void map(const poplar::Tensor &held, const poplar::Tensor &to);
};

} // namespace snnc

#endif
