// A log of calls: with Heffte_ENABLE_TRACING a file for each rank with the name, start and duration of each.
#ifndef HEFFTE_TRACE_H
#define HEFFTE_TRACE_H

#include "heffte_utils.h"

namespace heffte {

#ifdef Heffte_ENABLE_TRACING

struct event {
  std::string name;
  double start_time;
  double duration;
};

namespace detail {
struct trace_log {
  std::deque<event> events;
  std::string file;
  static trace_log &of_process() {
    static trace_log log;
    return log;
  }
};
}  // namespace detail

// The time from here to the end of its scope.
struct add_trace {
  explicit add_trace(std::string text) : name(std::move(text)), start_time(MPI_Wtime()) {}
  add_trace(add_trace const &) = delete;
  add_trace &operator=(add_trace const &) = delete;
  ~add_trace() {
    double const end = MPI_Wtime();
    detail::trace_log::of_process().events.push_back(event{std::move(name), start_time, end - start_time});
  }
  std::string name;
  double start_time;
};

inline void init_tracing(std::string root_filename) {
  auto &log = detail::trace_log::of_process();
  log.events.clear();
  log.file = root_filename + "_" + std::to_string(mpi::world_rank()) + ".log";
}

inline void finalize_tracing() {
  auto const &log = detail::trace_log::of_process();
  std::ofstream file(log.file);
  file.precision(12);
  for (auto const &one : log.events)
    file << std::setw(40) << one.name << std::setw(20) << one.start_time << std::setw(20) << one.duration << "\n";
}

#else

struct add_trace {
  add_trace(std::string) {}
};
inline void init_tracing(std::string) {}
inline void finalize_tracing() {}

#endif

}  // namespace heffte

#endif
