// Runs 2,000 random programs on tcp; test/processes/tcp/random-programs.test.ts runs 90.
import { randomProgramTests } from '../../support/random-programs.ts';

randomProgramTests(
  [
    [1, 100],
    [2, 800],
    [3, 600],
    [4, 500],
  ],
  'tcp',
);
