// Compares the texts of most errors word for word, because users read them and search for them.
import { expect, it } from 'vitest';
import * as errors from '../../../src/errors.ts';

const names = Array.from({ length: 12 }, (_, i) => `layer.${i}`);

it('says what happened, what was expected, and what to do', () => {
  const messages = [
    errors.invalidArgument('bucketBytes', 'a positive number of bytes', '-1'),
    errors.notParams(),
    errors.noParams(),
    errors.noForward(),
    errors.duplicateName('w'),
    errors.unreachableMemory('assertInSync', 'w', 'cuda'),
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
      "ERR_DDP_INVALID backward: the gradient of "w" is in memory that JavaScript cannot access, and its autograd has no divideGrad; expected one for averages with weights. Leave the weight out: in a group of one, and with one backward for each step, it changes nothing but rounding.",
      "ERR_DDP_INVALID hook: the bucket is in cuda:1 memory, which JavaScript cannot access; expected host memory where a hook reads or writes \`data\`. Hand the bucket itself to the group's verbs as plainHook and wireHook do, or keep the parameters in host memory.",
      "ERR_DDP_INVALID consolidateStateDict: the optimizer remembers tensors in memory that JavaScript cannot access, and they have no dataSync(); expected one, or tensors in host memory.",
      "ERR_DDP_MISMATCH ddp: parameter lists differ at position 3: ranks 0, 1 have "w" [float32 × 2]; rank 2 has no parameter (3 in all). Build the same model on all ranks, with parameters in the same order.",
      "ERR_DDP_MISMATCH ddp: options or bucket layouts differ between ranks: rank 0 has bucketBytes 1; rank 1 has bucketBytes 2. Pass the same options on all ranks, and spread the model over devices in the same way.",
      "ERR_DDP_NOT_IN_SYNC assertInSync: parameter "w" differs between ranks: ranks 0, 2 have "w" (sha256 0a); rank 1 has "w" (sha256 0b). Check that every rank takes the same optimizer steps and that nothing but gradients averaged by ddp changes the parameters.",
      "ERR_DDP_UNUSED backward: 12 of 20 parameters got no gradient on rank 2: "layer.0", "layer.1", "layer.2", "layer.3", "layer.4", "layer.5", "layer.6", "layer.7", "layer.8", "layer.9" and 2 more. Use them in the loss, or pass { unused: 'zero' } to ddp() so that they count as zero, or 'skip' to leave out what no rank uses.",
      "ERR_DDP_UNUSED backward: "w" got no gradient on rank 2 and has no memory to receive the average of the other ranks. Give its autograd a bindGrad, or keep its gradient allocated.",
      "ERR_DDP_READY_TWICE backward: the gradient of "w" was reported ready twice in one backward on rank 2; expected once, when it is final. Run one backward at a time, await finish() after each if the autograd does not tell when it ends, and do not go on after one that threw.",
      "ERR_DDP_UNFINISHED forward: the gradients of the last backward are not averaged yet on rank 2. Call await model.finish() after backward and before optimizer.step(); do not go on after a backward that threw.",
      "ERR_DDP_CLOSED forward: this model was closed, so its gradients are no longer averaged. Call ddp() again.",
    ]
  `);
});

it('says the same of wrappers, hooks, frozen parameters and snapshots', () => {
  const messages = [
    errors.badOptions('ddp', "unknown option 'hok'; did you mean 'hook'"),
    errors.noParams(4),
    errors.notAParam(2),
    errors.wrappedAlready('w', 'the ddp() of Net in group "world"'),
    errors.sameParamTwice('w', 'tied'),
    errors.refused('ddp: no.', ['w'], 1, undefined),
    errors.notAHook('an async function'),
    errors.accumulatedWithoutData(2, 1),
    errors.notAWork('a promise'),
    errors.noMethod('train'),
    errors.frozenLater('w', 1),
    errors.trainedLater('w', 1),
    errors.notInSync('mean', ['"mean" (sha256 0a)', '"mean" (sha256 0b)'], 'buffer'),
    errors.notAllCalled('saveSnapshot', 'no answer from rank 1 within 100 ms', [1], undefined),
    errors.snapshotCallsDiffer('saveSnapshot', ['"a"', '"b"']),
    errors.ownStateMissing('state.rng', 0, 1),
    errors.ownStateNotForSize('state.loader', 2, 3),
  ].map((error) => `${error.code} ${error.message}`);
  expect(messages).toMatchInlineSnapshot(`
    [
      "ERR_DDP_INVALID ddp: unknown option 'hok'; did you mean 'hook'.",
      "ERR_DDP_INVALID ddp: expected at least one parameter, got 4 frozen ones; a model that does not train needs no ddp.",
      "ERR_DDP_INVALID ddp: element 2 of the list: expected an object with name, value, grad and onGradReady (GradParam), got another one. Pass the model itself.",
      "ERR_DDP_INVALID ddp: "w" is wrapped already, by the ddp() of Net in group "world"; expected a parameter that no other ddp() averages, because two would change its gradient at the same time. Use that wrapper, or call its close() before.",
      "ERR_DDP_INVALID ddp: "w" and "tied" are the same parameter; expected each once. A parameter that is used in two places must be listed once.",
      "ERR_DDP_INVALID ddp: no. (on rank 1)",
      "ERR_DDP_INVALID ddp: hook: expected a generator function (function*) that yields each operation that it starts, got an async function.",
      "ERR_DDP_INVALID takePartOnce: rank 1 has gradients of weight 2 from backwards inside noSync, which would not count; expected a rank without samples in this step. Call average(), which sends them.",
      "ERR_DDP_INVALID ddp: hook: expected every value that it yields to be the Work that a verb of the group returns, got a promise.",
      "ERR_DDP_INVALID train: the model that was passed to ddp() has no train(); expected one where the wrapper's is called. Give the model this method.",
      "ERR_DDP_UNUSED backward: "w" is frozen on rank 1, but it trained when ddp() was called; expected the same parameters to train. Call close() on the wrapper, and ddp() again.",
      "ERR_DDP_INVALID backward: "w" got a gradient on rank 1, but it was frozen when ddp() was called, so that nothing averages it; expected the same parameters to train. Call close() on the wrapper, and ddp() again.",
      "ERR_DDP_NOT_IN_SYNC assertInSync: buffer "mean" differs between ranks: rank 0 has "mean" (sha256 0a); rank 1 has "mean" (sha256 0b). Buffers are those of rank 0 after every averaged backward, unless ddp() was told broadcastBuffers: false.",
      "ERR_DDP_SNAPSHOT saveSnapshot: no answer from rank 1 within 100 ms. It is collective: every rank calls saveSnapshot, although only rank 0 uses the file; take it out of \`if (rank === 0)\`.",
      "ERR_DDP_SNAPSHOT saveSnapshot: ranks call it for different files: rank 0 has "a"; rank 1 has "b". It is collective: all ranks make the same calls, with the same file.",
      "ERR_DDP_INVALID saveSnapshot: state.rng is saved for each rank, but only rank 0 has passed it and rank 1 has not; expected the states of all ranks to have it at the same place. Pass the whole state on every rank.",
      "ERR_DDP_SNAPSHOT loadSnapshot: state.loader differed between the 2 ranks that saved it and cannot be loaded on 3; expected 2 ranks. Start 2 ranks, or leave it out of the snapshot.",
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
