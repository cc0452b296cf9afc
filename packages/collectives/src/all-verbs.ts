/** What an operation can be. The order is that of the enum in native/coll/op.h. */
export const allVerbs = [
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
] as const;

export type Verb = (typeof allVerbs)[number];
