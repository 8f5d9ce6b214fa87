// Loops over columns, which every codelet calls for the columns that it has: compiled alone, for two numbers of pairs each.
#define SNNC_PROBE(name, call)                                                                                                             \
  extern "C" void probe_##name(const unsigned short *ids, const float *values, unsigned number, float *rows, float *last, unsigned stride, \
                               float *held, const float *weights, unsigned apart, const unsigned *lengths) {                               \
    call;                                                                                                                                  \
  }
#define SNNC_PROBES(pairs)                                                                                                                 \
  SNNC_PROBE(add_rows_##pairs, (AddRows<pairs, 0>::run(ids, number, rows, last, stride, held)))                                            \
  SNNC_PROBE(add_to_rows_##pairs, (AddToRows<pairs, 0>::run(ids, number, rows, last, stride, held)))                                       \
  SNNC_PROBE(add_products_##pairs, (AddProducts<pairs, 0>::run(values, number, rows, last, stride, held)))                                 \
  SNNC_PROBE(add_outer_##pairs, (AddOuter<pairs, 0>::run(values, number, rows, last, stride, held)))                                       \
  SNNC_PROBE(add_some_samples_##pairs, (add_some_samples<pairs, 0, true>(values, stride, weights, number, held, apart)))

SNNC_PROBES(2)
SNNC_PROBES(4)
SNNC_PROBE(sweep_forward, (Sweep<AddRows, 8>::run(ids, apart, lengths, stride, rows, last, number, held)))
SNNC_PROBE(sweep_backward, (Sweep<AddToRows, 8>::run(ids, apart, lengths, stride, rows, last, number, held)))
SNNC_PROBE(add_rows_odd, (AddRows<2, 1>::run(ids, number, rows, last, stride, held)))
SNNC_PROBE(add_dots_4, (add_dots<4, true>(values, weights, number, stride, held)))
SNNC_PROBE(add_gradients_1, (AddGradients<1>::run(1, held, values, apart, stride, number)))
SNNC_PROBE(add_gradients_5, (AddGradients<5>::run(5, held, values, apart, stride, number)))
