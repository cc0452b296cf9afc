import { randomProgramTests } from '../../support/random-programs.ts';

randomProgramTests([
  [1, 500],
  [2, 4_000],
  [3, 3_000],
  [4, 2_500],
]);
