// Prints which share of the time in kernels each kernel takes, for the training step of gpt-step.ts or mlp-step.ts. It
// runs on the sources, because the built package does not export its kernels:
//
//   npx tsx --tsconfig bench/tsconfig.sources.json bench/kernel-shares.ts gpt [--steps 60]
import { kernels } from '../packages/tensor/src/backends/index.ts';

const job = process.argv[2];
if (job !== 'gpt' && job !== 'mlp') {
  console.error(`kernel-shares: expected gpt or mlp, got ${job}.`);
  process.exit(2);
}

const times = new Map<string, number>();
const all = kernels() as unknown as Record<string, unknown>;
for (const name of Object.keys(all)) {
  const kernel = all[name];
  if (typeof kernel !== 'function') continue;
  all[name] = (...args: unknown[]) => {
    const start = performance.now();
    const result = kernel.apply(all, args) as unknown;
    times.set(name, (times.get(name) ?? 0) + performance.now() - start);
    return result;
  };
}
process.argv.splice(2, 1);
await import(`./${job}-step.ts`);

const total = [...times.values()].reduce((sum, time) => sum + time, 0);
for (const [name, time] of [...times].sort((a, b) => b[1] - a[1]))
  console.log(`${((100 * time) / total).toFixed(1).padStart(5)} %  ${name}`);
