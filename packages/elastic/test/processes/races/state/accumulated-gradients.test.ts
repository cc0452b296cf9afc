// Race 13: a rank is lost in the last of several micro-batches, when the gradients of the others are accumulated. They
// are dropped, not added again.
import { it } from 'vitest';
import { checkFeature } from '../../../support/features.ts';

it('accumulated gradients of several micro-batches', () => checkFeature({ microBatch: 2, scaled: true }));
