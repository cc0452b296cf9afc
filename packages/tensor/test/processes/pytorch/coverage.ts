// Lists the exports of the package, and the reason for each that has no case.
import * as t from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import type { Case } from './case.ts';

const reasons = {
  context:
    'says how code runs and computes nothing: lifetime, anomaly, autocast, autograd, checkpoint, compile.test.ts',
  autograd:
    'the generator takes gradients with grad() and backward(); the rest is in autograd.test.ts, double.test.ts, grad-hooks.test.ts',
  device: 'devices, streams and their memory: cuda.test.ts, streams.test.ts, memory.test.ts, pinned.test.ts',
  machine: 'says what computes, or sets it, or tracks leaks: kernel-sets, threads, cublas and memory.test.ts',
  random: 'draws other random numbers than PyTorch: random.test.ts, init.test.ts',
  memory:
    'makes tensors over memory, or reads, lends or frees it: every case, lifetime.test.ts, handle.test.ts',
  module: 'holds modules or parameters and computes nothing: module.test.ts',
} as const;

const excluded: Readonly<Record<keyof typeof reasons, string>> = {
  context: 'scope keep noGrad enableGrad isGradEnabled autocast detectAnomaly checkpoint compile TensorError',
  autograd:
    'grad jvp hvp jacobian hessian gradCheck customFunction onBackwardEnd Tensor.backward Tensor.registerHook Tensor.retainGrad Tensor.zeroGrad ' +
    'Tensor.onGradReady Tensor.onTrained Tensor.bindGrad Tensor.unbindGrad Tensor.convert Tensor.checkConvertible Tensor.dropGrad',
  device:
    'CudaEvent CudaStream currentStream withStream synchronize emptyCache cudaInfo pinMemory pinArray memory ' +
    'Tensor.pinMemory Tensor.moveTo Tensor.over',
  machine: 'kernelsName getNumThreads setNumThreads setFloat32MatmulPrecision leakReport trackLeaks',
  random:
    'Generator generator manualSeed nn.init.uniform_ nn.init.normal_ nn.init.truncNormal_ nn.init.xavierUniform_ ' +
    'nn.init.xavierNormal_ nn.init.kaimingUniform_ nn.init.kaimingNormal_ nn.init.orthogonal_',
  memory:
    'Tensor fromHost fromHandle Tensor.handle Tensor.dispose Tensor.dataSync Tensor.data Tensor.toArray Tensor.toString ' +
    'Tensor.toJSON',
  module:
    'nn.Module nn.ModuleDict nn.ModuleList nn.ParameterDict nn.ParameterList nn.BatchNorm nn.buffer nn.parameter nn.init linalg',
};

export const exclusions: ReadonlyMap<string, string> = new Map(
  Object.entries(excluded).flatMap(([reason, names]) =>
    names.split(' ').map((name) => [name, reasons[reason as keyof typeof reasons]] as const),
  ),
);

/** Tells whether a method is a name of another library, which only throws (src/checks/foreign-members.ts). */
const isRefused = (method: object): boolean => `${method}`.includes('throw refused(');

function* methods(): Generator<string> {
  let holder: object = t.Tensor.prototype;
  for (; holder !== Object.prototype; holder = Object.getPrototypeOf(holder)) {
    for (const [name, { value }] of Object.entries(Object.getOwnPropertyDescriptors(holder))) {
      if (typeof value === 'function' && name !== 'constructor' && !isRefused(value)) yield `Tensor.${name}`;
    }
  }
}

/** Names of all exports that are values, such as 'add' or 'nn.Linear', and of the methods of Tensor: 'Tensor.add'. */
export const exported: ReadonlySet<string> = new Set([
  ...Object.keys(t),
  ...Object.keys(nn).map((name) => `nn.${name}`),
  ...Object.keys(t.linalg).map((name) => `linalg.${name}`),
  ...Object.keys(nn.init).map((name) => `nn.init.${name}`),
  ...methods(),
]);

/** Returns the names that the cases call. */
export const called = (cases: readonly Case[]): Set<string> =>
  new Set(cases.flatMap(({ steps }) => steps.map(({ op, via }) => (via === 'method' ? `Tensor.${op}` : op))));
