// Trains the small GPT of examples/char-gpt on two hosts with a slow link between them: with DDP, then apart with
// DiLoCo until the loss on held-out text is that of DDP. Prints both loss curves with the bytes on the link, and how
// many times fewer bytes DiLoCo has sent. --help lists the options.
//
// The hosts are network namespaces, which need root. Bytes are those of the interface of the first host, both ways,
// with all headers, from the first step on.
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Point, Task } from './diloco/rank.ts';
import { type Linked, type LinkName, links, makeLink } from './peers/hosts.ts';

const help = `npx tsx bench/diloco.ts [options]
  --ranks N        2, or 4 with two on each host (2)
  --link L         ${links.join(', ')}: veth pairs, with 1 Gbit/s, with 1 Gbit/s and 1 ms each way (wan)
  --steps N        steps of DDP, on batches of 16 windows in all (300)
  --longer F       DiLoCo takes at most F × as many steps (1.5)
  --every H        inner steps of a round (25)
  --fragments F    (1)        --delay D    inner steps (0)        --mix A    (0)
  --wire W         full, bfloat16 or int8 (int8)
  --outer-lr L     (0.7)      --outer-momentum M    of Nesterov; 0: plain SGD (0.9)
  --json           one JSON line at the end instead of tables`;

const { values } = parseArgs({
  options: {
    ranks: { type: 'string', default: '2' },
    link: { type: 'string', default: 'wan' },
    steps: { type: 'string', default: '300' },
    longer: { type: 'string', default: '1.5' },
    every: { type: 'string', default: '25' },
    fragments: { type: 'string', default: '1' },
    delay: { type: 'string', default: '0' },
    mix: { type: 'string', default: '0' },
    wire: { type: 'string', default: 'int8' },
    'outer-lr': { type: 'string', default: '0.7' },
    'outer-momentum': { type: 'string', default: '0.9' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (values.help) {
  console.log(help);
  process.exit();
}

function refuse(sentence: string): never {
  console.error(`diloco: ${sentence} --help lists the options.`);
  process.exit(2);
}
const ranks = Number(values.ranks);
if (ranks !== 2 && ranks !== 4) refuse(`--ranks: expected 2 or 4, got ${values.ranks}.`);
if (!links.includes(values.link as LinkName))
  refuse(`--link: expected ${links.join(', ')}, got ${values.link}.`);

const program = fileURLToPath(new URL('./diloco/rank.ts', import.meta.url));
const loader = new URL('../packages/testing/loader/register.mjs', import.meta.url).href;

/** Runs a task on all ranks. Returns what rank 0 has printed. Throws if a rank fails. */
async function run({ ends }: Linked, task: Task): Promise<Point[]> {
  const points: Point[] = [];
  const perHost = ranks / 2;
  const children = Array.from({ length: ranks }, (_, rank) => {
    const end = ends[Math.floor(rank / perHost)]!;
    const variables = {
      RANK: `${rank}`,
      WORLD_SIZE: `${ranks}`,
      LOCAL_RANK: `${rank % perHost}`,
      LOCAL_WORLD_SIZE: `${perHost}`,
      MASTER_ADDR: ends[0].address,
      MASTER_PORT: '29500',
      RINGWISE_SECRET: 'of the benchmark',
    };
    const argv = [
      'netns',
      'exec',
      end.name,
      process.execPath,
      '--import',
      loader,
      program,
      JSON.stringify(task),
    ];
    return spawn('ip', argv, { env: { ...process.env, ...variables }, stdio: ['ignore', 'pipe', 'inherit'] });
  });
  createInterface({ input: children[0]!.stdout! }).on('line', (line) => {
    const point = JSON.parse(line) as Point;
    points.push(point);
    if (!values.json) console.log(lineOf(point));
  });
  const codes = await Promise.all(
    children.map(
      (child, rank) =>
        new Promise<number | null>((resolve) => {
          child.once('close', (code) => {
            // Without this rank, the others only wait.
            if (code !== 0)
              for (const [other, each] of children.entries()) if (other !== rank) each.kill('SIGKILL');
            resolve(code);
          });
        }),
    ),
  );
  const failed = codes.findIndex((code) => code !== 0);
  if (failed !== -1)
    throw new Error(`diloco: rank ${failed} of ${task.kind} failed with exit code ${codes[failed]}`);
  return points;
}

const lineOf = ({ step, loss, bytes, seconds }: Point): string =>
  `${String(step).padStart(6)}  ${loss.toFixed(3)}  ${(bytes / 1e6).toFixed(2).padStart(9)}  ${seconds.toFixed(1).padStart(7)}`;
const head = '  step   loss         MB  seconds';

const link = await makeLink(values.link as LinkName);
try {
  const steps = Number(values.steps);
  const common = {
    every: Number(values.every),
    fragments: Number(values.fragments),
    delay: Number(values.delay),
    mix: Number(values.mix),
    wire: values.wire as Task['wire'],
    outerLr: Number(values['outer-lr']),
    outerMomentum: Number(values['outer-momentum']),
    interface: link.interface,
  };
  if (!values.json) console.log(`DDP, ${ranks} ranks, ${values.link}\n${head}`);
  const together = await run(link, { ...common, kind: 'ddp', steps, goal: null });
  const goal = together.at(-1)!.loss;
  const most = Math.ceil((steps * Number(values.longer)) / common.every) * common.every;
  if (!values.json)
    console.log(`DiLoCo, every ${common.every}, wire ${common.wire}, until ${goal.toFixed(3)}\n${head}`);
  const apart = await run(link, { ...common, kind: 'diloco', steps: most, goal });
  const [ddp, diloco] = [together.at(-1)!, apart.at(-1)!];
  const isReached = diloco.loss <= goal;
  const ratio = ddp.bytes / diloco.bytes;
  const result = { bench: 'diloco', ranks, link: values.link, ...common, isReached, ratio, ddp, diloco };
  if (values.json) console.log(JSON.stringify({ ...result, curves: { ddp: together, diloco: apart } }));
  else {
    const steps = (diloco.step / ddp.step).toFixed(2);
    console.log(
      `DiLoCo ${isReached ? 'reached' : 'did not reach'} the loss of DDP, in ${steps} × the steps: ${ratio.toFixed(0)} × fewer bytes`,
    );
  }
  if (!isReached) process.exitCode = 1;
} finally {
  await link.close();
}
