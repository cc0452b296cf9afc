/** The verbs of operations, in the order of the enum in native/coll/op.h. */
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

/** An operation of a group. */
export type Verb = (typeof allVerbs)[number];
