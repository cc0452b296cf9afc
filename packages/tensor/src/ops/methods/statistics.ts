// Methods that order, count and describe elements.
import type { StatisticMethods } from '../../core/methods/statistics.ts';
import type { Tensor } from '../../core/tensor.ts';
import { argsort, kthvalue, median, msort, nanmedian } from '../order/sorted.ts';
import { histc, mode } from '../statistics/counting.ts';
import { corrcoef, cov } from '../statistics/covariance.ts';
import { dist, renorm } from '../statistics/distances.ts';
import { histogram } from '../statistics/histogram.ts';
import { amax, amin, aminmax, countNonzero, nanmean, nansum } from '../statistics/missing.ts';
import { nanquantile, quantile } from '../statistics/quantile.ts';
import { cummax, cummin, cumprod, logcumsumexp } from '../statistics/running.ts';
import { addFunctions, addMethods } from './define.ts';

type Overloaded = 'median' | 'nanmedian';

addFunctions<Omit<StatisticMethods<Tensor>, Overloaded>>({
  ...{ argsort, msort, kthvalue, mode, quantile, nanquantile },
  ...{ cummax, cummin, cumprod, logcumsumexp, amax, amin, aminmax },
  ...{ nansum, nanmean, countNonzero, histc, histogram, cov, corrcoef, dist, renorm },
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
