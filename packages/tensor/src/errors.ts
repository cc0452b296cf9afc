// The errors of this package. Errors about positional arguments are in checks/argument-errors.ts, those of single
// operations in checks/op-errors.ts. A message says what was requested, what was found, and what to do next.
export * from './errors/autograd.ts';
export * from './errors/devices.ts';
export * from './errors/kernels.ts';
export * from './errors/modules.ts';
export * from './errors/shapes.ts';
export { shown, TensorError, type TensorErrorCode } from './errors/tensor-error.ts';
export * from './errors/values.ts';
