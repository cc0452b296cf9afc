import type { Verb } from './backend.ts';

/** What an operation can be. The order is that of the enum in native/coll/op.h. */
export const allVerbs: readonly Verb[] = [
  'allReduce',
  'broadcast',
  'allGather',
  'reduceScatter',
  'send',
  'recv',
  'barrier',
  'reduce',
  'gather',
  'scatter',
  'allToAll',
];
