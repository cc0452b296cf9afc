#include "base/os/thread.h"

#include <pthread.h>

namespace ringwise::os {

void name_this_thread(const char* name) noexcept { pthread_setname_np(name); }

// The next two read memory of the thread and take no lock on it, as long as the thread is the calling one.

void read_thread_name(char (&name)[16]) noexcept { pthread_getname_np(pthread_self(), name, sizeof name); }

uint64_t this_thread_id() noexcept {
  uint64_t id = 0;
  pthread_threadid_np(nullptr, &id);
  return id;
}

}  // namespace ringwise::os
