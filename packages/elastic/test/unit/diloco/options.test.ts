// What is refused, with which sentence.
import { SGD } from '@ringwise/tensor/optim';
import { describe, expect, it } from 'vitest';
import { type DilocoOptions, diloco, ElasticError } from '../../../src/index.ts';
import { errorsOf, onRanks } from '../../support/loopback.ts';
import { flat, makeNet, setEach } from '../../support/net.ts';

const sgd = (params: ConstructorParameters<typeof SGD>[0]) => new SGD(params, { lr: 0.7, momentum: 0.9 });

it('gives a promise, which is no outer optimizer', async () => {
  await onRanks(1, async (group) => {
    const pending = diloco(makeNet(), { group, every: 1, outer: 'average' });
    const outer = pending as unknown as { step: unknown; plan: unknown };
    const sentence = (member: string) =>
      `outer.${member}: diloco() gives a promise, which was not awaited; expected const outer = await diloco().`;
    expect(() => outer.step).toThrow(sentence('step'));
    expect(() => outer.plan).toThrow(sentence('plan'));
    await (await pending).close();
  });
});

describe('diloco', () => {
  const wrong: Record<string, readonly [options: object, message: string]> = {
    'a misspelled option': [{ evry: 2 }, "diloco: unknown option 'evry'; did you mean 'every'."],
    "torchft's names": [{ sync_every: 2 }, "diloco: unknown option 'sync_every'; expected 'every'."],
    'no group': [
      { group: undefined },
      'diloco: group: expected a group, as init() gives one, got undefined.',
    ],
    'a group that was not awaited': [
      { group: Promise.resolve() },
      'diloco: group: expected a group, as init() gives one, got a promise, which needs an await.',
    ],
    'every 0': [{ every: 0 }, 'diloco: every: expected an integer of at least 1, got 0.'],
    'fragments 1.5': [{ fragments: 1.5 }, 'diloco: fragments: expected an integer of at least 1, got 1.5.'],
    'too many fragments': [
      { fragments: 4 },
      'diloco: fragments: expected at most 3, one for each layer with parameters that train, got 4.',
    ],
    'a delay of a round': [
      { delay: 3 },
      'diloco: delay: expected fewer inner steps than every (3), so that a fragment arrives before it leaves again, got 3.',
    ],
    'mix 1': [
      { mix: 1 },
      "diloco: mix: expected a number from 0 up to, but not including, 1: the local parameters' share, got 1.",
    ],
    'an unknown wire': [{ wire: 'int4' }, "diloco: wire: expected 'full', 'bfloat16' or 'int8', got 'int4'."],
    'an unknown outer': [
      { outer: 'sgd' },
      "diloco: outer: expected 'average', or a function such as (params) => new SGD(params, …), got 'sgd'.",
    ],
    'a class as outer': [
      { outer: class Sgd {} },
      'diloco: outer: expected a function such as (params) => new SGD(params, …), got the class Sgd.',
    ],
    'outer without state': [
      { outer: () => ({ step: () => {} }) },
      'diloco: outer: expected a function that returns an optimizer with step(), stateDict() and loadStateDict(), got one that returns an object.',
    ],
    'inner that is none': [{ inner: {} }, 'diloco: inner: expected an optimizer with step(), got an object.'],
  };
  for (const [name, [options, message]] of Object.entries(wrong))
    it(`refuses ${name}`, async () => {
      const [error] = await errorsOf(1, (group) =>
        diloco(makeNet(), { group, every: 3, outer: 'average', ...options } as DilocoOptions),
      );
      expect(error).toBeInstanceOf(ElasticError);
      expect(error!.message).toBe(message);
      expect(error!.code).toBe('ERR_ELASTIC_INVALID');
    });

  it('refuses the group itself as options, and sources without parameters', async () => {
    await onRanks(1, async (group) => {
      const options = { group, every: 3, outer: 'average' } as const;
      const calls: readonly [() => Promise<unknown>, RegExp][] = [
        [
          () => diloco(makeNet(), group as never),
          /^diloco: expected diloco\(model, \{ group, every, outer \}\), got an object/,
        ],
        [
          () => diloco({} as never, options),
          /^diloco: expected a model with a Symbol\.for\("ringwise\.gradParams"\)/,
        ],
        [() => diloco([], options), /^diloco: expected at least one parameter that trains, got none/],
        [() => diloco(makeNet().to('float64'), options), /^diloco: "0\.weight" is float64; expected float32/],
      ];
      for (const [call, message] of calls) await expect(call()).rejects.toThrow(message);
    });
  });

  it('refuses parameters of a device, and an autograd that cannot copy them', async () => {
    await onRanks(1, async (group) => {
      const value = {
        dtype: 'float32',
        count: 2,
        device: { kind: 'cuda', index: 0 },
        host: null,
        handle: null,
      } as const;
      const far = { name: 'far', value, grad: null, onGradReady: () => () => {} };
      const near = {
        ...far,
        name: 'near',
        value: { ...value, host: new Float32Array(2), device: { kind: 'cpu', index: 0 } as const },
      };
      await expect(diloco([far], { group, every: 2, outer: 'average' })).rejects.toThrow(
        'diloco: "far" is in cuda memory; expected host memory, which is all that diloco() supports. Keep the model in host memory, or train it with ddp().',
      );
      const outer = () => sgd(makeNet().parameters());
      await expect(diloco([near], { group, every: 2, outer })).rejects.toThrow(
        'diloco: the autograd of "near" cannot copy a parameter for an outer optimizer; expected GradParam.clone with a key, or outer: \'average\'.',
      );
      const average = await diloco([near], { group, every: 2, outer: 'average' });
      expect(average.plan).toEqual([['near']]);
    });
  });

  it('fails on all ranks if options or models differ', async () => {
    const different = await errorsOf(3, (group) =>
      diloco(makeNet(), { group, every: group.rank === 1 ? 4 : 3, outer: 'average' }),
    );
    for (const error of different) {
      expect(error.code).toBe('ERR_ELASTIC_DISAGREE');
      expect(error.message).toMatch(
        /^diloco: models or options differ between ranks: ranks 0, 2 have 6 parameters \(.*\) in 1 fragments \(.*\), every 3, outer average, delay 0, mix 0, wire full; rank 1 has .*every 4/,
      );
    }
    const rates = await errorsOf(2, (group) =>
      diloco(makeNet(), { group, every: 2, outer: (params) => new SGD(params, { lr: 1 + group.rank }) }),
    );
    for (const error of rates) expect(error.message).toMatch(/outer SGD \(.{12}\).*; rank 1 has/);
  });
});

