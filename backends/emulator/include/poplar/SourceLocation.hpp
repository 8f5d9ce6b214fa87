// Where in the source something was made.
#ifndef SNNC_POPLAR_SOURCE_LOCATION_HPP
#define SNNC_POPLAR_SOURCE_LOCATION_HPP

#include <string>
#include <utility>

namespace poplar {

class SourceLocation {
public:
  SourceLocation() = default;
  SourceLocation(std::string functionName, std::string fileName, unsigned lineNumber)
      : function_(std::move(functionName)), file_(std::move(fileName)), line_(lineNumber), valid_(true) {}
  /// The caller, where it is a default argument.
  static SourceLocation Current(const char *functionName = __builtin_FUNCTION(), const char *fileName = __builtin_FILE(),
                                unsigned lineNumber = __builtin_LINE()) {
    return SourceLocation(functionName, fileName, lineNumber);
  }
  const std::string &getFunctionName() const { return function_; }
  const std::string &getFileName() const { return file_; }
  unsigned getLineNumber() const { return line_; }
  bool isValid() const { return valid_; }

private:
  std::string function_, file_;
  unsigned line_ = 0;
  bool valid_ = false;
};

} // namespace poplar

#endif
