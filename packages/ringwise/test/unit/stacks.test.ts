// Tests that the stack of an error reaches the program. Between it and the place of the error lie more functions of the
// packages than Node.js keeps by default.
import { loopbackGroups } from '@ringwise/collectives';
import { DataError } from '@ringwise/data';
import { DdpError, ddp } from '@ringwise/ddp';
import { ElasticError } from '@ringwise/elastic';
import { ones, type Tensor, TensorError } from '@ringwise/tensor';
import { Linear, ModuleList } from '@ringwise/tensor/nn';
import { afterEach, describe, expect, it } from 'vitest';

const limit = Error.stackTraceLimit;
afterEach(() => {
  Error.stackTraceLimit = limit;
});

const deep = <T>(depth: number, make: () => T): T => (depth === 0 ? make() : deep(depth - 1, make));
const program = <T>(make: () => T): T => deep(20, make);

const errors: [string, () => Error][] = [
  ['TensorError', () => new TensorError('ERR_TENSOR_SHAPE', 'a text')],
  ['DdpError', () => new DdpError('ERR_DDP_INVALID', 'a text')],
  ['DataError', () => new DataError('ERR_DATA_ARGUMENT', 'a text')],
  ['ElasticError', () => new ElasticError('ERR_ELASTIC_USE', 'a text')],
];

describe('the stack of an error', () => {
  it.each(errors)('has the program below many functions (%s)', (name, make) => {
    Error.stackTraceLimit = 10;
    const { stack } = program(make);
    expect(stack).toMatch(new RegExp(`^${name}: a text\n {4}at `));
    expect(stack).toContain('at program');
    expect(Error.stackTraceLimit).toBe(10);
  });

  it.each(errors)('is as short as the program wants it (%s)', (_, make) => {
    Error.stackTraceLimit = 0;
    expect(program(make).stack).not.toContain('at ');
    Error.stackTraceLimit = 100;
    expect(deep(60, make).stack?.match(/at deep/g)).toHaveLength(61);
  });

  it('names the line of a backward that leaves out a parameter, and of a refused write', async () => {
    Error.stackTraceLimit = 10;
    const groups = loopbackGroups(1);
    const group = groups[0]!;
    const layers = new ModuleList([new Linear(2, 2), new Linear(2, 2)]);
    await ddp(layers, { group });
    const train = (x: Tensor) => layers.at(0)!.forward(x).sum().backward();
    const thrown = (run: () => void): string => {
      try {
        run();
      } catch (error) {
        return (error as Error).stack!;
      }
      return 'nothing was thrown';
    };
    expect(thrown(() => train(ones([1, 2])))).toMatch(/got no gradient[\s\S]*at train/);
    const refused = group.allReduce(layers.at(0)!.weight);
    const { stack } = await refused.then(
      () => new Error('not refused'),
      (error: Error) => error,
    );
    expect(stack).toContain('stacks.test.ts');
    await group.close();
  });
});
