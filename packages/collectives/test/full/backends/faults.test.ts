import { callNames } from '../../support/calls.ts';
import { faultsDuring, quickCalls } from '../../support/faults.ts';

faultsDuring(callNames.filter((name) => !quickCalls.includes(name)));
