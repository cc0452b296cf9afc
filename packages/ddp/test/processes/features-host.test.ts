// More ranks: test/full/backends/features-host.test.ts.
import { featuresTest } from '../support/features-suite.ts';

featuresTest(2, false);
