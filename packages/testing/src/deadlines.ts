// Repeats what a test does with a longer deadline. On a busy machine a process may get no processor for seconds, so
// that a short deadline passes in a step that the test expects to succeed.

/**
 * Calls `attempt` with each of `deadlinesMs`, the shortest first, until one does not throw. Resolves with its value, or
 * rejects with the error of the last one. It is for tests that wait until a deadline has passed: the first one is
 * short, so that the test is fast, and the last one is far above what a busy machine needs for the steps before.
 */
export async function withDeadlines<T>(
  deadlinesMs: readonly [number, ...number[]],
  attempt: (deadlineMs: number) => Promise<T>,
): Promise<T> {
  const last = deadlinesMs[deadlinesMs.length - 1]!;
  for (const deadlineMs of deadlinesMs.slice(0, -1)) {
    try {
      return await attempt(deadlineMs);
    } catch (error) {
      console.warn(
        `failed with a deadline of ${deadlineMs} ms, is repeated with a longer one: ${String(error)}`,
      );
    }
  }
  return await attempt(last);
}
