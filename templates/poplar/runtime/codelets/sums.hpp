// ---- sums of gradients ---------------------------------------------------------------------------------------------------------

namespace {

/// Returns the first element of a worker if all workers of a tile share `count` elements in pairs, so that each has whole 64-bit words.
[[maybe_unused]] inline unsigned share_of_worker(unsigned count, unsigned worker, unsigned workers) {
  const unsigned begin = 2 * (pairs(count) * worker / workers);
  return begin < count ? begin : count;
}

/// sums[i] += element i of N further gradients, which are `apart` floats apart.
template <unsigned N> struct AddGradients {
  static void run(unsigned number, float *__restrict sums, const float *__restrict more, unsigned long apart, unsigned begin,
                  unsigned end) {
    if (number != N)
      return AddGradients<N - 1>::run(number, sums, more, apart, begin, end);
    for (unsigned i = begin; i < end; ++i) {
      float sum = sums[i];
      for (unsigned p = 0; p < N; ++p)
        sum += more[p * apart + i];
      sums[i] = sum;
    }
  }
};

template <> struct AddGradients<0> {
  template <class... All> static void run(All...) {}
};

/// Adds `parts - 1` gradients to the first, in passes over SUMMANDS of them; returns the number of passes.
[[maybe_unused]] inline unsigned add_gradients(float *sums, const float *more, unsigned parts, unsigned long apart, unsigned begin,
                                               unsigned end) {
  unsigned passes = 0;
  for (unsigned done = 1; done < parts; done += SUMMANDS, more += SUMMANDS * apart, ++passes)
    AddGradients<SUMMANDS>::run(parts - done < SUMMANDS ? parts - done : SUMMANDS, sums, more, apart, begin, end);
  return passes;
}

} // namespace
