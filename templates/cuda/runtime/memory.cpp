#include "memory.hpp"

namespace snnc {
namespace device {

template class Array<float>;
template class Array<double>;
template class Array<std::uint32_t>;

} // namespace device
} // namespace snnc
