// Tests which processors and GPUs each rank gets, on hosts described by files and on the real one.

import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type BindingKind, bindRanks, coresOf } from '../../../src/agent/binding.ts';
import { bindingsOf } from '../../../src/agent/placement.ts';
import { formatList, gpuNodes, parseList, readTopology } from '../../../src/agent/topology.ts';
import { finished, script } from '../../support/command.ts';

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ringwise-topology-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function file(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** Describes a host of two sockets with two nodes each. A node has 2 caches and 4 cores of 2 threads (n and n + 16). */
function bigHost(allowed = '0-31'): void {
  file('proc/self/status', `Name:\tnode\nCpus_allowed_list:\t${allowed}\n`);
  for (let node = 0; node < 4; node++) {
    const [first, last] = [4 * node, 4 * node + 3];
    file(`sys/devices/system/node/node${node}/cpulist`, `${first}-${last},${first + 16}-${last + 16}\n`);
  }
  for (let id = 0; id < 32; id++) {
    const core = id % 16;
    const cache = core - (core % 2);
    const cpu = `sys/devices/system/cpu/cpu${id}`;
    file(`${cpu}/topology/thread_siblings_list`, `${core},${core + 16}\n`);
    file(`${cpu}/topology/physical_package_id`, `${core < 8 ? 0 : 1}\n`);
    file(`${cpu}/cache/index3/shared_cpu_list`, `${cache}-${cache + 1},${cache + 16}-${cache + 17}\n`);
  }
}

function gpu(address: string, node: number, uuid: string): void {
  file(`sys/bus/pci/devices/${address}/numa_node`, `${node}\n`);
  file(`proc/driver/nvidia/gpus/${address}/information`, `Model: \t A\nGPU UUID: \t ${uuid}\n`);
}

const bound = (kind: BindingKind, nproc: number, gpus: (number | null)[] = []) =>
  bindRanks(kind, readTopology(root), nproc, gpus).map((own) => formatList(own.map(({ id }) => id)));

describe('lists of processors', () => {
  it('are read and written as the kernel has them', () => {
    expect(parseList('0-2,8,10-11\n')).toEqual([0, 1, 2, 8, 10, 11]);
    expect(formatList([11, 0, 2, 1, 8, 10])).toBe('0-2,8,10-11');
    expect(parseList('')).toEqual([]);
  });
});

describe('ranks on a host with several memory nodes', () => {
  it.each<[BindingKind, number, string[]]>([
    ['node', 4, ['0-3,16-19', '4-7,20-23', '8-11,24-27', '12-15,28-31']],
    ['node', 2, ['0-3,16-19', '8-11,24-27']],
    ['socket', 2, ['0-7,16-23', '8-15,24-31']],
    ['exclusive', 4, ['0-3,16-19', '4-7,20-23', '8-11,24-27', '12-15,28-31']],
    [
      'exclusive',
      8,
      [
        '0-1,16-17',
        '2-3,18-19',
        '4-5,20-21',
        '6-7,22-23',
        '8-9,24-25',
        '10-11,26-27',
        '12-13,28-29',
        '14-15,30-31',
      ],
    ],
    ['core-complex', 5, ['0-1,16-17', '2-3,18-19', '4-5,20-21', '8-9,24-25', '12-13,28-29']],
  ])('%s, %i ranks', (kind, nproc, lists) => {
    bigHost();
    expect(bound(kind, nproc)).toEqual(lists);
  });

  it('share the cores that are left over, and only those that this process may use', () => {
    bigHost('0-2,16-18');
    expect(bound('exclusive', 2)).toEqual(['0-1,16-17', '2,18']);
    expect(readTopology(root).map(({ id }) => id)).toEqual([0, 1, 2, 16, 17, 18]);
    expect(coresOf(readTopology(root))).toBe(3);
    expect(() => bound('exclusive', 4)).toThrow('--numa-binding exclusive has 3 cores for 4 ranks');
  });

  it('are near their GPUs, as CUDA_VISIBLE_DEVICES orders them', () => {
    bigHost();
    gpu('0000:17:00.0', 3, 'GPU-aaa');
    gpu('0000:65:00.0', 1, 'GPU-bbb');
    gpu('0000:b1:00.0', -1, 'GPU-ccc');
    expect(gpuNodes({}, root)).toEqual([3, 1, null]);
    expect(gpuNodes({ CUDA_VISIBLE_DEVICES: '1,0' }, root)).toEqual([1, 3]);
    expect(gpuNodes({ CUDA_VISIBLE_DEVICES: 'GPU-bb,GPU-cc' }, root)).toEqual([1, null]);
    expect(gpuNodes({ CUDA_VISIBLE_DEVICES: '' }, root)).toEqual([]);
    expect(bound('node', 2, [3, 1])).toEqual(['12-15,28-31', '4-7,20-23']);
    expect(bound('exclusive', 2, [1, 1])).toEqual(['4-5,20-21', '6-7,22-23']);
    // One GPU for two ranks is treated like no GPU at all.
    expect(bound('node', 2, [3])).toEqual(['0-3,16-19', '8-11,24-27']);
  });

  it('all have one node where the kernel does not tell', () => {
    file('proc/self/status', 'Cpus_allowed_list:\t0-3\n');
    expect(bound('node', 2)).toEqual(['0-3', '0-3']);
    expect(bound('exclusive', 2)).toEqual(['0-1', '2-3']);
  });
});

describe('--virtual-local-rank', () => {
  it('shows each rank its own GPU only, as number 0', () => {
    const bindings = (env: NodeJS.ProcessEnv) =>
      bindingsOf({ binding: null, isLocalRankVirtual: true }, 2, 0, env).map(({ env }) => env);
    expect(bindings({})).toEqual([
      { LOCAL_RANK: '0', CUDA_VISIBLE_DEVICES: '0' },
      { LOCAL_RANK: '0', CUDA_VISIBLE_DEVICES: '1' },
    ]);
    expect(bindings({ CUDA_VISIBLE_DEVICES: '5,7' }).map((env) => env.CUDA_VISIBLE_DEVICES)).toEqual([
      '5',
      '7',
    ]);
  });

  it('is refused if there are fewer GPUs than ranks, but accepted without any', () => {
    const bindings = (nproc: number, gpus: number, env: NodeJS.ProcessEnv) =>
      bindingsOf({ binding: null, isLocalRankVirtual: true }, nproc, gpus, env);
    expect(() => bindings(3, 2, { CUDA_VISIBLE_DEVICES: '5,7' })).toThrow(
      /--virtual-local-rank has 2 GPUs \(CUDA_VISIBLE_DEVICES=5,7\) for 3 ranks; expected at least one each/,
    );
    expect(() => bindings(2, 1, {})).toThrow(/has 1 GPU for 2 ranks/);
    expect(bindings(2, 2, {})).toHaveLength(2);
    expect(bindings(2, 0, {})).toHaveLength(2);
  });
});

const taskset = spawnSync('taskset', ['--version']).status === 0;
describe.skipIf(!taskset)(`--numa-binding${taskset ? '' : ' (skipped: no taskset)'}`, () => {
  const mine = readTopology();
  const cores = coresOf(mine);

  it.skipIf(cores < 2)('binds all threads of a rank, and --dry-run shows how', async () => {
    const source = script(
      'bound.mjs',
      `import { readFileSync, readdirSync } from 'node:fs';
       const lists = readdirSync('/proc/self/task').map((id) =>
         /Cpus_allowed_list:\\s*(\\S+)/.exec(readFileSync('/proc/self/task/' + id + '/status', 'utf8'))[1]);
       console.log([...new Set(lists)].join(' and '), process.env.OMP_NUM_THREADS);`,
    );
    const expected = bindRanks('exclusive', mine, 2, []).map(
      (own) => [formatList(own.map(({ id }) => id)), coresOf(own)] as const,
    );
    const flags = ['run', '--nproc-per-node', '2', '--numa-binding', 'exclusive'];
    const { stdout, stderr } = await finished([...flags, source]);
    expect(stdout.trim().split('\n').sort(), stderr).toEqual(
      expected.map(([list, threads], rank) => `[${rank}] ${list} ${threads}`),
    );
    const dry = await finished([...flags, '--dry-run', source]);
    for (const [rank, [list, threads]] of expected.entries()) {
      expect(dry.stdout).toMatch(new RegExp(`rank ${rank}: \\S*taskset -c ${list} \\S*node `));
      expect(dry.stdout).toContain(`OMP_NUM_THREADS=${threads}`);
    }
  });

  it('says which kinds there are, and what is missing', async () => {
    const source = script('empty.mjs', '');
    const wrong = await finished(['run', '--numa-binding', 'cores', source]);
    expect(wrong.exitCode).toBe(2);
    expect(wrong.stderr).toContain(
      "--numa-binding expects node, socket, exclusive, core-complex, got 'cores'",
    );
    const without = await finished(['run', '--numa-binding', 'node', source], { PATH: root });
    expect(without.stderr).toContain('there is no taskset in PATH');
  });
});
