// What shared_library_test looks for.
extern "C" __attribute__((visibility("default"))) int ringwise_found() { return 42; }
