// Kills and stops a rank in the middle of a few calls on tcp; test/full/backends/tcp-faults.test.ts has the others.
import { faultsDuring, quickCalls } from '../../support/faults.ts';

faultsDuring(quickCalls, 'tcp');
