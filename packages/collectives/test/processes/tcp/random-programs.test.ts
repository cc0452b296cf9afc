// Runs 90 random programs on tcp; test/full/backends/tcp-random-programs.test.ts runs 2,000.
import { randomProgramTests } from '../../support/random-programs.ts';

randomProgramTests(
  [
    [1, 10],
    [2, 40],
    [3, 25],
    [4, 15],
  ],
  'tcp',
);
