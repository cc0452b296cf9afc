// Members of loaders and samplers as users of PyTorch may read them; names in snake_case of ours need no entry.

import type { ForeignMembers } from './foreign-members.ts';

/** Returns the advice for members that repeat options, under our names and under those of PyTorch. */
function given(names: Readonly<Record<string, readonly string[]>>): Readonly<Record<string, string>> {
  const entries = Object.entries(names).flatMap(([option, foreign]) =>
    [option, ...foreign].map((name) => [name, `the value that the program has passed as ${option}`]),
  );
  return Object.fromEntries(entries) as Readonly<Record<string, string>>;
}

/** Methods of torchdata's StatefulDataLoader and its samplers. */
const states = {
  ...{ stateDict: 'state()', state_dict: 'state()' },
  ...{ loadStateDict: 'load()', load_state_dict: 'load()' },
};

export const foreignLoaderMembers: ForeignMembers = {
  properties: given({
    ...{ dataset: [], sampler: [], batchSampler: ['batch_sampler'], batchSize: ['batch_size'] },
    ...{ dropLast: ['drop_last'], numWorkers: ['num_workers'], collate: ['collateFn', 'collate_fn'] },
    ...{ pinMemory: ['pin_memory'], prefetch: ['prefetchFactor', 'prefetch_factor'], seed: ['generator'] },
    ...{ persistentWorkers: ['persistent_workers'], timeoutMs: ['timeout'] },
  }),
  methods: { ...states, setEpoch: 'setEpoch() of the sampler', set_epoch: 'setEpoch() of the sampler' },
};

export const foreignSamplerMembers: ForeignMembers = {
  properties: {
    ...{ numSamples: 'length', num_samples: 'length' },
    ...{ totalSize: 'length × replicas', total_size: 'length × replicas', seed: 'state().seed' },
    ...given({ replicas: ['numReplicas', 'num_replicas'], rank: [], dropLast: ['drop_last'] }),
    ...given({ shuffle: [], replacement: [], weights: [], dataset: ['dataSource', 'data_source'] }),
    generator: 'state().seed',
  },
  methods: states,
};

export const foreignBatchSamplerMembers: ForeignMembers = {
  properties: given({ sampler: [], batchSize: ['batch_size'], dropLast: ['drop_last'] }),
  methods: states,
};
