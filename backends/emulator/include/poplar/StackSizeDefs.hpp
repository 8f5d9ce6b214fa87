// Stack sizes declared by assembly; no effect on a CPU.
#ifndef SNNC_POPLAR_STACK_SIZE_DEFS_HPP
#define SNNC_POPLAR_STACK_SIZE_DEFS_HPP
#define DEF_STACK_USAGE(size, function)
#define DEF_FUNC_CALL_PTRS(caller, callees)
#define DEF_FUN_CALL_PTRS(caller, callees)
#define DEF_STACK_SIZE_OWN(size, function)
#endif
