// Plants faults into pages and expects that the check of the documentation names them, and checks that
// docs/from-pytorch.md has every name that a PyTorch user looks for.
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { docsFaults } from '../../checks/docs.mjs';
import { undocumentedFaults } from '../../docs/documented.mjs';
import { codesOf } from '../../docs/error-codes.mjs';
import { anchorsOf, linkFaults } from '../../docs/links.mjs';
import { blocksOf, spansOfColumn } from '../../docs/pages.mjs';
import { variableFaults } from '../../docs/variables.mjs';

const page = readFileSync(new URL('../../../docs/from-pytorch.md', import.meta.url), 'utf8');
const table = (...codes: string[]) =>
  `| PyTorch | ringwise |\n| --- | --- |\n${codes.map((code) => `| \`theirs()\` | ${code} |\n`).join('')}`;
const faultsOf = (text: string, path = 'docs/planted/from-pytorch.md') => docsFaults(new Map([[path, text]]));

describe('check-docs', () => {
  it('reads blocks with their lines, marks and declarations', () => {
    const text =
      'a\n\n<!-- given: declare const n: number; -->\n\n```ts twoslash\nn;\n```\n\n````md\n```js\n```\n````\n';
    expect(blocksOf(text)).toMatchObject([
      { language: 'ts', marks: ['twoslash'], line: 6, text: 'n;', given: 'declare const n: number;' },
      { language: 'md', marks: [], text: '```js\n```', given: '' },
    ]);
  });

  it('reads the code of one column, with pipes', () => {
    expect(spansOfColumn('| a | ringwise |\n|---|---|\n| `no` | `x \\| y` and `z` |\n', 'ringwise')).toEqual([
      { code: 'x | y', line: 3 },
      { code: 'z', line: 3 },
    ]);
  });

  it('finds links and anchors that lead nowhere', () => {
    expect(anchorsOf('# A `b`, c_d!\n\n## Two\n\n## Two\n')).toEqual(new Set(['a-b-c_d', 'two', 'two-1']));
    const text =
      '# Here\n\n[a](#here) [b](#there) [c](data.md#several-ranks) [d](data.md#none) [e](none.md)\n';
    expect(linkFaults('docs/planted.md', text)).toEqual([
      'docs/planted.md:3 links to #there, but docs/planted.md has no heading #there',
      'docs/planted.md:3 links to data.md#none, but docs/data.md has no heading #none',
      'docs/planted.md:3 links to none.md, but there is no docs/none.md',
    ]);
  });

  it('finds functions, methods, options, flags, variables and commands that do not exist', () => {
    const text = table(
      '`await group.allReduce(x)` `--nnodes` `RINGWISE_SECRET` `PET_NNODES` `npx ringwise doctor`',
      '`await group.allSum(x)`',
      '`await group.allReduce(x, { opp: "sum" })`',
      '`noSuchExport(1)`',
      '`--no-such-flag` `RINGWISE_NO_SUCH` `PET_NO_SUCH` `npx ringwise fly`',
    );
    const faults = faultsOf(text).join('\n');
    expect(faults.split('\n').length).toBe(7);
    expect(faults).toContain("from-pytorch.md:4 Property 'allSum' does not exist");
    expect(faults).toContain("'opp' does not exist in type 'AllReduceOptions'");
    expect(faults).toContain("from-pytorch.md:6 Cannot find name 'noSuchExport'");
    for (const each of ['--no-such-flag', 'RINGWISE_NO_SUCH', 'PET_NO_SUCH', 'ringwise fly']) {
      expect(faults).toContain(each);
    }
  });

  it('compiles examples of doc comments', () => {
    const text =
      '/**\n * Says.\n *\n * @example\n * ```ts\n * await group.allSum(x);\n * ```\n */\nconst a = 1;\n';
    const faults = docsFaults(new Map(), new Map([['packages/collectives/src/planted.ts', text]]));
    expect(faults).toEqual([expect.stringMatching(/^packages\/collectives\/src\/planted\.ts:6 .*'allSum'/)]);
  });

  it('compiles ts blocks of every page', () => {
    const text =
      "# A\n\n```ts\nimport { init } from '@ringwise/collectives';\n\nawait init({ ranks: 2 });\n```\n";
    expect(faultsOf(text, 'docs/planted.md')).toEqual([
      expect.stringMatching(/^docs\/planted\.md:6 .*'ranks'/),
    ]);
  });
});

describe('docstrings', () => {
  it('are missed where an export or a member has none, unless it is marked as internal', () => {
    const file = 'scripts/test/fixtures/undocumented.d.ts';
    const names = ['bare', 'Derived.size', 'Derived.length', 'Derived.bareToo', 'Derived.made'];
    expect(undocumentedFaults([['planted', file]])).toEqual(
      [...names, 'Tagged', 'Tagged.a', 'Tensor.other'].map(
        (name) => `planted exports ${name}, which has no docstring`,
      ),
    );
  });
});

describe('reference pages', () => {
  it('miss variables that sources read, and have none that no source reads', () => {
    const text = '| variable |\n| --- |\n| `RINGWISE_SECRET`, `SLURM_*` |\n| `RINGWISE_NO_SUCH` |\n';
    const read = ['RINGWISE_SECRET', 'RINGWISE_BACKEND', 'SLURM_PROCID'];
    expect(variableFaults('page.md', text, read)).toEqual([
      'page.md does not describe RINGWISE_BACKEND, which a source reads',
      'page.md:4 describes RINGWISE_NO_SUCH, which no source reads',
    ]);
  });

  it('know the error codes of a package', () => {
    expect(codesOf('collectives')).toContain('ERR_COLL_TIMEOUT');
    expect(codesOf('store')).toContain('ERR_STORE_TIMEOUT');
  });
});

/** Public names of torch.distributed, of DDP and of torchrun, which readers search for. */
const names = `
  all_gather all_gather_coalesced all_gather_into_tensor all_gather_object all_gather_single all_reduce
  all_reduce_coalesced all_to_all all_to_all_single barrier batch_isend_irecv broadcast broadcast_object_list
  destroy_process_group gather gather_object get_backend get_backend_config get_default_backend_for_device
  get_global_rank get_group_rank get_node_local_rank get_pg_count get_process_group_ranks get_rank get_world_size
  init_process_group irecv is_available is_backend_available is_gloo_available is_initialized is_mpi_available
  is_nccl_available is_torchelastic_launched is_ucc_available is_xccl_available isend monitored_barrier new_group
  new_subgroups new_subgroups_by_enumeration record_comm recv recv_object_list reduce reduce_scatter
  reduce_scatter_single reduce_scatter_tensor scatter scatter_object_list send send_object_list shrink_group
  split_group supports_complex init_device_mesh DeviceMesh P2POp ReduceOp PREMUL_SUM TCPStore FileStore HashStore
  PrefixStore Backend BackendConfig DebugLevel register_backend
  DistributedDataParallel bucket_cap_mb broadcast_buffers find_unused_parameters static_graph gradient_as_bucket_view
  no_sync register_comm_hook join powerSGD_hook fp16_compress_hook convert_sync_batchnorm ZeroRedundancyOptimizer
  clip_grad_norm_ clip_grad_value_ GradScaler autocast torch.compile DataParallel FSDP
  LambdaLR MultiplicativeLR StepLR MultiStepLR ConstantLR LinearLR ExponentialLR SequentialLR PolynomialLR
  CosineAnnealingLR ChainedScheduler ReduceLROnPlateau CyclicLR OneCycleLR CosineAnnealingWarmRestarts
  batch_size shuffle sampler batch_sampler num_workers collate_fn pin_memory drop_last timeout worker_init_fn
  multiprocessing_context generator prefetch_factor persistent_workers pin_memory_device in_order
  DistributedSampler set_epoch mp.spawn start_processes
  --nnodes --nproc-per-node --rdzv-backend --rdzv-endpoint --rdzv-id --rdzv-conf --standalone --max-restarts
  --monitor-interval --start-method --event-log-handler --role --module --no-python --run-path --log-dir --redirects
  --tee --local-ranks-filter --node-rank --master-addr --master-port --local-addr --logs-specs --numa-binding
  --signals-to-handle --virtual-local-rank --shutdown-timeout --duplicate-stdout-filters --duplicate-stderr-filters
  nn.Parameter register_buffer named_parameters named_buffers named_modules named_children requires_grad_ deepcopy
  nn.Sequential nn.ModuleList nn.ModuleDict nn.ParameterList xavier_uniform_ register_forward_hook
  RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE ROLE_NAME ROLE_RANK ROLE_WORLD_SIZE
  MASTER_ADDR MASTER_PORT TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RUN_ID
  TORCHELASTIC_USE_AGENT_STORE TORCHELASTIC_ERROR_FILE OMP_NUM_THREADS TORCH_DISTRIBUTED_DEBUG
`
  .trim()
  .split(/\s+/);

describe('docs/from-pytorch.md', () => {
  it.each(names)('has %s', (name) => {
    const plain = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
    expect(page).toMatch(new RegExp(`(?<![\\w-])${plain}(?![\\w-])`));
  });
});
