// Tests that the wrapper offers the methods of its module, and explains wrong uses.
import { loopbackGroups } from '@ringwise/collectives';
import { ones, scope, type Tensor, tensor } from '@ringwise/tensor';
import { BatchNorm1d, type Linear, Sequential } from '@ringwise/tensor/nn';
import { SGD } from '@ringwise/tensor/optim';
import { afterEach, describe, expect, it } from 'vitest';
import {
  assertInSync,
  type DdpOptions,
  ddp,
  type GradParamSource,
  gradParamsSymbol,
} from '../../../src/index.ts';
import { onRanks, reasons, values } from '../../support/ranks.ts';
import { flat, lossOf, makeNet } from '../../support/tensor-mlp.ts';
import { TinyMlp } from '../../support/tiny-mlp.ts';

let [group] = loopbackGroups(1);
afterEach(async () => {
  await group!.close();
  [group] = loopbackGroups(1);
});
const wrap = <M extends GradParamSource>(model: M, options: Partial<DdpOptions> = {}) =>
  ddp(model, { group: group!, ...options });

describe('the methods of its module', () => {
  it('are those of the module, with its names and types', async () => {
    const net = makeNet(1);
    const model = await wrap(net);
    const parameters: Tensor[] = model.parameters();
    expect(parameters).toEqual(net.parameters());
    const names: string[] = model.namedParameters().map(([name]) => name);
    expect(names).toEqual(net.namedParameters().map(([name]) => name));
    const dict: Record<string, Tensor> = model.stateDict();
    expect(Object.keys(dict)).toEqual(['0.weight', '0.bias', '2.weight', '2.bias', '4.weight', '4.bias']);
    const loaded = model.loadStateDict({ '0.weight': makeNet(2).parameters()[0]! }, { strict: false });
    expect(loaded.missing).toHaveLength(5);
    expect(net.parameters()[0]!.toArray()).toEqual(makeNet(2).parameters()[0]!.toArray());
    expect([model.eval(), net.training, net.layers[0]!.training]).toEqual([model, false, false]);
    expect([model.train(), net.training]).toEqual([model, true]);
    expect([model.train(false).module.training, model.train(true).module.training]).toEqual([false, true]);
    const optimizer = new SGD(model.parameters(), { lr: 1 });
    scope(() => lossOf(model.forward, 0, 4).backward());
    await model.finish();
    const before = flat(net);
    optimizer.step();
    expect(flat(net)).not.toEqual(before);
    model.zeroGrad();
    expect(net.parameters()[0]!.grad).toBeNull();
  });

  it('are refused by a sentence where the module has none, also by the type checker', async () => {
    const model = await wrap(new TinyMlp(1));
    const message = (name: string) =>
      `${name}: the model that was passed to ddp() has no ${name}(); expected one`;
    // @ts-expect-error: it has none
    expect(() => model.namedParameters()).toThrow(message('namedParameters'));
    // @ts-expect-error: it has none
    expect(() => model.stateDict()).toThrow(message('stateDict'));
    // @ts-expect-error: it has none
    expect(() => model.loadStateDict({})).toThrow(message('loadStateDict'));
    // @ts-expect-error: it has none
    expect(() => model.train()).toThrow(message('train'));
    // @ts-expect-error: it has none
    expect(() => model.eval()).toThrow(message('eval'));
    // @ts-expect-error: it has none
    expect(() => model.zeroGrad()).toThrow(message('zeroGrad'));
    expect(model.parameters()).toEqual(new TinyMlp(1).parameters());
  });

  it('stay after close(), and its parameters and buffers are offered as those of the module', async () => {
    const ranks = values(
      await onRanks(2, async (group) => {
        const model = await ddp(makeNet(group.rank), { group });
        await assertInSync(model, group);
        model.close();
        return model.parameters().length;
      }),
    );
    expect(ranks).toEqual([6, 6]);
  });
});

