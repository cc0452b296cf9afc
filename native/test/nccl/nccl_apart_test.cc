// Tests that a process which ends waits for the threads that end communicators.
#include "coll/nccl/apart.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "test/check.h"

using namespace ringwise;

TEST("a process that ends waits for a thread that ends a communicator") {
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    nccl::end_apart([to = ends[1]] {
      std::this_thread::sleep_for(std::chrono::milliseconds(200));
      const char byte = 'x';
      if (write(to, &byte, 1) != 1) std::_Exit(3);
    });
    std::exit(0);
  }
  close(ends[1]);
  int status = -1;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status));
  CHECK_EQ(WEXITSTATUS(status), 0);
  char byte = 0;
  CHECK_EQ(read(ends[0], &byte, 1), 1);
  CHECK_EQ(byte, 'x');
  close(ends[0]);
}

int main() { return ringwise::test::run_all(); }
