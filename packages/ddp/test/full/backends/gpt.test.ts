// The sizes that take longest; the others: test/processes/gpt.test.ts.
import { gptSuite } from '../../support/gpt-suite.ts';

gptSuite([1, 3, 4], [64]);