describe('used in a wrong way', () => {
  it('after close() nothing passes for averaged', async () => {
    const net = makeNet(1);
    const model = await wrap(net);
    model.close();
    model.close();
    const loss = lossOf((x) => net.forward(x), 0, 4);
    const closed = expect.objectContaining({ code: 'ERR_DDP_CLOSED' });
    expect(() => model.forward(ones([1, 20]))).toThrow(closed);
    expect(() => model.backward(loss, { weight: 1 })).toThrow(closed);
    expect(() => model.addWeight(1)).toThrow(closed);
    expect(() => model.noSync(() => {})).toThrow(closed);
    await expect(model.join(() => {})).rejects.toEqual(closed);
    await model.finish();
    loss.backward(); // the gradients of this process alone
  });

  it('close() between backward and finish() leaves the group to others', async () => {
    values(
      await onRanks(2, async (group) => {
        const model = await ddp(makeNet(1), { group });
        scope(() => lossOf(model.forward, group.rank, 1).backward());
        model.close();
        await model.finish();
        const sum = Float32Array.of(1);
        await group.allReduce(sum);
        expect(sum[0]).toBe(2);
      }),
    );
  });

  it('noSync and join want functions, and noSync waits for anything that can be awaited', async () => {
    const model = await wrap(makeNet(1));
    expect(() => model.noSync(5 as never)).toThrow(/^noSync: expected a function.*got 5/);
    await expect(model.join(undefined as never)).rejects.toThrow(/^join: expected a function/);
    let release = (_: string) => {};
    const thenable = {
      // biome-ignore lint/suspicious/noThenProperty: what is awaited need not be a Promise
      then: (done: (value: string) => void) => {
        release = done;
      },
    };
    const running = Promise.all([model.noSync(() => thenable)]);
    await Promise.resolve();
    scope(() => lossOf(model.forward, 0, 4).backward());
    expect(model.statistics()).toBeNull(); // still inside
    release('done');
    expect(await running).toEqual(['done']);
    scope(() => lossOf(model.forward, 0, 4).backward());
    await model.finish();
    expect(model.statistics()).not.toBeNull();
  });

  it('weights are numbers', async () => {
    const model = await wrap(makeNet(1));
    for (const weight of ['3', -1, Number.NaN, Infinity, undefined, null] as unknown as number[]) {
      expect(() => model.addWeight(weight)).toThrow(/^backward: weight: expected a finite number/);
    }
    expect(() => model.addWeight('3' as never)).toThrow("expected a finite number of at least 0, got '3'.");
    expect(() => model.backward({ mul: () => {} } as never, undefined as never)).toThrow(
      'got undefined. Without a weight, call loss.backward().',
    );
    expect(() => model.backward({} as never, { weight: 1 })).toThrow(
      /^backward: loss: expected a loss with mul/,
    );
    expect(() => model.backward(tensor([1]), { wieght: 2 } as never)).toThrow(
      "backward: unknown option 'wieght'; did you mean 'weight'.",
    );
  });

  it('a model without parameters, or with buffers only, needs no ddp', async () => {
    const buffersOnly = new Sequential(new BatchNorm1d(3, { affine: false }));
    await expect(wrap(new Sequential())).rejects.toThrow('ddp: expected at least one parameter, got none');
    await expect(wrap(buffersOnly)).rejects.toThrow('ddp: expected at least one parameter, got none');
    const outcomes = await onRanks(2, (group) => ddp(new Sequential(), { group }));
    for (const error of reasons(outcomes)) expect(error.code).toBe('ERR_DDP_INVALID');
  });

  it('a model that was converted while it is wrapped is refused by its tensors', async () => {
    const ranks = await onRanks(2, async (group) => {
      const net = makeNet(1);
      await ddp(net, { group });
      (net.layers[0] as Linear).to('float64');
    });
    for (const error of reasons(ranks)) expect(error.message).toContain('bound');
  });
});

it('offers the protocol itself', async () => {
  const net = new TinyMlp(1);
  const model = await wrap(net);
  expect([...model[gradParamsSymbol]()].map(({ name }) => name)).toEqual([
    'w0',
    'b0',
    'w1',
    'b1',
    'w2',
    'b2',
  ]);
});
