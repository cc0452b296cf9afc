// Runs an elastic training job on two hosts and disturbs it at random: kills ranks and launchers, stops
// ranks, cuts off a host. Checks that training loses nothing and that no process or file is left.
//
//   npx tsx bench/kills.ts [--kills 100] [--seed 1] [--loopback]
//
// The hosts are two network namespaces, which need root. With --loopback both launchers run on this host, and
// no host is cut off. Reports each disturbance on stderr and prints one JSON line. The exit code is 1 if a
// loss differs from the undisturbed run's, or a process or file was left.
import { once } from 'node:events';
import { createServer } from 'node:net';
import { parseArgs } from 'node:util';
import { disturbances, soak } from '../packages/ringwise/test/support/kill-soak.ts';
import { randomOf } from '../packages/store/test/support/fuzz.ts';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    loopback: { type: 'boolean', default: false },
  },
});
const random = randomOf(Number(values.seed));
const kinds = disturbances.filter((what) => what !== 'cut' || !values.loopback);
const plan = Array.from({ length: Number(values.kills) }, () => kinds[Math.floor(random() * kinds.length)]!);

const server = createServer().listen(0, '127.0.0.1');
await once(server, 'listening');
const { port } = server.address() as { port: number };
server.close();
await once(server, 'close');

const { recoveredMs, ...result } = await soak({
  plan,
  random,
  namespaces: !values.loopback,
  port,
  onDisturbed: (index, what, ms) =>
    console.error(`${index + 1}: ${what}, ${Math.round(ms)} ms until it went on`),
});
const ok = result.wrong.length === 0 && result.left.length === 0;
const sorted = [...recoveredMs].sort((a: number, b: number) => a - b);
const times = { medianMs: Math.round(sorted[sorted.length >> 1]!), maxMs: Math.round(sorted.at(-1)!) };
console.log(JSON.stringify({ bench: 'kills', kills: plan.length, ...result, ...times, ok }));
if (!ok) process.exitCode = 1;