describe('DiLoCo', () => {
  it('refuses a second call while one runs, and calls after close()', async () => {
    await onRanks(2, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { group, every: 1, outer: sgd });
      const running = outer.step();
      await expect(outer.step()).rejects.toThrow(
        'step: step() still runs on this rank; expected one call at a time. Await each call.',
      );
      expect(() => outer.stateDict()).toThrow('stateDict: step() still runs');
      await running;
      await expect(outer.step({ samples: -1 })).rejects.toThrow(
        'step: samples: expected a finite number of at least 0, got -1.',
      );
      await expect(outer.step({ sample: 1 } as never)).rejects.toThrow(
        "step: unknown option 'sample'; did you mean 'samples'.",
      );
      await expect(outer.change({} as never)).rejects.toThrow('change: group: expected a group');
      await outer.close();
      await outer.close();
      await expect(outer.step()).rejects.toThrow(
        'step: this object was closed; expected an open one. Call diloco() again.',
      );
    });
  });

  it('detects that global parameters differ between ranks, before anything is applied', async () => {
    const errors = await errorsOf(2, async (group) => {
      const net = makeNet();
      const outer = await diloco(net, { group, every: 1, outer: sgd });
      await outer.step();
      if (group.rank === 1) {
        const state = outer.stateDict();
        state.fragments[0]!.global[0]![3] = 7;
        outer.loadStateDict({ ...state, own: undefined } as never);
      }
      setEach(net, (value) => value + 1);
      const before = flat(net);
      try {
        await outer.step();
      } finally {
        expect(flat(net)).toEqual(before);
      }
    });
    for (const error of errors) {
      expect(error.code).toBe('ERR_ELASTIC_STATE');
      expect(error.message).toMatch(
        /^step: the global parameters of fragment 0 differ between ranks: rank 0 has [0-9a-f]{12}; rank 1 has [0-9a-f]{12}\. Check/,
      );
    }
    expect(errors[0]!.message).toBe(errors[1]!.message);
  });

  it('detects ranks that are at different averages', async () => {
    const errors = await errorsOf(2, async (group) => {
      const outer = await diloco(makeNet(), { group, every: 1, outer: 'average' });
      const fresh = outer.stateDict();
      await outer.step({ samples: 0 });
      if (group.rank === 1) outer.loadStateDict(fresh);
      await outer.step();
    });
    for (const error of errors)
      expect(error.message).toMatch(
        /^step: ranks are at different averages: rank 0 has 1; rank 1 has 0\. Ranks/,
      );
  });
});
