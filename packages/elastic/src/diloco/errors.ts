// Error messages of diloco(). Messages about several ranks are built from data that all ranks have, so that all ranks
// throw the same error.
import { byRank } from '@ringwise/ddp';
import { ElasticError, invalidArgument } from '../errors.ts';

export function notParams(): ElasticError {
  const expected = 'a model with a Symbol.for("ringwise.gradParams") member, or a list of its parameters';
  return invalidArgument('diloco', expected, 'something else');
}

export function noParams(): ElasticError {
  return invalidArgument('diloco', 'at least one parameter that trains', 'none');
}

export function onDevice(name: string, device: string): ElasticError {
  const message = `diloco: "${name}" is in ${device} memory; expected host memory, which is all that diloco() supports. Keep the model in host memory, or train it with ddp().`;
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function notFloat32(name: string, dtype: string): ElasticError {
  const message = `diloco: "${name}" is ${dtype}; expected float32, the only dtype of parameters that diloco() averages. Keep the parameters in float32, and compute in lower precision by autocast.`;
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function noClone(name: string): ElasticError {
  const message = `diloco: the autograd of "${name}" cannot copy a parameter for an outer optimizer; expected GradParam.clone with a key, or outer: 'average'.`;
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function notAnOptimizer(got: string): ElasticError {
  const expected = 'a function that returns an optimizer with step(), stateDict() and loadStateDict()';
  return invalidArgument('diloco: outer', expected, `one that returns ${got}`);
}

export function tooManyFragments(fragments: number, layers: number): ElasticError {
  const expected = `at most ${layers}, one for each layer with parameters that train`;
  return invalidArgument('diloco: fragments', expected, String(fragments));
}

export function delayTooLong(delay: number, every: number): ElasticError {
  const expected = `fewer inner steps than every (${every}), so that a fragment arrives before it leaves again`;
  return invalidArgument('diloco: delay', expected, String(delay));
}

export function mixWithoutUse(mix: number): ElasticError {
  const expected = "a number from 0 up to, but not including, 1: the local parameters' share";
  return invalidArgument('diloco: mix', expected, String(mix));
}

export function notWithin(rank: number): ElasticError {
  const message = `diloco: the group \`within\` of rank ${rank} has ranks that are not in \`group\`; expected a subgroup of it that contains the rank. Make it by group.split() or group.subgroup().`;
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}

export function groupWithin(): ElasticError {
  const expected = "'host', because the group of the next view has new subgroups";
  return invalidArgument('diloco: within', expected, 'a group beside `membership`');
}

/** Error for ranks that called diloco() with different models or options. `texts` has each rank's, in rank order. */
export function settingsDiffer(verb: string, texts: readonly string[]): ElasticError {
  const message = `${verb}: models or options differ between ranks: ${byRank(texts)}. Pass the same on all ranks.`;
  return new ElasticError('ERR_ELASTIC_DISAGREE', message);
}

/** `hashes` has each rank's hash of the global parameters of the fragment, in rank order. */
export function notInSync(verb: string, fragment: number, hashes: readonly string[]): ElasticError {
  const message = `${verb}: the global parameters of fragment ${fragment} differ between ranks: ${byRank(hashes)}. Check that all ranks loaded the same state and have the same options of the outer optimizer, and that nothing but diloco changes its parameters.`;
  return new ElasticError('ERR_ELASTIC_STATE', message);
}

/** `counts` has the number of averages that each rank has applied, in rank order. */
export function countsDiffer(verb: string, counts: readonly string[]): ElasticError {
  const message = `${verb}: ranks are at different averages: ${byRank(counts)}. Ranks that load a state must all load the same one, and ranks call step() equally often.`;
  return new ElasticError('ERR_ELASTIC_STATE', message);
}

export function notComplete(): ElasticError {
  const message =
    'change: the change says that the average in flight is final, but it is not complete on this rank; expected a decision that all members made together. Pass the change as the membership gave it.';
  return new ElasticError('ERR_ELASTIC_USE', message);
}

export function stillRunning(verb: string, running: string): ElasticError {
  const message = `${verb}: ${running}() still runs on this rank; expected one call at a time. Await each call.`;
  return new ElasticError('ERR_ELASTIC_USE', message);
}

export function brokenOff(verb: string, cause: unknown): ElasticError {
  const message = `${verb}: the last call failed and the averages in flight are not settled; expected change() with a group of the ranks that are left. Without one, end the job and load the last snapshot.`;
  return new ElasticError('ERR_ELASTIC_USE', message, { cause });
}

export function averageInFlight(verb: string, delay: number, every: number): ElasticError {
  const message = `${verb}: an average is in flight; expected none. Call it in a step where \`isPending\` is false (with delay ${delay}, that is so in at least ${every - delay} of ${every} steps for each fragment), or after finish().`;
  return new ElasticError('ERR_ELASTIC_USE', message);
}

export function closed(verb: string): ElasticError {
  return new ElasticError(
    'ERR_ELASTIC_USE',
    `${verb}: this object was closed; expected an open one. Call diloco() again.`,
  );
}

export function badState(problem: string): ElasticError {
  const message = `loadStateDict: ${problem}. Load a state that diloco() saved of the same model, with the same options.`;
  return new ElasticError('ERR_ELASTIC_INVALID', message);
}
