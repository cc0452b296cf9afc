export { onBackwardEnd } from './autograd/backward.ts';
export { type GradCheckOptions, gradCheck } from './autograd/check.ts';
export { checkpoint } from './autograd/checkpoint.ts';
export { customFunction, type FunctionContext, type FunctionOptions } from './autograd/custom.ts';
export { type GradOptions, grad } from './autograd/grad.ts';
export { kernelsName } from './backends/index.ts';
export { type CudaDevice, type CudaInfo, type CudaLibrary, cudaInfo } from './backends/native.ts';
export { type CompiledStep, type CompileOptions, compile } from './compile.ts';
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
} from './context.ts';
export {
  arange,
  type CreationOptions,
  eye,
  fromHost,
  full,
  linspace,
  type NestedData,
  ones,
  onesLike,
  pinArray,
  type TypedArray,
  tensor,
  zeros,
  zerosLike,
} from './creation.ts';
export type { Device, DeviceName } from './device.ts';
export { type DType, type HostArray, promoteTypes, resultType } from './dtype.ts';
export { TensorError, type TensorErrorCode } from './errors.ts';
export { fromHandle } from './handle.ts';
export { type Leak, leakReport, trackLeaks } from './leaks.ts';
export * from './ops/index.ts';
export { type MatmulPrecision, setFloat32MatmulPrecision } from './precision.ts';
export type { BufferView, DeviceHandle, GradParam, TensorHandle } from './protocol.ts';
export { Generator, type GeneratorState, generator, manualSeed } from './random.ts';
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
} from './random-tensors.ts';
export type { Shape } from './shape.ts';
export { emptyCache, type MemoryUse, memory, synchronize } from './storage.ts';
export { CudaEvent, CudaStream, currentStream, withStream } from './streams.ts';
export { type Operand, Tensor } from './tensor.ts';
export type { NestedNumbers } from './tensor-core.ts';
export { getNumThreads, setNumThreads } from './threads.ts';
export type { Pair } from './window.ts';
