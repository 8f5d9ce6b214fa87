// The error type of the libraries.
#ifndef SNNC_POPUTIL_EXCEPTIONS_HPP
#define SNNC_POPUTIL_EXCEPTIONS_HPP

#include <stdexcept>
#include <string>

namespace poputil {

struct poplibs_error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

} // namespace poputil

#endif
