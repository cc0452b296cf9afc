// Runs every feature on three ranks over the tcp backend; test/processes/features-tcp.test.ts has two.
import { featuresTest } from '../../support/features-suite.ts';

featuresTest(3, false, 'tcp');
