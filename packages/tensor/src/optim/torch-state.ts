// Converts the state of an optimiser of PyTorch into the state that the optimiser of the same name loads here.
import { checkValue, isTensor } from '../checks/value-checks.ts';
import type { Tensor } from '../core/tensor.ts';
import { badStateDict } from '../errors.ts';
import { AdamW } from './adam.ts';
import { Optimizer } from './optimizer.ts';
import type { OptimizerState, SavedGroup } from './state.ts';

/** An element of `param_groups` in the state of a PyTorch optimiser: its options, under PyTorch's names. */
export interface TorchParamGroup {
  /** Positions of the parameters. */
  readonly params: readonly number[];
  readonly [option: string]: unknown;
}

/** Options that say how PyTorch computes a step. The numbers do not depend on them. */
const ways: ReadonlySet<string> = new Set(['foreach', 'fused', 'capturable', 'differentiable']);

/** State that LBFGS keeps in PyTorch and that its next step does not read. */
const unread: ReadonlySet<string> = new Set(['al', 'func_evals', 'prev_loss']);

/** Converts `exp_avg` to `expAvg`, and `H_diag` to `hDiag`. */
function ownName(name: string): string {
  const camel = name.replace(/_+(\w)/g, (_, letter: string) => letter.toUpperCase());
  return camel.charAt(0).toLowerCase() + camel.slice(1);
}

/** Returns the options of a group under their names here. Adds options that do not fit to `problems`. */
function optionsOf(
  optimizer: Optimizer,
  { params: _, ...given }: TorchParamGroup,
  at: number,
  problems: string[],
): Record<string, unknown> {
  const own = optimizer.groups[at]!;
  const options: Record<string, unknown> = { ...own };
  for (const [name, value] of Object.entries(given)) {
    const known = ownName(name);
    if (ways.has(name)) continue;
    if (name === 'decoupled_weight_decay' && value === false && optimizer instanceof AdamW)
      problems.push(`group ${at} is one of Adam, not of ${className(optimizer)}`);
    else if (name === 'param_names') {
      if (own.paramNames !== undefined && String(own.paramNames) !== String(value))
        problems.push(
          `group ${at} expected the parameters ${own.paramNames.join(', ')}, got ${String(value)}`,
        );
    } else if (name === 'initial_lr' || (known in own && known !== 'paramNames')) options[known] = value;
    else problems.push(`group ${at} has the option ${name}, which ${className(optimizer)} does not have`);
  }
  return options;
}

const className = (optimizer: Optimizer): string => optimizer.constructor.name;

/** Returns the groups, with positions of parameters. Throws if the numbers of parameters differ. */
function groupsOf(optimizer: Optimizer, given: readonly TorchParamGroup[], problems: string[]): SavedGroup[] {
  const sizes = optimizer.groups.map(({ params }) => params.length);
  const saved = given.map(({ params }) => params.length);
  if (sizes.join() !== saved.join())
    throw badStateDict([`expected groups of ${sizes.join(', ')} parameters, got ${saved.join(', ')}`]);
  let first = 0;
  return given.map((group, at) => {
    const params = group.params.map((_, i) => first + i);
    first += params.length;
    return { ...optionsOf(optimizer, group, at, problems), params };
  });
}

/**
 * Returns the state that `optimizer.loadStateDict()` takes, from that of a PyTorch optimiser of the same class.
 * `paramGroups` is `state_dict()["param_groups"]`. `tensors` has what is in `state_dict()["state"]` by the names
 * "<parameter>.<name>", such as "0.exp_avg": numbers are tensors without dimensions, and lists of tensors are stacked.
 * docs/tensor.md has the Python function that writes both to a safetensors file. The result refers to the same tensors,
 * which the caller keeps.
 *
 * As in PyTorch, parameters are matched by their order. Names are compared if both optimisers were made with names.
 * Throws ERR_TENSOR_STATE_DICT for options that the optimiser does not have; loadStateDict() checks the rest.
 */
export function fromTorchState(
  optimizer: Optimizer,
  tensors: Readonly<Record<string, Tensor>>,
  paramGroups: readonly TorchParamGroup[],
): OptimizerState {
  checkValue('fromTorchState', optimizer, {
    expected: 'an optimiser',
    fits: (value) => value instanceof Optimizer,
  });
  checkValue('fromTorchState: paramGroups', paramGroups, {
    expected: 'the list param_groups of a state_dict()',
    fits: (value) => Array.isArray(value) && value.every((group) => Array.isArray(group?.params)),
  });
  const problems: string[] = [];
  const groups = groupsOf(optimizer, paramGroups, problems);
  const positions = new Map(paramGroups.flatMap(({ params }) => params).map((id, i) => [String(id), i]));
  const steps = [...positions.keys()].map(() => 0);
  const own: Record<string, Tensor> = {};
  for (const [key, tensor] of Object.entries(tensors)) {
    const [, id, name] = /^(\d+)\.(\w+)$/.exec(key) ?? [];
    const at = positions.get(id ?? '');
    if (at === undefined || !isTensor(tensor)) {
      problems.push(`unexpected ${key}`);
      continue;
    }
    if (name === 'step' || name === 'n_iter') steps[at] = tensor.item();
    else {
      if (!unread.has(name!)) own[`${ownName(name!)}.${at}`] = tensor;
      // SGD and Muon do not count steps, and have a state after the first one.
      if (!hasCount(tensors, id!)) steps[at] = 1;
    }
  }
  if (problems.length > 0) throw badStateDict(problems);
  return { groups, steps, tensors: own };
}

/** Tells whether PyTorch counts the steps of a parameter. */
const hasCount = (tensors: Readonly<Record<string, Tensor>>, id: string): boolean =>
  `${id}.step` in tensors || `${id}.n_iter` in tensors;
