// Formats a case as text, for the report of a difference.
import type { Arg, Case, Input } from './case.ts';

function showInput({ dtype, shape, values, views, grad }: Input): string {
  const some = values.slice(0, 16).map((x) => (typeof x === 'number' ? Number(x.toPrecision(6)) : x));
  const seen = views
    .map(([name, ...args]) => `.${name}(${args.map((arg) => JSON.stringify(arg)).join(', ')})`)
    .join('');
  return `${dtype}${grad ? '!' : ''} [${shape.join(', ')}] (${some.join(', ')}${values.length > 16 ? ', …' : ''})${seen}`;
}

function showArg(arg: Arg | undefined): string {
  if (arg === null || typeof arg !== 'object') return typeof arg === 'string' ? `'${arg}'` : String(arg);
  if (Array.isArray(arg)) return `[${arg.map((item) => showArg(item)).join(', ')}]`;
  if ('$' in arg) return typeof arg.$ === 'number' ? `$${arg.$}` : String(arg.$);
  return `{ ${Object.entries(arg)
    .map(([name, item]) => `${name}: ${showArg(item as Arg)}`)
    .join(', ')} }`;
}

/** Returns the text of a case. `!` marks inputs that require a gradient. */
export function show({ inputs, steps }: Case): string {
  const calls = steps.map(({ op, via, args, new: own, state, training }) => {
    const made = own
      ? `new(${own.map(showArg).join(', ')})${training ? '' : '.eval()'}${state && Object.keys(state).length > 0 ? showArg(state) : ''}`
      : '';
    return `${via === 'method' ? 'Tensor.' : ''}${op}${made}(${args.map(showArg).join(', ')})`;
  });
  return `${calls.join('; ')}\n    ${inputs.map((input, i) => `$${i} ${showInput(input)}`).join('\n    ')}`;
}
