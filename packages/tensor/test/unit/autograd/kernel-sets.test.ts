// Tests the choice of the kernel set, and that both sets train alike.
import { afterEach, describe, expect, test, vi } from 'vitest';

type Everything = typeof import('../../../src/index.ts') &
  typeof import('../../../src/nn/index.ts') &
  typeof import('../../../src/optim/index.ts');

/** Loads the whole package again with the given kernel set. */
async function loadWith(kernels: string): Promise<Everything> {
  vi.stubEnv('RINGWISE_KERNELS', kernels);
  vi.resetModules();
  return {
    ...(await import('../../../src/index.ts')),
    ...(await import('../../../src/nn/index.ts')),
    ...(await import('../../../src/optim/index.ts')),
  };
}

afterEach(() => {
  vi.unstubAllEnvs();
  vi.resetModules();
});

async function loads(kernels: string): Promise<boolean> {
  const { kernelsName } = await loadWith(kernels);
  try {
    return kernelsName() === kernels;
  } catch (error) {
    expect(error).toMatchObject({ code: 'ERR_TENSOR_KERNELS' });
    return false;
  }
}
const canLoadNative = await loads('native');

describe('RINGWISE_KERNELS', () => {
  test('forces a set, and an unknown one is refused', async () => {
    expect((await loadWith('reference')).kernelsName()).toBe('reference');
    const { kernelsName } = await loadWith('fast');
    expect(() => kernelsName()).toThrow("RINGWISE_KERNELS: expected 'native' or 'reference', got 'fast'");
  });

  test('unset: native where it loads, else the reference with one warning', async () => {
    const warnings: string[] = [];
    const spy = vi
      .spyOn(process, 'emitWarning')
      .mockImplementation((text) => void warnings.push(String(text)));
    const { kernelsName, zeros } = await loadWith('');
    expect(kernelsName()).toBe(canLoadNative ? 'native' : 'reference');
    zeros([1]).add(1);
    expect(warnings).toHaveLength(canLoadNative ? 0 : 1);
    spy.mockRestore();
  });
});

/** Returns the data set two moons: 200 points on two interleaved half circles. */
function moons(): { points: Float32Array; labels: Int32Array } {
  const points = new Float32Array(400);
  const labels = new Int32Array(200);
  for (let i = 0; i < 200; i++) {
    const angle = (Math.PI * Math.floor(i / 2)) / 99;
    const isLower = i % 2 === 1;
    points[2 * i] = isLower ? 1 - Math.cos(angle) : Math.cos(angle);
    points[2 * i + 1] = isLower ? 0.5 - Math.sin(angle) : Math.sin(angle);
    labels[i] = Number(isLower);
  }
  return { points, labels };
}

interface Training {
  readonly losses: number[];
  /** Gradients of each parameter after the first step. */
  readonly gradients: number[][];
  readonly accuracy: number;
}

/** Trains 200 steps on two moons. */
async function train(kernels: string): Promise<Training> {
  const rw = await loadWith(kernels);
  rw.manualSeed(1);
  const model = new rw.Sequential(new rw.Linear(2, 16), new rw.ReLU(), new rw.Linear(16, 2));
  const optimizer = new rw.SGD(model.parameters(), { lr: 0.3, momentum: 0.9 });
  const { points, labels } = moons();
  const x = rw.fromHost(points, [200, 2]);
  const y = rw.fromHost(labels);
  const step = (): number =>
    rw.scope(() => {
      const loss = rw.crossEntropy(model.forward(x), y);
      optimizer.zeroGrad();
      loss.backward();
      optimizer.step();
      return loss.item();
    });
  const losses = [step()];
  const gradients = model.parameters().map((p) => Array.from(p.grad!.dataSync() as Float32Array));
  while (losses.length < 200) losses.push(step());
  const correct = rw.scope(() => rw.noGrad(() => model.forward(x).argmax(1).eq(y).sum().item()));
  return { losses, gradients, accuracy: correct / 200 };
}

test.each(['reference', ...(canLoadNative ? ['native'] : [])])(
  'with %s kernels an MLP learns two moons: loss below 0.02 and every point right after 200 steps',
  async (kernels) => {
    const { losses, accuracy } = await train(kernels);
    expect(losses[0]).toBeGreaterThan(0.5);
    expect(losses.at(-1)).toBeLessThan(0.02);
    expect(accuracy).toBe(1);
  },
);

test.skipIf(!canLoadNative)('native and reference kernels give the same gradients and losses', async () => {
  const [native, reference] = [await train('native'), await train('reference')];
  for (const [i, gradient] of reference.gradients.entries()) {
    for (const [j, value] of gradient.entries()) expect(native.gradients[i]![j]).toBeCloseTo(value, 5);
  }
  // Rounding differs, so later losses drift apart.
  for (let i = 0; i < 20; i++) expect(native.losses[i]).toBeCloseTo(reference.losses[i]!, 3);
});
