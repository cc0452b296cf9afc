// Reads the logical processors of a Linux host that this process may use, and their topology: which share a core, a
// level 3 cache, a NUMA node, a socket. Uses /sys and /proc. Without them, each processor counts as a core of its own,
// a node has one cache, and the host has one node and one socket.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Processor {
  readonly id: number;
  /** The lowest-numbered processor of the same core; hyper-threads have the same value. */
  readonly core: number;
  /** The lowest-numbered processor that shares the level 3 cache. */
  readonly complex: number;
  readonly node: number;
  readonly socket: number;
}

/** Returns the processors. `root` is the folder with sys and proc. */
export function readTopology(root = '/'): Processor[] {
  const status = read(root, 'proc/self/status') ?? '';
  const allowed = parseList(/^Cpus_allowed_list:\s*(\S+)/m.exec(status)?.[1] ?? '');
  const nodes = nodesOf(root);
  return allowed.map((id) => {
    const cpu = `sys/devices/system/cpu/cpu${id}`;
    const node = nodes.get(id) ?? 0;
    return {
      id,
      core: smallest(read(root, `${cpu}/topology/thread_siblings_list`)) ?? id,
      complex: smallest(read(root, `${cpu}/cache/index3/shared_cpu_list`)) ?? node,
      node,
      socket: Math.max(0, Number(read(root, `${cpu}/topology/physical_package_id`) ?? 0)),
    };
  });
}

function nodesOf(root: string): Map<number, number> {
  const folder = 'sys/devices/system/node';
  const nodes = new Map<number, number>();
  for (const name of list(root, folder)) {
    const node = /^node(\d+)$/.exec(name)?.[1];
    if (node === undefined) continue;
    for (const id of parseList(read(root, `${folder}/${name}/cpulist`) ?? '')) nodes.set(id, Number(node));
  }
  return nodes;
}

/**
 * Returns the NUMA nodes of the NVIDIA devices that ranks see, null for unknown ones: in the order of
 * CUDA_VISIBLE_DEVICES, or of all bus addresses. Numbers in CUDA_VISIBLE_DEVICES are interpreted as indices in the
 * order of bus addresses.
 */
export function gpuNodes(env: NodeJS.ProcessEnv, root = '/'): (number | null)[] {
  const folder = 'proc/driver/nvidia/gpus';
  const devices = list(root, folder)
    .sort()
    .map((address) => {
      const node = Number(read(root, `sys/bus/pci/devices/${address}/numa_node`) ?? -1);
      const uuid = /^GPU UUID:\s*(\S+)/m.exec(read(root, `${folder}/${address}/information`) ?? '')?.[1];
      return { uuid, node: node < 0 ? null : node };
    });
  const visible = env.CUDA_VISIBLE_DEVICES?.split(',').map((name) => name.trim());
  if (visible === undefined) return devices.map(({ node }) => node);
  return visible
    .filter((name) => name !== '' && name !== '-1')
    .map((name) => {
      const isUuid = name.startsWith('GPU-');
      const device = isUuid ? devices.find(({ uuid }) => uuid?.startsWith(name)) : devices[Number(name)];
      return device?.node ?? null;
    });
}

/** Parses a kernel list: "0-2,8" gives 0, 1, 2, 8. */
export function parseList(text: string): number[] {
  return text
    .trim()
    .split(',')
    .filter(Boolean)
    .flatMap((part) => {
      const [first, last = first] = part.split('-').map(Number) as [number, number?];
      return Array.from({ length: last! - first + 1 }, (_, index) => first + index);
    });
}

/** Formats numbers as a kernel list, as short as possible. */
export function formatList(ids: readonly number[]): string {
  const sorted = [...ids].sort((a, b) => a - b);
  const runs: [number, number][] = [];
  for (const id of sorted) {
    const run = runs.at(-1);
    if (run && id === run[1] + 1) run[1] = id;
    else runs.push([id, id]);
  }
  return runs.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

function smallest(text: string | null): number | undefined {
  return text === null ? undefined : parseList(text)[0];
}

function read(root: string, path: string): string | null {
  try {
    return readFileSync(join(root, path), 'utf8').trim();
  } catch {
    return null;
  }
}

function list(root: string, path: string): string[] {
  try {
    return readdirSync(join(root, path));
  } catch {
    return [];
  }
}
