#include "base/os/thread.h"

#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ringwise::os {

void name_this_thread(const char* name) noexcept { pthread_setname_np(pthread_self(), name); }

void read_thread_name(char (&name)[16]) noexcept { prctl(PR_GET_NAME, name); }

uint64_t this_thread_id() noexcept { return static_cast<uint64_t>(syscall(SYS_gettid)); }

}  // namespace ringwise::os
