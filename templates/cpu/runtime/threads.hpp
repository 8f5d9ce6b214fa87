// Threads of a session: they stay for the next region of work, and wait for it awake for some microseconds only.
#ifndef SNNC_THREADS_HPP
#define SNNC_THREADS_HPP

namespace snnc {

/// The processors that this process may use.
int processors();

class Pool {
public:
  Pool() = default;
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;
  ~Pool() { end(); }

  /// Calls work(0) ... work(count - 1), as many at a time as there are threads; an exception of the lowest of them comes out. One caller at
  /// a time.
  template <class Work> void run(int count, const Work &work) {
    if (count == 1)
      return work(0);
    run_all(count, [](const void *of, int index) { (*static_cast<const Work *>(of))(index); }, &work);
  }

  /// Ends all threads but the caller's.
  void end();

private:
  struct State;
  State *state = nullptr;

  using Call = void (*)(const void *work, int index);
  void run_all(int count, Call call, const void *work);
  void have(int wanted);
};

} // namespace snnc

#endif
