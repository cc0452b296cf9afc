// What libstdc++ and libgcc of a system with glibc need and musl lacks, so that a program for musl can use them. Only
// tests use this: a system with musl has its own libstdc++.
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

/** 0: the process may have threads. */
char __libc_single_threaded = 0;

unsigned arc4random(void) {
  unsigned value;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
  }
  return value;
}

size_t __strftime_l(char* to, size_t size, const char* format, const struct tm* time, locale_t locale) {
  return strftime_l(to, size, format, time, locale);
}

/** Finds nothing: libgcc then asks dl_iterate_phdr, which musl has. */
int _dl_find_object(void* address, void* result) {
  (void)address;
  (void)result;
  return -1;
}

/** libgcc exports these for old programs only. */
struct {
  unsigned vendor, type, subtype, features[1];
} __cpu_model;

int __cpu_indicator_init(void) { return 0; }

/** A destructor of a thread's variable. */
struct exit_call {
  void (*run)(void*);
  void* value;
  struct exit_call* next;
};

static pthread_key_t exit_calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void run_exit_calls(void* first) {
  for (struct exit_call* call = first; call != NULL;) {
    struct exit_call* next = call->next;
    call->run(call->value);
    free(call);
    call = next;
  }
}

static void make_key(void) { pthread_key_create(&exit_calls, run_exit_calls); }

/** Runs a destructor when the calling thread ends, the newest first. */
int __cxa_thread_atexit_impl(void (*run)(void*), void* value, void* library) {
  (void)library;
  pthread_once(&once, make_key);
  struct exit_call* call = malloc(sizeof *call);
  if (call == NULL) return -1;
  call->run = run;
  call->value = value;
  call->next = pthread_getspecific(exit_calls);
  return pthread_setspecific(exit_calls, call);
}

/**
 * std::string::_M_replace_cold of GCC 13, for programs newer than the system's libstdc++: replaces `old_size` bytes at
 * `at`, before the last `tail` bytes, by bytes that may lie in the same string.
 */
void replace_cold(void* string, char* at, size_t old_size, const char* from, size_t size, size_t tail) __asm__(
    "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE15_M_replace_coldEPcmPKcmm");
void replace_cold(void* string, char* at, size_t old_size, const char* from, size_t size, size_t tail) {
  (void)string;
  char* copy = malloc(size + 1);
  if (copy == NULL) abort();
  memcpy(copy, from, size);
  memmove(at + size, at + old_size, tail);
  memcpy(at, copy, size);
  free(copy);
}
