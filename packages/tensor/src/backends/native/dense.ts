// Makes the calls of kernels over dense operands from their declarations. A call writes its operands and
// numbers to the scratch array, where the binding reads them (native/node/tensor/tensor_call.h). The call has no
// arguments, because passing an argument costs more than writing a number there.
import { denseKernels } from '../declarations/declarations.ts';
import { type Kernel, type Slot, slotsOf } from '../declarations/declare.ts';
import type { DenseKernels, DenseName } from '../kernels.ts';
import type { Input, Stream, Strided } from '../operands.ts';
import type { NativeAddon } from './addon.ts';
import { numbersAt, rowStridesAt } from './layout.ts';

type Given = Readonly<Record<string, unknown>>;
/** Writes the operands and attributes of a call. */
export type Write = (operands: Given, attributes: Given) => void;

const hasStrides = ({ operands }: Kernel, name: string): boolean =>
  operands[name]!.form === 'heads' || operands[name]!.form === 'mask';

function writeNumbers(scratch: Float64Array, slots: readonly Slot[], given: Given): void {
  for (const { name, attribute, at, members } of slots) {
    const value = given[name];
    const to = numbersAt + at;
    if (members.length > 0) writeNumbers(scratch, members, value as Given);
    else if (attribute === 'stream') {
      const { seed, offset, live = -1 } = value as Stream;
      scratch[to] = seed;
      scratch[to + 1] = offset;
      scratch[to + 2] = live;
    } else if (typeof attribute === 'object' && attribute.kind === 'choice')
      scratch[to] = attribute.names.indexOf(value as string);
    else scratch[to] = Number(value);
  }
}

/**
 * Returns a function that writes a call by interpreting the declaration. It is slow, and defines the behaviour of
 * `compiledWriter`.
 */
export function interpretedWriter(scratch: Float64Array, declaration: Kernel): Write {
  const slots = slotsOf(declaration.attributes);
  const names = Object.keys(declaration.operands);
  return (operands, attributes) => {
    for (const [i, name] of names.entries()) {
      const operand = operands[name] as Input | null;
      const isMemory = operand !== null && typeof operand === 'object';
      scratch[2 * i] = isMemory ? operand.memory.handle : 0;
      scratch[2 * i + 1] = isMemory ? operand.offset : (operand ?? 0);
      if (isMemory && hasStrides(declaration, name)) scratch.set(operand.strides!, rowStridesAt + 4 * i);
    }
    writeNumbers(scratch, slots, attributes);
  };
}

/** Writes an operand. The generated code calls this function, so that it does not repeat the code for each operand. */
function setOperand(scratch: Float64Array, at: number, operand: Input | null): void {
  if (operand === null) scratch[at] = 0;
  else if (typeof operand === 'number') {
    scratch[at] = 0;
    scratch[at + 1] = operand;
  } else {
    scratch[at] = operand.memory.handle;
    scratch[at + 1] = operand.offset;
  }
}

function setStrides(scratch: Float64Array, at: number, operand: Strided | null): void {
  if (operand !== null) for (let d = 0; d < 4; d++) scratch[at + d] = operand.strides![d]!;
}

/** Returns the statements that write the slots. The expression `from` names the object that has their values. */
function statementsOf(slots: readonly Slot[], from: string): string[] {
  return slots.flatMap(({ name, attribute, at, members }) => {
    const value = `${from}.${name}`;
    const to = (i: number): string => `scratch[${numbersAt + at + i}]`;
    if (members.length > 0) return statementsOf(members, value);
    if (attribute === 'stream')
      return [`${to(0)} = ${value}.seed; ${to(1)} = ${value}.offset; ${to(2)} = ${value}.live ?? -1;`];
    if (typeof attribute === 'object' && attribute.kind === 'choice')
      return [`${to(0)} = ${JSON.stringify(attribute.names)}.indexOf(${value});`];
    return [`${to(0)} = ${attribute === 'flag' ? `${value} ? 1 : 0` : value};`];
  });
}

/**
 * Does the same as `interpretedWriter`, with code that is generated for this declaration. That takes a third of the
 * time, because V8 knows the shape of each object that such code reads. Throws EvalError if Node.js forbids generating
 * code from strings.
 */
export function compiledWriter(scratch: Float64Array, declaration: Kernel): Write {
  const operands = Object.keys(declaration.operands).flatMap((name, i) => [
    `setOperand(scratch, ${2 * i}, operands.${name});`,
    ...(hasStrides(declaration, name)
      ? [`setStrides(scratch, ${rowStridesAt + 4 * i}, operands.${name});`]
      : []),
  ]);
  const body = [...operands, ...statementsOf(slotsOf(declaration.attributes), 'attributes')].join('\n');
  const make = new Function(
    ...['scratch', 'setOperand', 'setStrides'],
    `return (operands, attributes) => {\n${body}\n};`,
  ) as (...given: unknown[]) => Write;
  return make(scratch, setOperand, setStrides);
}

function writerOf(scratch: Float64Array, declaration: Kernel): Write {
  try {
    return compiledWriter(scratch, declaration);
  } catch (error) {
    // node --disallow-code-generation-from-strings
    if (error instanceof EvalError) return interpretedWriter(scratch, declaration);
    throw error;
  }
}

/** Returns the native kernels over dense operands. */
export function nativeDenseKernels(addon: NativeAddon): DenseKernels {
  const names = Object.keys(denseKernels) as DenseName[];
  const calls = names.map((name) => {
    const write = writerOf(addon.scratch, denseKernels[name]);
    const run = addon[name];
    const call: Write = (operands, attributes) => {
      write(operands, attributes);
      run();
    };
    return [name, call];
  });
  return Object.fromEntries(calls) as DenseKernels;
}
