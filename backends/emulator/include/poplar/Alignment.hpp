// Alignment of a worker's code; no effect on a CPU.
#ifndef SNNC_POPLAR_ALIGNMENT_HPP
#define SNNC_POPLAR_ALIGNMENT_HPP
#define WORKER_ALIGN
#define SUPERVISOR_ALIGN
#endif
