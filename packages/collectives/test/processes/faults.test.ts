import { faultsDuring, quickCalls } from '../support/faults.ts';

faultsDuring(quickCalls);
