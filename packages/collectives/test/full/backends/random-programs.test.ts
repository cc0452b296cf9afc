// Runs 10,000 random programs; test/processes/random-programs.test.ts runs 200.
import { randomProgramTests } from '../../support/random-programs.ts';

randomProgramTests([
  [1, 500],
  [2, 4_000],
  [3, 3_000],
  [4, 2_500],
]);
