// The location in the source where something was created.
#ifndef SNNC_POPLAR_SOURCE_LOCATION_HPP
#define SNNC_POPLAR_SOURCE_LOCATION_HPP

#include <string>
#include <utility>

namespace poplar {

class SourceLocation {
public:
  SourceLocation();
  SourceLocation(const SourceLocation &other);
  SourceLocation(SourceLocation &&other) noexcept;
  SourceLocation &operator=(const SourceLocation &other);
  SourceLocation &operator=(SourceLocation &&other) noexcept;
  ~SourceLocation();
  SourceLocation(std::string functionName, std::string fileName, unsigned lineNumber)
      : ownFunction_(std::move(functionName)), ownFile_(std::move(fileName)), line_(lineNumber), valid_(true) {}
  /// The caller, if used as a default argument.
  static SourceLocation Current(const char *functionName = __builtin_FUNCTION(), const char *fileName = __builtin_FILE(),
                                unsigned lineNumber = __builtin_LINE());
  std::string getFunctionName() const { return function_ ? function_ : ownFunction_; }
  std::string getFileName() const { return file_ ? file_ : ownFile_; }
  unsigned getLineNumber() const { return line_; }
  bool isValid() const { return valid_; }
  bool operator==(const SourceLocation &other) const {
    return valid_ == other.valid_ && line_ == other.line_ && getFileName() == other.getFileName() && getFunctionName() == other.getFunctionName();
  }
  bool operator!=(const SourceLocation &other) const { return !(*this == other); }

private:
  /// Texts of the compiler, which are not copied; or the caller's own.
  const char *function_ = nullptr, *file_ = nullptr;
  std::string ownFunction_, ownFile_;
  unsigned line_ = 0;
  bool valid_ = false;
};

} // namespace poplar

#endif
