// Kinds of codelet files.
#ifndef SNNC_POPLAR_CODELET_FILE_TYPE_HPP
#define SNNC_POPLAR_CODELET_FILE_TYPE_HPP

namespace poplar {

enum class CodeletFileType { PreprocessedAsm, Asm, IpuMachineCode, CSource, CppSource, CxxSource, Object, Auto };

} // namespace poplar

#endif
