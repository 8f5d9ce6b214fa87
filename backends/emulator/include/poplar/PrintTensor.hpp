// Format of PrintTensor.
#ifndef SNNC_POPLAR_PRINT_TENSOR_HPP
#define SNNC_POPLAR_PRINT_TENSOR_HPP

#include <string>

namespace poplar {

class PrintTensorFmt {
public:
  enum class FloatFormat { Auto, Fixed, Scientific, None };
  /// Above `summariseThreshold` elements, `edgeItems` are printed at each end of a dimension.
  explicit PrintTensorFmt(unsigned summariseThreshold = 1000, unsigned edgeItems = 3, unsigned maxLineWidth = 75, unsigned digits = 8,
                          FloatFormat floatFormat = FloatFormat::Auto, char separator = ' ', char openBracket = '[', char closeBracket = ']')
      : threshold(summariseThreshold), edges(edgeItems), width(maxLineWidth), digitsAll(digits), format(floatFormat), between(separator),
        open(openBracket), close(closeBracket) {}
  static PrintTensorFmt disableWrapping() { return PrintTensorFmt(1000, 3, ~0u); }

  unsigned threshold, edges, width, digitsAll;
  FloatFormat format;
  char between, open, close;
};

} // namespace poplar

#endif
