// Makes the environment of a rank. It must show the rank's own launcher only, neither the test runner nor a torchrun
// job that started the test runner. Variables of other launchers, such as Slurm's, are inherited.

const foreign =
  /^(VITEST|VITE_|TORCHELASTIC_|PET_|NODE_OPTIONS$|NODE_CHANNEL_|NODE_UNIQUE_ID$|NODE_ENV$|RINGWISE_SECRET$)/;
// Set by vite for the code under test.
const viteNames = new Set(['TEST', 'DEV', 'PROD', 'SSR', 'MODE', 'BASE_URL']);

export interface Job {
  readonly size: number;
  readonly port: number;
  readonly runId: string;
  readonly secret: string | undefined;
}

/**
 * Returns this process's environment, without the variables of the test runner and of an outer torchrun, and with those
 * that torchrun and `ringwise run` set on one host. `extra` overrides all.
 */
export function rankEnvironment(
  rank: number,
  job: Job,
  extra: Readonly<Record<string, string>>,
): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !foreign.test(name) && !viteNames.has(name),
  );
  return {
    ...Object.fromEntries(inherited),
    RANK: String(rank),
    LOCAL_RANK: String(rank),
    GROUP_RANK: '0',
    WORLD_SIZE: String(job.size),
    LOCAL_WORLD_SIZE: String(job.size),
    MASTER_ADDR: '127.0.0.1',
    MASTER_PORT: String(job.port),
    RINGWISE_RUN_ID: job.runId,
    // The caller hosts the store, as an agent does: ranks only connect.
    TORCHELASTIC_USE_AGENT_STORE: 'True',
    ...(job.secret !== undefined && { RINGWISE_SECRET: job.secret }),
    ...extra,
  };
}
