// Waits for views in the store of the processes that a test has started.
import { PrefixStore, TcpStore } from '@ringwise/store';
import { jobPrefix, viewKey } from '../../src/membership/keys.ts';

/** Resolves when the view `number` of the job is in the store. */
export async function waitForView(number: number): Promise<void> {
  const { MASTER_ADDR: host, MASTER_PORT: port, RINGWISE_SECRET: secret, RINGWISE_RUN_ID } = process.env;
  const store = await TcpStore.connect({ host: host!, port: Number(port), secret: secret! });
  const runId = RINGWISE_RUN_ID || process.env.TORCHELASTIC_RUN_ID || 'run';
  await new PrefixStore(jobPrefix(runId), store).wait([viewKey(number)]);
  await store.close();
}
