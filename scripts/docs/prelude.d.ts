// The variables that code of the docs may use without declaring them. scripts/docs/compile.mjs adds this file to every
// check; names that packages export need no entry, because they are imported where a block uses them.
declare const group: import('@ringwise/collectives').Group;
declare const grid: import('@ringwise/collectives').Mesh<'dp' | 'tp'>;
declare const work: import('@ringwise/collectives').Work<number>;
declare const factory: import('@ringwise/collectives').BackendFactory;
declare const store: import('@ringwise/store').Store;
declare const error: unknown;
declare const x: import('@ringwise/tensor').Tensor;
declare const y: import('@ringwise/tensor').Tensor;
declare const out: import('@ringwise/tensor').Tensor;
declare const loss: import('@ringwise/tensor').Tensor;
declare const parts: readonly Float32Array[];
declare const net: import('@ringwise/tensor/nn').Sequential;
declare const otherNet: import('@ringwise/tensor/nn').Sequential;
declare const model: import('@ringwise/ddp').DistributedDataParallel<
  import('@ringwise/tensor/nn').Sequential
>;
declare const optimizer: import('@ringwise/tensor/optim').AdamW;
declare const schedule: import('@ringwise/tensor/optim').StepLR;
declare const scaler: import('@ringwise/tensor/optim').GradScaler;
declare const zero: import('@ringwise/ddp').ZeroRedundancyOptimizer<
  import('@ringwise/tensor').Tensor,
  import('@ringwise/tensor/optim').AdamW
>;
declare const job: import('@ringwise/elastic').ElasticJob;
declare const dataset: import('@ringwise/data').Dataset<number>;
declare const loader: import('@ringwise/data').DataLoader<
  number,
  { readonly image: import('@ringwise/tensor').Tensor; readonly label: import('@ringwise/tensor').Tensor }
>;
declare const randpermOfData: typeof import('@ringwise/data').randperm;
