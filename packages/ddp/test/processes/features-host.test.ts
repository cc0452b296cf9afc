// Runs two ranks on one host; test/full/backends/features-host.test.ts has more ranks.
import { featuresTest } from '../support/features-suite.ts';

featuresTest(2, false);
