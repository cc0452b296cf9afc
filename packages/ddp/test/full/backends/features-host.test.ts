// The sizes that take longest; two ranks on one host: test/processes/features-host.test.ts.
import { featuresTest } from '../../support/features-suite.ts';

featuresTest(1, false);
featuresTest(2, true);
featuresTest(4, false);
