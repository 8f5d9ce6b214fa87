#include "popc.hpp"

#include <poplar/exceptions.hpp>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#ifndef SNNC_PYTHON_EXECUTABLE
#define SNNC_PYTHON_EXECUTABLE "python3"
#endif
#ifndef SNNC_POPC_SCRIPT
#define SNNC_POPC_SCRIPT ""
#endif

extern char **environ;

namespace poplar::core {

namespace {

/// Path of this library: codelets are linked against it.
std::string thisLibrary() {
  Dl_info info;
  if (dladdr(reinterpret_cast<void *>(&runPopc), &info) == 0)
    return "";
  char *real = realpath(info.dli_fname, nullptr);
  const std::string path = real ? real : info.dli_fname;
  std::free(real);
  return path;
}

std::string readAll(int file) {
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(file, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      break;
    text.append(buffer, std::size_t(n));
  }
  return text;
}

/// Runs a command; returns its standard output, and in `status` its exit status.
std::string runCommand(const std::vector<std::string> &command, int &status) {
  std::vector<char *> arguments;
  for (const std::string &word : command)
    arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  int ends[2];
  if (pipe(ends) != 0)
    throw file_load_error(std::string("popc: pipe: ") + std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  pid_t child = 0;
  const int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  const std::string output = failed ? "" : readAll(ends[0]);
  close(ends[0]);
  if (failed)
    throw file_load_error("popc: cannot start '" + command[0] + "': " + std::strerror(failed) + "; set SNNC_PYTHON");
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return output;
}

} // namespace

std::string runPopc(const std::string &source, const std::string &flags) {
  const char *python = std::getenv("SNNC_PYTHON");
  const char *script = std::getenv("SNNC_POPC");
  std::vector<std::string> command = {python ? python : SNNC_PYTHON_EXECUTABLE, script ? script : SNNC_POPC_SCRIPT, source};
  command.insert(command.end(), {"--library", thisLibrary()});
  if (!flags.empty())
    command.push_back("--flags=" + flags);
  int status = 0;
  const std::string output = runCommand(command, status);
  const std::string marker = "table: ";
  const std::size_t at = output.rfind(marker);
  if (status != 0 || at == std::string::npos)
    throw file_load_error("codelets of '" + source + "' do not compile:\n" + output);
  return output.substr(at + marker.size(), output.find('\n', at) - at - marker.size());
}

} // namespace poplar::core
