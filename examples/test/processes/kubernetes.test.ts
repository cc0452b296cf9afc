// Tests the manifests of examples/kubernetes. For each pod, runs the real `ringwise run --dry-run`, or the function
// with which init() detects its launcher, with the variables that a cluster would set.

import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { detectLauncher } from '../../../packages/collectives/src/init/env.ts';
import { example, ringwise, run } from '../support/run.ts';

/** A parsed manifest. Scalars are text, as written in the file. */
type Tree = { [key: string]: Tree } & Tree[];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-kubernetes-'));
  writeFileSync(join(folder, 'train.js'), '');
});
afterEach(() => rmSync(folder, { recursive: true }));

const manifest = (name: string) =>
  [...parseAllDocuments(readFileSync(example(`kubernetes/${name}`), 'utf8'), { schema: 'failsafe' })].map(
    (document) => {
      expect(document.errors).toEqual([]);
      return document.toJS() as Tree;
    },
  );

interface Container {
  readonly command: string[];
  readonly args?: string[];
  readonly env: { name: string; value?: string; valueFrom?: Record<string, Record<string, string>> }[];
}

/** Returns the variables that the cluster would set for a container in the pod with this index. */
function variables({ env }: Container, index: number): Record<string, string> {
  const sources: Record<string, string> = {
    "metadata.annotations['batch.kubernetes.io/job-completion-index']": `${index}`,
    'ringwise/secret': 'of the cluster',
  };
  const given = env.map(({ name, value, valueFrom }) => {
    const { fieldRef, secretKeyRef } = valueFrom ?? {};
    const source = fieldRef ? fieldRef.fieldPath! : `${secretKeyRef?.name}/${secretKeyRef?.key}`;
    const text = value ?? sources[source];
    if (text === undefined) throw new Error(`${name} is from ${source}, which no pod has`);
    return [name, text] as const;
  });
  return Object.fromEntries(given);
}

/** Returns what `ringwise run` would give each rank of a pod: RANK, WORLD_SIZE, GROUP_RANK, and the store's address. */
async function ranksOf({ command, args = [] }: Container, env: Record<string, string>): Promise<string[][]> {
  expect(command).toEqual(['npx', 'ringwise', 'run']);
  const { stdout, stderr } = await run([ringwise, 'run', '--dry-run', ...args], folder, env);
  expect(stderr).toBe('');
  const told = (name: string) =>
    [...stdout.matchAll(new RegExp(`^  ${name}=(.*)$`, 'gm'))].map((match) => match[1]!);
  const [ranks, sizes, groups] = ['RANK', 'WORLD_SIZE', 'GROUP_RANK'].map(told);
  const [addresses, ports] = [told('MASTER_ADDR'), told('MASTER_PORT')];
  return ranks!.map((rank, i) => [rank, sizes![i]!, groups![i]!, `${addresses[i]}:${ports[i]}`]);
}

const expected = (at: string) => [
  [
    ['0', '4', '0', at],
    ['1', '4', '0', at],
  ],
  [
    ['2', '4', '1', at],
    ['3', '4', '1', at],
  ],
];

/** Returns the ranks of each pod of an Indexed Job, as ranksOf() describes them. */
async function pods(job: Tree): Promise<string[][][]> {
  expect(job).toMatchObject({ completionMode: 'Indexed', parallelism: job.completions });
  const [container] = job.template!.spec!.containers as unknown as [Container];
  const indices = Array.from({ length: Number(job.completions) }, (_, index) => index);
  const env = (index: number) => ({ ...variables(container, index), JOB_COMPLETION_INDEX: `${index}` });
  return await Promise.all(indices.map((index) => ranksOf(container, env(index))));
}

describe('the manifests for Kubernetes', () => {
  it('are all in this test', () => {
    expect(
      readdirSync(example('kubernetes'))
        .filter((name) => name.endsWith('.yaml'))
        .sort(),
    ).toEqual(['indexed-job.yaml', 'jobset.yaml', 'one-rank-per-pod.yaml', 'trainjob.yaml']);
  });

  it.each(['indexed-job.yaml', 'one-rank-per-pod.yaml'])(
    '%s has the service that its pods ask for',
    (name) => {
      const [service, job] = manifest(name);
      expect(service).toMatchObject({
        kind: 'Service',
        spec: { clusterIP: 'None', publishNotReadyAddresses: 'true' },
      });
      expect(service!.spec!.selector).toEqual({ 'job-name': job!.metadata!.name });
      expect(job!.spec!.template!.spec!.subdomain).toBe(service!.metadata!.name);
    },
  );

  it('indexed-job.yaml numbers its ranks pod by pod', async () => {
    const [service, job] = manifest('indexed-job.yaml');
    const podZero = `${job!.metadata!.name}-0.${service!.metadata!.name}`;
    expect(await pods(job!.spec!)).toEqual(expected(`${podZero}:29500`));
  });

  it('jobset.yaml numbers its ranks pod by pod, and finds its pod 0 by the name that JobSet gives it', async () => {
    const [jobSet] = manifest('jobset.yaml');
    const { name } = jobSet!.metadata!;
    const [replicated] = jobSet!.spec!.replicatedJobs as unknown as [Tree];
    expect(replicated.replicas).toBe('1');
    expect(jobSet!.spec!.network).toMatchObject({ enableDNSHostnames: 'true' });
    const podZero = `${name}-${replicated.name}-0-0.${name}`;
    expect(await pods(replicated.template!.spec!)).toEqual(expected(`${podZero}:29500`));
  });

  it('trainjob.yaml needs nothing but the variables of Kubeflow', async () => {
    const [trainJob] = manifest('trainjob.yaml');
    const trainer = trainJob!.spec!.trainer as unknown as Container & Record<string, string>;
    const podZero = `${trainJob!.metadata!.name}-node-0-0.${trainJob!.metadata!.name}`;
    const env = (index: number) => ({
      ...variables(trainer, index),
      JOB_COMPLETION_INDEX: `${index}`,
      PET_NNODES: trainer.numNodes!,
      PET_NPROC_PER_NODE: trainer.numProcPerNode!,
      PET_NODE_RANK: `${index}`,
      PET_MASTER_ADDR: podZero,
      PET_MASTER_PORT: '29500',
    });
    const told = await Promise.all([0, 1].map((index) => ranksOf(trainer, env(index))));
    expect(told).toEqual(expected(`${podZero}:29500`));
  });

  it('one-rank-per-pod.yaml has what init() needs in each pod', () => {
    const [service, job] = manifest('one-rank-per-pod.yaml');
    const [container] = job!.spec!.template!.spec!.containers as unknown as [Container];
    const size = Number(job!.spec!.completions);
    const seen = Array.from({ length: size }, (_, index) => detectLauncher(variables(container, index)));
    expect(seen).toEqual(
      seen.map((_, rank) =>
        expect.objectContaining({ via: 'env', rank, size, isStoreServed: false, masterPort: 29_500 }),
      ),
    );
    const podZero = `${job!.metadata!.name}-0.${service!.metadata!.name}`;
    expect(new Set(seen.map((each) => each!.masterHost))).toEqual(new Set([podZero]));
  });
});

it('a PyTorchJob of Kubeflow is a launcher to init()', () => {
  const env = {
    RANK: '1',
    WORLD_SIZE: '2',
    MASTER_ADDR: 'train-master-0',
    MASTER_PORT: '23456',
    PET_NNODES: '2',
  };
  expect(detectLauncher(env)).toMatchObject({
    via: 'env',
    rank: 1,
    size: 2,
    masterHost: 'train-master-0',
    masterPort: 23_456,
  });
});
