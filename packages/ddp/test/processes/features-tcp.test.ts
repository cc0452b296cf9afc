// Runs every feature on two ranks over the tcp backend, which may not block.
import { featuresTest } from '../support/features-suite.ts';

featuresTest(2, false, 'tcp');
