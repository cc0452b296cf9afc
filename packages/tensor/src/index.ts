// The exports of @ringwise/tensor. Importing it adds the methods to tensors.
import './ops/methods/index.ts';

export { onBackwardEnd } from './autograd/backward.ts';
export { type GradCheckOptions, gradCheck } from './autograd/check.ts';
export { checkpoint } from './autograd/checkpoint.ts';
export { customFunction, type FunctionContext, type FunctionOptions } from './autograd/custom.ts';
export { hessian, hvp, jacobian, jvp } from './autograd/functional.ts';
export { type GradOptions, grad } from './autograd/grad.ts';
export { kernelsName } from './backends/index.ts';
export { type CudaDevice, type CudaInfo, type CudaLibrary, cudaInfo } from './backends/native/native.ts';
export { promoteTypes, resultType } from './core/checked-promotion.ts';
export {
  type AutocastDType,
  type AutocastOptions,
  autocast,
  detectAnomaly,
  enableGrad,
  isGradEnabled,
  keep,
  noGrad,
  scope,
} from './core/context.ts';
export {
  arange,
  empty,
  emptyLike,
  eye,
  fromHost,
  full,
  fullLike,
  type LogspaceOptions,
  linspace,
  logspace,
  type NestedData,
  ones,
  onesLike,
  pinArray,
  type TypedArray,
  tensor,
  zeros,
  zerosLike,
} from './core/creation.ts';
export type { DType, HostArray } from './core/dtype.ts';
export { type Leak, leakReport, trackLeaks } from './core/memory/leaks.ts';
export { emptyCache, type MemoryUse, memory, synchronize } from './core/memory/storage.ts';
export type { CreationOptions } from './core/op-options.ts';
export type { BufferView, DeviceHandle, GradParam, TensorHandle } from './core/protocol.ts';
export type { Shape } from './core/shape.ts';
export { type Operand, Tensor } from './core/tensor.ts';
export type { NestedNumbers } from './core/tensor-core.ts';
export { type CompiledStep, type CompileOptions, compile } from './device/compile.ts';
export type { Device, DeviceName } from './device/device.ts';
export { fromHandle } from './device/handle.ts';
export { type MatmulPrecision, setFloat32MatmulPrecision } from './device/precision.ts';
export { CudaEvent, CudaStream, currentStream, withStream } from './device/streams.ts';
export { getNumThreads, setNumThreads } from './device/threads.ts';
export { TensorError, type TensorErrorCode } from './errors.ts';
export * as linalg from './linalg/index.ts';
export * from './ops/index.ts';
export type { Pair } from './ops/layers/window.ts';
export { Generator, generator, manualSeed } from './random/random.ts';
export {
  type GumbelSoftmaxOptions,
  gumbelSoftmax,
  type RReluOptions,
  rrelu,
} from './random/random-activations.ts';
export {
  type NormalOptions,
  normal,
  type RandomLikeOptions,
  randintLike,
  randLike,
  randnLike,
} from './random/random-like.ts';
export {
  bernoulli,
  type DrawOptions,
  type GeneratorOption,
  type MultinomialOptions,
  multinomial,
  type RandomOptions,
  rand,
  randint,
  randn,
  randperm,
} from './random/random-tensors.ts';
export type { GeneratorState } from './random/source.ts';
