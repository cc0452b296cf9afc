// The texts, word for word. Changing one is changing what users read and search for.
import { expect, it } from 'vitest';
import * as errors from '../src/errors.ts';

const names = Array.from({ length: 12 }, (_, i) => `layer.${i}`);

it('says what happened, what was expected, and what to do', () => {
  const messages = [
    errors.invalidArgument('bucketBytes', 'a positive number of bytes', '-1'),
    errors.notParams(),
    errors.noParams(),
    errors.noForward(),
    errors.duplicateName('w'),
    errors.unreachableMemory('w', 'cuda'),
    errors.noBucketMemory('w', 'cuda:1'),
    errors.cannotDivide('w'),
    errors.hookNeedsHost('cuda:1'),
    errors.stateOutOfReach(),
    errors.paramsDiffer(3, 'w', ['"w" [float32 × 2]', '"w" [float32 × 2]', 'no parameter (3 in all)']),
    errors.plansDiffer(['bucketBytes 1', 'bucketBytes 2']),
    errors.notInSync('w', ['"w" (sha256 0a)', '"w" (sha256 0b)', '"w" (sha256 0a)']),
    errors.unusedParams(names, 20, 2),
    errors.gradMissing('w', 2),
    errors.readyTwice('w', 2),
    errors.unfinished('forward', 2),
    errors.closed('forward'),
  ].map((error) => `${error.code} ${error.message}`);
  expect(messages).toMatchInlineSnapshot(`
    [
      "ERR_DDP_INVALID bucketBytes: expected a positive number of bytes, got -1.",
      "ERR_DDP_INVALID ddp: expected a model with a Symbol.for("ringwise.gradParams") member, or a list of parameters, got an object that is neither.",
      "ERR_DDP_INVALID ddp: expected at least one parameter, got none.",
      "ERR_DDP_INVALID forward: expected a model with a forward method as the first argument of ddp(), got none.",
      "ERR_DDP_INVALID ddp: two parameters are named "w"; expected names that are unique in the model. A parameter that is used in two places must be listed once.",
      "ERR_DDP_INVALID assertInSync: "w" is in cuda memory, which JavaScript cannot read; expected host memory, or an autograd with readValue. Pass copies.",
      "ERR_DDP_INVALID ddp: "w" is in cuda:1 memory, but its autograd has no allocBucket and bindGrad; expected both, so that gradients can be averaged there. Give its parameters these members, or keep them in host memory.",
      "ERR_DDP_INVALID backward: the gradient of "w" is in memory that JavaScript cannot reach, and its autograd has no divideGrad; expected one for averages with weights. Leave the weight out: in a group of one it changes nothing but rounding.",
      "ERR_DDP_INVALID hook: the bucket is in cuda:1 memory, which JavaScript cannot reach; expected host memory where a hook reads or writes \`data\`. Hand the bucket itself to the group's verbs as plainHook and wireHook do, or keep the parameters in host memory.",
      "ERR_DDP_INVALID consolidateStateDict: the optimizer remembers tensors in memory that JavaScript cannot reach, and they have no dataSync(); expected one, or tensors in host memory.",
      "ERR_DDP_MISMATCH ddp: parameter lists differ at position 3: ranks 0, 1 have "w" [float32 × 2]; rank 2 has no parameter (3 in all). Build the same model on all ranks, with parameters in the same order.",
      "ERR_DDP_MISMATCH ddp: bucket layouts differ between ranks: rank 0 has bucketBytes 1; rank 1 has bucketBytes 2. Pass the same options on all ranks, and spread the model over devices in the same way.",
      "ERR_DDP_NOT_IN_SYNC assertInSync: parameter "w" differs between ranks: ranks 0, 2 have "w" (sha256 0a); rank 1 has "w" (sha256 0b). Check that every rank takes the same optimizer steps and that nothing but gradients averaged by ddp changes the parameters.",
      "ERR_DDP_UNUSED backward: 12 of 20 parameters got no gradient on rank 2: "layer.0", "layer.1", "layer.2", "layer.3", "layer.4", "layer.5", "layer.6", "layer.7", "layer.8", "layer.9" and 2 more. Use them in the loss, or pass { unused: 'zero' } to ddp() so that they count as zero, or 'skip' to leave out what no rank uses.",
      "ERR_DDP_UNUSED backward: "w" got no gradient on rank 2 and has no memory to receive the average of the other ranks. Give its autograd a bindGrad, or keep its gradient allocated.",
      "ERR_DDP_READY_TWICE backward: the gradient of "w" was reported ready twice in one backward on rank 2; expected once, when it is final. Run one backward at a time, await finish() after each if the autograd does not tell when it ends, and do not go on after one that threw.",
      "ERR_DDP_UNFINISHED forward: the gradients of the last backward are not averaged yet on rank 2. Call await model.finish() after backward and before optimizer.step(); do not go on after a backward that threw.",
      "ERR_DDP_CLOSED forward: this model was closed; its gradients are no longer averaged.",
    ]
  `);
});

it('carries the parameters and the ranks that are not like rank 0', () => {
  const error = errors.paramsDiffer(0, 'w', ['a', 'b', 'a', 'c']);
  expect(error).toMatchObject({ name: 'DdpError', params: ['w'], ranks: [1, 3] });
  expect(errors.unusedParams(names, 20, 2)).toMatchObject({ params: names, ranks: [2] });
});

it('is recognised without instanceof', () => {
  expect(errors.DdpError.is(errors.noParams())).toBe(true);
  expect(errors.DdpError.is(new Error('no'))).toBe(false);
  expect(errors.DdpError.is(null)).toBe(false);
});
