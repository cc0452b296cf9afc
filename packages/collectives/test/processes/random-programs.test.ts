// Runs 200 random programs; test/full/backends runs 10,000.
import { randomProgramTests } from '../support/random-programs.ts';

randomProgramTests([
  [1, 20],
  [2, 80],
  [3, 60],
  [4, 40],
]);
