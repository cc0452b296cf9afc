// Kills and stops a rank in the middle of each call on tcp that test/processes/tcp/faults.test.ts leaves out.
import { callNames } from '../../support/calls.ts';
import { faultsDuring, quickCalls } from '../../support/faults.ts';

faultsDuring(
  callNames.filter((name) => !quickCalls.includes(name)),
  'tcp',
);
