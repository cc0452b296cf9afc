// Tests clipShardedGradients() on dtypes that processes/zero.test.ts does not use.
import { bufferSymbol, type DType, narrowFloats } from '@ringwise/collectives';
import { expect, it } from 'vitest';
import { clipShardedGradients } from '../../src/index.ts';
import { onRanks, reasons, values } from '../support/ranks.ts';

const cpu = { kind: 'cpu', index: 0 } as const;

/** A gradient in host memory that holds these bits. */
function gradient(dtype: DType, host: Uint8Array | Uint16Array | Int32Array) {
  const view = { dtype, count: host.length, device: cpu, host, handle: null };
  return { [bufferSymbol]: () => view };
}

it.each(['float16', 'bfloat16', 'float8_e4m3fn', 'float8_e5m2'] as const)(
  'clips %s by value',
  async (dtype) => {
    const { from, to } = narrowFloats[dtype];
    const shards = values(
      await onRanks(2, async (group) => {
        const bits = Uint16Array.of(to(group.rank === 0 ? 6 : 0), to(group.rank === 0 ? 0 : -8));
        const host = dtype.startsWith('float8') ? Uint8Array.from(bits) : bits;
        const norm = await clipShardedGradients([gradient(dtype, host)], 5, group);
        return { norm, clipped: [...host].map(from) };
      }),
    );
    expect(shards.map(({ norm }) => norm)).toEqual([10, 10]);
    expect(shards.map(({ clipped }) => clipped)).toEqual([
      [3, 0],
      [0, -4],
    ]);
  },
);

it('refuses gradients that are no floats before it sends anything', async () => {
  const outcomes = await onRanks(2, async (group) => {
    await clipShardedGradients([gradient('int32', Int32Array.of(3, 4))], 1, group);
  });
  for (const { message } of reasons(outcomes)) {
    expect(message).toBe('clipShardedGradients: gradient: expected floats, got int32.');
  }
});

it('makes the gradients of all ranks NaN if the norm is, and 0 if it is infinite, as clip_grad_norm_ does', async () => {
  for (const [odd, want] of [
    [NaN, NaN],
    [Infinity, 0],
  ] as const) {
    const shards = values(
      await onRanks(2, async (group) => {
        const own = Float32Array.of(group.rank === 0 ? odd : 1, 2);
        const norm = await clipShardedGradients([own], 5, group);
        return { norm, clipped: [...own] };
      }),
    );
    expect(shards.map(({ norm }) => norm)).toEqual([odd, odd]);
    expect(shards.map(({ clipped }) => clipped)).toEqual([
      [NaN, want],
      [want, want],
    ]);
  }
});

it.each([
  [1, 21],
  [3, Math.cbrt(3 ** 3 + 4 ** 3 + 6 ** 3 + 8 ** 3)],
  [Infinity, 8],
])('takes normType %d, and scales as clip_grad_norm_ does', async (normType, want) => {
  const shards = values(
    await onRanks(2, async (group) => {
      const own = group.rank === 0 ? Float64Array.of(3, -4) : Float64Array.of(6, -8);
      const norm = await clipShardedGradients([own], 2, group, { normType });
      return { norm, clipped: [...own] };
    }),
  );
  const factor = 2 / (want + 1e-6);
  for (const [rank, { norm, clipped }] of shards.entries()) {
    expect(norm).toBeCloseTo(want, 12);
    const before = rank === 0 ? [3, -4] : [6, -8];
    expect(clipped).toEqual(before.map((value) => expect.closeTo(value * factor, 12)));
  }
});

it('refuses a normType that is no order, and options that it does not have', async () => {
  const messages = reasons(
    await onRanks(1, (group) => clipShardedGradients([], 1, group, { normType: -Infinity })),
  ).map(({ message }) => message);
  expect(messages).toEqual(['clipShardedGradients: normType: expected a positive number, got -Infinity.']);
  const foreign = reasons(
    await onRanks(1, (group) => clipShardedGradients([], 1, group, { norm_type: 1 } as never)),
  );
  expect(foreign[0]!.message).toContain("expected 'normType'");
});
