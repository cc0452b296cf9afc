// Names of PyTorch on the wrapper, and wrong arguments: each must fail with a sentence.
import { expect, test } from 'vitest';
import { clipShardedGradients } from '../../../src/index.ts';
import { DistributedDataParallel } from '../../../src/wrapper/ddp.ts';
import { onRanks } from '../../support/ranks.ts';

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
    const foreign = group as unknown as { all_reduce: () => void; get_world_size: unknown };
    expect(() => foreign.all_reduce()).toThrow(
      'group.all_reduce(): there is no member of this name; expected allReduce()',
    );
    expect(() => foreign.get_world_size).toThrow('expected size');
    return refused;
  });
  expect(outcome).toMatchObject({
    value: 'clipShardedGradients: shard: expected a list of gradients, got an object.',
  });
});
