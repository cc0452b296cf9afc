// Race 11: a step that is torn has changed running statistics of batch norms, of some layers or on some ranks, and the
// residual of a narrow wire. Both are put back when the step runs again, or they would count twice.
import { it } from 'vitest';
import { checkFeature } from '../../../support/features.ts';

// 6 micro-batches of which 3 or 2 ranks have equally many, and 4 ranks do not.
it('batch norms over all ranks', () => checkFeature({ syncBatchNorm: true, microBatch: 2 }));

it('residuals of int8 between hosts', () => checkFeature({ hook: 'int8' }));
