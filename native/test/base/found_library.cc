// The library that shared_library_test searches for.
extern "C" __attribute__((visibility("default"))) int ringwise_found() { return 42; }
