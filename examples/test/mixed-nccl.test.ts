// The Node ranks of mixed-nccl on the software device, where it has been built; another Node process is in the place of PyTorch's.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { serveStore } from '@ringwise/store';
import { expect, it } from 'vitest';
import { example } from './run.ts';

const driver = fileURLToPath(new URL('../../native/build/Release/libsoftware_cuda.so', import.meta.url));

it.skipIf(!existsSync(driver))(
  'Node ranks take part in a communicator whose id they find under the key of PyTorch',
  { timeout: 60_000 },
  async () => {
    const server = await serveStore();
    const run = async (rank: number, program: string) => {
      const env = {
        ...process.env,
        ...{ RINGWISE_LIBCUDA: driver, RINGWISE_LIBNCCL: driver },
        ...{ MASTER_ADDR: server.host, MASTER_PORT: String(server.port) },
        ...{ RANK: String(rank), LOCAL_RANK: String(rank % 2), WORLD_SIZE: '3' },
      };
      const { stdout } = await promisify(execFile)(process.execPath, [program], { env, timeout: 50_000 });
      return stdout;
    };
    const first = fileURLToPath(new URL('./mixed-nccl-first.mjs', import.meta.url));
    const rank = example('mixed-nccl/rank.mjs');
    const said = await Promise.all([run(0, first), run(1, rank), run(2, rank)]);
    await server.close();
    expect(said).toEqual(['', 'rank 1 (Node) has the sum 6\n', 'rank 2 (Node) has the sum 6\n']);
  },
);
