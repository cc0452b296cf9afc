// Names of PyTorch on the wrapper, and wrong arguments: each must fail with a sentence.
import { expect, test } from 'vitest';
import { clipShardedGradients, ddp } from '../../../src/index.ts';
import { DistributedDataParallel } from '../../../src/wrapper/ddp.ts';
import { onRanks } from '../../support/ranks.ts';
import { makeNet } from '../../support/tensor-mlp.ts';

test('members of PyTorch name ours', () => {
  const wrapper = DistributedDataParallel.prototype as unknown as {
    no_sync: () => void;
    state_dict: unknown;
  };
  expect(() => wrapper.no_sync()).toThrow(
    'model.no_sync(): there is no member of this name; expected noSync()',
  );
  expect(() => wrapper.state_dict).toThrow('expected stateDict');
});

test('a model is no list of gradients', async () => {
  const [outcome] = await onRanks(1, async (group) => {
    const refused = await clipShardedGradients({} as never, 1, group).catch(({ message }: Error) => message);
    const foreign = group as unknown as Record<string, unknown> & Record<'all_reduce' | 'isend', () => void>;
    expect(() => foreign.all_reduce()).toThrow(
      'group.all_reduce(): there is no member of this name; expected allReduce()',
    );
    for (const name of ['get_world_size', 'getWorldSize', 'worldSize'] as const)
      expect(() => foreign[name]).toThrow(`group.${name}: there is no member of this name; expected size`);
    expect(() => foreign.getRank).toThrow('group.getRank: there is no member of this name; expected rank');
    expect(() => foreign.isend()).toThrow('group.isend(): there is no member of this name; expected send(),');
    return refused;
  });
  expect(outcome).toMatchObject({
    value: 'clipShardedGradients: shard: expected a list of gradients, got an object.',
  });
});

test('the promise of ddp() is no model', async () => {
  const [outcome] = await onRanks(1, async (group) => {
    const pending = ddp(makeNet(1), { group });
    const model = pending as unknown as { forward: unknown; parameters: unknown };
    const sentence = (member: string) =>
      `model.${member}: ddp() gives a promise, which was not awaited; expected const model = await ddp().`;
    expect(() => model.forward).toThrow(sentence('forward'));
    expect(() => model.parameters).toThrow(sentence('parameters'));
    const awaited = await pending;
    awaited.close();
    return [pending instanceof Promise, awaited.parameters().length > 0];
  });
  expect(outcome).toMatchObject({ value: [true, true] });
});
