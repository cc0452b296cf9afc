// All packages of this repository, packed and published to a registry on the loopback interface. `npm run
// release:dry-run` packs them once: RINGWISE_TEST_PACKED is the folder with the list. Otherwise each test file packs.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { readConfig } from '../../release/config.mjs';
import { packAll } from '../../release/pack.mjs';
import { publishedPackages } from '../../release/packages.mjs';
import { startRegistry } from '../../release/registry.mjs';
import { type CleanRoom, cleanRoom, platform, root } from './clean-room.ts';

export type Packed = Awaited<ReturnType<typeof packAll>>;
export type Registry = Awaited<ReturnType<typeof startRegistry>>;

/** The values of release.config.json; where they are still to do, those of a rehearsal. */
export const config = readConfig(root, { isRehearsal: true });

/** Returns the packed packages; packs them into `folder` if no dry run has. */
export async function packedPackages(folder: string): Promise<Packed> {
  const shared = process.env.RINGWISE_TEST_PACKED;
  if (shared) return JSON.parse(readFileSync(join(shared, 'packed.json'), 'utf8')) as Packed;
  return packAll(publishedPackages(root), { root, config, into: folder });
}

/**
 * Tells whether a project with `ringwise` needs a package on this platform. For @ringwise/tfjs, npm would download its
 * peer TensorFlow.js.
 */
export const isUsed = ({ isCompiled, manifest: { name } }: Packed[number]): boolean =>
  isCompiled
    ? [`@ringwise/collectives-${platform}`, `@ringwise/tensor-${platform}`].includes(name)
    : name !== '@ringwise/tfjs';

export interface Published {
  /** An empty folder for the tests of this file. */
  readonly work: string;
  readonly packed: Packed;
  readonly registry: Registry;
  readonly room: CleanRoom;
}

/**
 * Prepares, before the tests of the file that calls it, a registry and a clean room that uses it, and removes both
 * after them. The registry has all packages, unless `isEmpty`. The result may be read in tests and hooks only.
 */
export function published({ isEmpty = false } = {}): Published {
  const result = {} as { -readonly [Key in keyof Published]: Published[Key] };
  beforeAll(async () => {
    result.work = mkdtempSync(join(tmpdir(), 'ringwise-published-'));
    result.registry = await startRegistry();
    result.packed = await packedPackages(join(result.work, 'packed'));
    if (!isEmpty) result.registry.add(result.packed);
    result.room = cleanRoom(join(result.work, 'room'), result.registry.url);
  });
  afterAll(async () => {
    await result.registry?.close();
    rmSync(result.work, { recursive: true, force: true });
  });
  return result;
}
