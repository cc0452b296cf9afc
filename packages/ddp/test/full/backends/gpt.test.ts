// Runs the sizes that take longest; test/processes/gpt.test.ts has the others.
import { gptSuite } from '../../support/gpt-suite.ts';

gptSuite([1, 3, 4], [64]);
