// What a worker's code must be aligned to; nothing on a CPU.
#ifndef SNNC_POPLAR_ALIGNMENT_HPP
#define SNNC_POPLAR_ALIGNMENT_HPP
#define WORKER_ALIGN
#define SUPERVISOR_ALIGN
#endif
