// Tests the native kernels at the kernel levels below the best one of this CPU; native.test.ts tests the best one.
import { test } from 'vitest';
import { bestLevel, contractAtLevel, levels } from '../../support/native-levels.ts';

for (const [i, level] of levels.entries()) {
  if (i < bestLevel) contractAtLevel(level);
  if (i > bestLevel) test.skip(`${level}: this CPU does not have it`, () => {});
}
