// Methods that order and count elements.
import type { StatisticMethods } from '../../core/methods/statistics.ts';
import type { Tensor } from '../../core/tensor.ts';
import { argsort, median, msort, nanmedian } from '../order/sorted.ts';
import { amax, amin, aminmax, countNonzero } from '../statistics/missing.ts';
import { cummax, cummin, cumprod } from '../statistics/running.ts';
import { addFunctions, addMethods } from './define.ts';

type Overloaded = 'median' | 'nanmedian';

addFunctions<Omit<StatisticMethods<Tensor>, Overloaded>>({
  ...{ argsort, msort, cummax, cummin, cumprod, amax, amin, aminmax, countNonzero },
});

// These have two signatures each, which FunctionsOf cannot express.
const overloaded: Pick<StatisticMethods<Tensor>, Overloaded> & ThisType<Tensor> = {
  median(...rest: []) {
    return median(this, ...rest) as never;
  },
  nanmedian(...rest: []) {
    return nanmedian(this, ...rest) as never;
  },
};
addMethods(overloaded);
