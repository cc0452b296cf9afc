// Measures what it costs the members of an elastic job that a process joins: for how long they stop, how much slower
// their steps are before, and which share of the link to another host is used. Each step has a fixed global batch.
// --help lists the options.
import { spawn } from 'node:child_process';
import { hostname } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { freePort } from '@ringwise/testing';
import type { Result, Task } from './learners/rank.ts';
import { median } from './median.ts';
import { type LinkName, links, makeLink } from './peers/hosts.ts';

const help = `npx tsx bench/learners.ts [options]
  --members N      members before the process joins (2)
  --layers N       of width × width parameters (6)
  --width N        (2048: with 6 layers 101 MB of parameters, and as many of momentum)
  --batch N        global batch (64)
  --steps N        steps before the process comes, and after it has joined (20)
  --hosts L        ${links.join(', ')}: the process that joins is on another host, behind this link; needs root
  --stop           without learning: the members stop until the process has the state`;

const { values } = parseArgs({
  options: {
    members: { type: 'string', default: '2' },
    layers: { type: 'string', default: '6' },
    width: { type: 'string', default: '2048' },
    batch: { type: 'string', default: '64' },
    steps: { type: 'string', default: '20' },
    hosts: { type: 'string' },
    stop: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(help);
  process.exit();
}

const members = Number(values.members);
const program = fileURLToPath(new URL('./learners/rank.ts', import.meta.url));
const loader = new URL('../packages/testing/loader/register.mjs', import.meta.url).href;
const link = values.hosts === undefined ? null : await makeLink(values.hosts as LinkName);
const port = link === null ? await freePort() : 29_500;
const task: Omit<Task, 'role'> = {
  members,
  layers: Number(values.layers),
  width: Number(values.width),
  globalBatch: Number(values.batch),
  steps: Number(values.steps),
  learn: !values.stop,
  secret: 'of the benchmark',
};

function start(role: Task['role'], rank: number) {
  const end = link?.ends[role === 'learner' ? 1 : 0];
  const argv = [process.execPath, '--import', loader, program, JSON.stringify({ ...task, role })];
  const [command, ...args] = end === undefined ? argv : ['ip', 'netns', 'exec', end.name, ...argv];
  const env = {
    ...process.env,
    ...{
      RANK: `${rank}`,
      WORLD_SIZE: `${members + 1}`,
      LOCAL_RANK: `${rank}`,
      LOCAL_WORLD_SIZE: `${members + 1}`,
    },
    ...{
      MASTER_ADDR: link?.ends[0].address ?? '127.0.0.1',
      MASTER_PORT: `${port}`,
      RINGWISE_SECRET: task.secret,
    },
  };
  const child = spawn(command!, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (): Promise<Result> => {
    const line = await lines.next();
    if (line.done) throw new Error(`the process of rank ${rank} (${role}) ended early; its error is above`);
    return JSON.parse(line.value) as Result;
  };
  return { child, next };
}

const mb = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
const keeper = start('store', 0);
const children = [keeper];
try {
  await keeper.next();
  const ranks = Array.from({ length: members }, (_, rank) => start('member', rank));
  const learner = start('learner', members);
  children.push(...ranks, learner);
  const all = await Promise.all([...ranks, learner].map((each) => each.next()));
  const [first, joiner] = [all[0]!, all.at(-1)!];
  const { step, state, atMs } = first.joined!;
  const ends = first.endedAtMs;
  const steps = ends.slice(1).map((end, i) => end - ends[i]!);
  const own = joiner.joined!.state!;
  const alone = steps.slice(2, task.steps - 1);
  const learning = steps.slice(task.steps - 1, step - 1);
  const usual = median(alone);
  const stopMs = atMs - ends[step - 1]!;
  const slow = learning.reduce((sum, ms) => sum + Math.max(0, ms - usual), 0);
  console.log(
    `${members} members on ${hostname()}, ${values.stop ? 'stop and copy' : 'learner'}, ${values.hosts ?? 'one host'}`,
  );
  console.log(
    `state ${mb(state!.bytes)}; before joining ${mb(own.learned?.bytes ?? 0)} from ${own.learned?.sources ?? 0} members`,
  );
  console.log(
    `the learner took ${own.learned?.steps ?? 0} steps; sent while the others waited: ${mb(state!.sentBytes)}`,
  );
  console.log(
    `step: median ${usual.toFixed(0)} ms before, ${median(learning).toFixed(0)} ms in ${learning.length} steps while learning (most ${Math.max(...learning).toFixed(0)} ms)`,
  );
  console.log(
    `the members stopped for ${stopMs.toFixed(0)} ms: ${(stopMs / usual).toFixed(2)} steps; slower steps before: ${(slow / usual).toFixed(2)} steps in all`,
  );
  const used = first.endedCpuMs.slice(3, task.steps).map((ms, i) => ms - first.endedCpuMs[i + 2]!);
  const stopCpuMs = first.joined!.cpuMs - first.endedCpuMs[step - 1]!;
  console.log(
    `processor time of a member: ${median(used).toFixed(0)} ms per step, ${stopCpuMs.toFixed(0)} ms in the stop`,
  );
  const rate = busiest(joiner.received);
  if (rate !== null) console.log(`link: ${mb(rate)}/s in the busiest second`);
  console.log(`equal parameters on all ${all.length}: ${all.every(({ hash }) => hash === first.hash)}`);
} finally {
  for (const { child } of children) child.kill('SIGTERM');
  await link?.close();
}

/** Returns the most bytes that came within one second. */
function busiest(received: Result['received']): number | null {
  let [most, from] = [-1, 0];
  for (const [to, [atMs, bytes]] of received.entries()) {
    while (atMs - received[from]![0] > 1_000) from++;
    if (to > from && atMs - received[from]![0] > 900)
      most = Math.max(most, ((bytes - received[from]![1]) * 1_000) / (atMs - received[from]![0]));
  }
  return most < 0 ? null : most;
}
