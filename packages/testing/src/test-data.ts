// Finds the data sets that tests read, in the folder that RINGWISE_TEST_DATA names. Tests that need one are skipped if
// the variable is not set.
import { existsSync } from 'node:fs';
import { join } from 'node:path';

/** Returns the path of a file or folder of the test data, such as 'mnist', or null if it does not exist. */
export function testData(name: string): string | null {
  const folder = process.env.RINGWISE_TEST_DATA;
  if (!folder) return null;
  const path = join(folder, name);
  return existsSync(path) ? path : null;
}
