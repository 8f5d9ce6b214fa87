// Format of a serialised graph.
#ifndef SNNC_POPLAR_SERIALIZATION_FORMAT_HPP
#define SNNC_POPLAR_SERIALIZATION_FORMAT_HPP

namespace poplar {

enum class SerializationFormat { Binary, JSON };

} // namespace poplar

#endif
