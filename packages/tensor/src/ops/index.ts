export { add, div, eq, gt, lt, mul, sub } from './binary.ts';
export { clone, to } from './convert.ts';
export { crossEntropy, type LossOptions, mseLoss, nllLoss, type Reduction } from './loss.ts';
export { linear, matmul } from './matmul.ts';
export { flatten, reshape, squeeze, t, transpose, unsqueeze } from './movement.ts';
export { argmax, max, mean, sum } from './reduce.ts';
export { logSoftmax, softmax } from './softmax.ts';
export { abs, exp, log, neg, relu, sigmoid, sqrt, square, tanh } from './unary.ts';
