// Runs the sizes that take longest; test/processes/features-host.test.ts has two ranks on one host.
import { featuresTest } from '../../support/features-suite.ts';

featuresTest(1, false);
featuresTest(2, true);
featuresTest(4, false);
