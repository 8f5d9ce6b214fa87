// For programs that measure time with Boost.Timer if Boost is not installed; searched after all other folders.
#ifndef SNNC_FALLBACK_BOOST_TIMER_HPP
#define SNNC_FALLBACK_BOOST_TIMER_HPP
#include <chrono>
#include <cstdint>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
namespace boost {
namespace timer {

using nanosecond_type = std::int64_t;

/// Nanoseconds.
struct cpu_times {
  nanosecond_type wall = 0, user = 0, system = 0;
  void clear() { *this = {}; }
};

inline std::string format(const cpu_times &times, short places = 6) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(places) << double(times.wall) * 1e-9 << "s wall, " << double(times.user) * 1e-9 << "s CPU\n";
  return text.str();
}

class cpu_timer {
public:
  cpu_timer() { start(); }
  void start() {
    total_.clear();
    resume();
  }
  void stop() {
    total_ = elapsed();
    stopped_ = true;
  }
  void resume() {
    begin_ = now();
    stopped_ = false;
  }
  bool is_stopped() const { return stopped_; }
  cpu_times elapsed() const {
    cpu_times times = total_;
    if (stopped_)
      return times;
    const cpu_times current = now();
    times.wall += current.wall - begin_.wall;
    times.user += current.user - begin_.user;
    return times;
  }
  std::string format(short places = 6) const { return timer::format(elapsed(), places); }

private:
  static cpu_times now() {
    cpu_times times;
    times.wall = std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
    times.user = nanosecond_type(double(std::clock()) * 1e9 / CLOCKS_PER_SEC);
    return times;
  }
  cpu_times begin_, total_;
  bool stopped_ = false;
};

/// Prints the measured time when it is destroyed.
class auto_cpu_timer : public cpu_timer {
public:
  explicit auto_cpu_timer(short places = 6) : places_(places) {}
  auto_cpu_timer(const auto_cpu_timer &) = delete;
  auto_cpu_timer &operator=(const auto_cpu_timer &) = delete;
  ~auto_cpu_timer() {
    if (!is_stopped())
      report();
  }
  void report() {
    stop();
    std::cout << format(places_);
  }

private:
  short places_;
};

} // namespace timer
} // namespace boost
#endif
