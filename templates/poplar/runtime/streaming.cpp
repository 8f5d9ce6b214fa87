// Definitions of streaming.hpp.
#include "streaming.hpp"

namespace snnc {

RemoteRows::RemoteRows(poplar::Graph &made, std::string called) : graph(made), name(std::move(called)) {}

void RemoteRows::add(const poplar::Tensor &piece, unsigned tile) {
  const bool words = piece.elementType() != poplar::UNSIGNED_SHORT && piece.elementType() != poplar::HALF;
  const poplar::Type type = words ? poplar::UNSIGNED_INT : poplar::UNSIGNED_SHORT;
  pieces[{!words, tile / graph.getTarget().getTilesPerIPU()}].push_back(piece.reinterpret(type));
}

void RemoteRows::end(std::size_t rows, const poplar::Tensor &row, poplar::program::Sequence &to, poplar::program::Sequence &from) {
  for (const auto &[key, all] : pieces)
    for (std::size_t first = 0, number = 0; first < all.size(); ++number) {
      std::vector<poplar::Tensor> some;
      for (std::size_t bytes = 0; first < all.size() && (some.empty() || bytes + size_of(all[first]) <= ROW_BYTES); ++first) {
        bytes += size_of(all[first]);
        some.push_back(all[first]);
      }
      const poplar::Tensor piece = poplar::concat(some);
      const std::string handle = name + (key.first ? "_ids_" : "_") + std::to_string(key.second) + "_" + std::to_string(number);
      const poplar::RemoteBuffer buffer = graph.addRemoteBuffer(handle, piece.elementType(), piece.numElements(), rows, true, true);
      to.add(poplar::program::Copy(piece, buffer, row, "MS " + handle));
      from.add(poplar::program::Copy(buffer, piece, row, "ML " + handle));
    }
}

std::size_t RemoteRows::size_of(const poplar::Tensor &piece) {
  return piece.numElements() * (piece.elementType() == poplar::UNSIGNED_SHORT ? 2 : 4);
}

} // namespace snnc
