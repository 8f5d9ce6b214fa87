// Threads of a session: they stay alive for the next region of work, and spin for a few tens of microseconds before they sleep.
#ifndef SNNC_THREADS_HPP
#define SNNC_THREADS_HPP

namespace snnc {

/// Returns the number of CPUs available to this process.
int processors();

class Pool {
public:
  Pool() = default;
  Pool(const Pool &) = delete;
  Pool &operator=(const Pool &) = delete;
  ~Pool() { end(); }

  /// Calls work(0) ... work(count - 1), in parallel; rethrows the exception of the call with the lowest index. There may be only one
  /// caller at a time.
  template <class Work> void run(int count, const Work &work) {
    if (count == 1)
      return work(0);
    run_all(count, [](const void *of, int index) { (*static_cast<const Work *>(of))(index); }, &work);
  }

  /// Ends all threads except the caller's.
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
