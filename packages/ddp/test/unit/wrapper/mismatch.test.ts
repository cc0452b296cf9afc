// Tests that ddp() refuses differences between ranks, with the same sentence on all ranks.
import { describe, expect, it } from 'vitest';
import { compressHook, type DdpOptions, ddp, wireHook } from '../../../src/index.ts';
import { onRanks, reasons } from '../../support/ranks.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

describe('ranks that differ', () => {
  const start = (
    size: number,
    make: (rank: number) => TinyMlp,
    limits = (_: number): Partial<DdpOptions> => ({}),
  ) =>
    onRanks(size, async (group) => {
      await ddp(make(group.rank), { group, ...limits(group.rank) });
    });
  const withExtra = (name: string, count: number) => {
    const net = new TinyMlp(1);
    net.autograd.weight(name, 1, count, () => 0);
    return net;
  };
  const sameSentence = (outcomes: PromiseSettledResult<unknown>[]) => {
    const errors = reasons(outcomes);
    for (const error of errors) expect(error.message).toBe(errors[0]!.message);
    return errors[0]!;
  };

  it('in a name throw one sentence with both names and the ranks', async () => {
    const error = sameSentence(await start(4, (rank) => withExtra(rank === 2 ? 'bias' : 'scale', 3)));
    expect(error).toMatchObject({ code: 'ERR_DDP_MISMATCH', params: ['scale'], ranks: [2] });
    expect(error.message).toBe(
      'ddp: parameter lists differ at position 6: ranks 0, 1, 3 have "scale" [float32 × 1 × 3]; rank 2 has "bias" [float32 × 1 × 3]. Build the same model on all ranks, with parameters in the same order.',
    );
  });

  it('in a shape throw one sentence with both sizes', async () => {
    const error = sameSentence(await start(2, (rank) => withExtra('scale', 3 + rank)));
    expect(error.message).toContain(
      'rank 0 has "scale" [float32 × 1 × 3]; rank 1 has "scale" [float32 × 1 × 4]',
    );
  });

  it('in the number of parameters throw one sentence with both numbers', async () => {
    const error = sameSentence(
      await start(2, (rank) => (rank === 0 ? new TinyMlp(1) : withExtra('scale', 3))),
    );
    expect(error).toMatchObject({ code: 'ERR_DDP_MISMATCH', params: ['scale'], ranks: [1] });
    expect(error.message).toContain(
      'rank 0 has no parameter (6 in all); rank 1 has "scale" [float32 × 1 × 3]',
    );
  });

  it('in the size of buckets throw one sentence with both sizes', async () => {
    const error = sameSentence(
      await start(
        2,
        () => new TinyMlp(1),
        (rank) => ({ bucketBytes: 100 + rank }),
      ),
    );
    expect(error).toMatchObject({ code: 'ERR_DDP_MISMATCH', ranks: [1] });
    expect(error.message).toContain('rank 0 has bucketBytes 100');
    expect(error.message).toContain('rank 1 has bucketBytes 101');
  });
});

it('ranks that average two models in different orders are told both, with and without a hook', async () => {
  for (const hook of [undefined, () => compressHook('float16'), () => wireHook('bfloat16')]) {
    const outcomes = await onRanks(2, async (group) => {
      const nets = [new TinyMlp(1), new TinyMlp(2)]; // equal except for the values
      const models = [];
      for (const net of nets) models.push(await ddp(net, { group, ...(hook && { hook: hook() }) }));
      for (const turn of [0, 1]) {
        const at = (turn + group.rank) % 2;
        nets[at]!.loss(0, 1);
        nets[at]!.autograd.backward();
        await models[at]!.finish();
      }
    });
    for (const error of reasons(outcomes)) {
      expect(error.code).toBe('ERR_COLL_MISMATCH');
      for (const model of [1, 2])
        expect(error.message).toContain(`labelled "ddp bucket 0 of model ${model}"`);
    }
  }
});

it('refuses what it cannot work with', async () => {
  const message = async (source: object, options: object = {}) => {
    const outcomes = await onRanks(2, async (group) => {
      await ddp(source as TinyMlp, { group, ...options });
    });
    const errors = reasons(outcomes);
    for (const error of errors) expect(error.code).toBe('ERR_DDP_INVALID');
    return errors[0]!.message;
  };
  const double = new TinyMlp(1);
  double.autograd.weight('w0', 1, 1, () => 0);
  expect(await message(double)).toContain('two parameters are named "w0"');
  expect(await message([])).toContain('at least one parameter');
  expect(await message({})).toContain('a list of parameters');
  const net = new TinyMlp(1);
  expect(await message(net, { group: undefined })).toContain('ddp(model, { group })');
  expect(await message(net, { unused: 'maybe' })).toContain(
    "unused: expected 'error', 'zero' or 'skip', got 'maybe'",
  );
  expect(await message(net, { bucketBytes: 0 })).toContain(
    'bucketBytes: expected a positive number of bytes',
  );
  expect(await message(net, { firstBucketBytes: Number.NaN })).toContain('firstBucketBytes: expected');
});
