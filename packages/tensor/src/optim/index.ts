export { Optimizer, type OptimizerState } from './optimizer.ts';
export { SGD, type SGDOptions } from './sgd.ts';
