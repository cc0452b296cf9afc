// Generates node/tensor/declared_calls.h: one function, which JavaScript calls through the addon, for each
// kernel whose operands are declared. (tensor_optimizer.cc has those over lists of tensors.) The function
// reads the attributes, then the operands, and checks that the memory of each operand has the extent that the
// declaration gives.
import { slotsOf } from '../../packages/tensor/src/backends/declarations/declare.ts';
import { countOf, dimensionsOf, nameIn, pascal, snake } from './names.mjs';

const dtypeReaders = { any: 'any_dtype', float: 'float_dtype', stored: 'stored_dtype' };
const plainReaders = {
  size: 'size',
  integer: 'integer',
  number: 'number',
  flag: 'flag',
  stream: 'stream',
  dtype: 'dtype',
};

/** Returns the C++ expression that reads an attribute as its C++ type. */
function numberOf({ attribute, at }, declared) {
  if (typeof attribute === 'string') return `call.${plainReaders[attribute]}(${at})`;
  const type = nameIn(declared.choices, attribute, 'a choice');
  return `static_cast<tensor::${type}>(call.choice(${at}, static_cast<int>(tensor::${type}::Count)))`;
}

function readAttribute(slot, target, declared) {
  const member = `${target}.${snake(slot.name)}`;
  if (slot.members.length > 0) return slot.members.flatMap((inner) => readAttribute(inner, member, declared));
  return [`${member} = ${numberOf(slot, declared)};`];
}

function readOperand(i, name, { form, dtype, extent }) {
  const member = `x.${snake(name)}`;
  if (form === 'heads')
    return [`${member} = call.heads(${i}, x.dtype, {${dimensionsOf(extent).join(', ')}});`];
  if (form === 'mask') return [`${member} = call.mask(${i}, x.dtype, {${dimensionsOf(extent).join(', ')}});`];
  const count = countOf(extent);
  if (dtype === 'int64') return [`${member} = call.indices(${i}, ${count});`];
  if (dtype === 'label')
    return [
      `${member}_dtype = call.label_dtype(${i});`,
      `${member} = call.dense(${i}, ${member}_dtype, ${count});`,
    ];
  const type = dtype === 'row' ? 'computed_in(x.dtype)' : 'x.dtype';
  const read = `call.dense(${i}, ${type}, ${count})`;
  if (form === 'memory') return [`${member} = ${read};`];
  const lines = [`${member} = call.has(${i}) ? ${read} : nullptr;`];
  if (form === 'number') lines.push(`${member}_number = call.value(${i});`);
  return lines;
}

function denseCall([name, kernel], declared) {
  return [
    `tensor::${pascal(name)} x{};`,
    `x.dtype = call.${dtypeReaders[kernel.dtype]}();`,
    ...slotsOf(kernel.attributes).flatMap((slot) => readAttribute(slot, 'x', declared)),
    ...Object.entries(kernel.operands).flatMap(([operand, declaration], i) =>
      readOperand(i, operand, declaration),
    ),
    ...(kernel.isChecked ? ['check(call, x);'] : []),
    `call.kernels().${snake(name)}(x);`,
  ];
}

/**
 * Returns the lines of the call of a walk kernel. A walk is large, so the struct is initialised with it
 * instead of assigned.
 */
function walkCall([name, kernel], declared) {
  const slots = slotsOf(kernel.attributes);
  const [least, most] = kernel.operands;
  // If the number of operands varies, it is passed after the attributes.
  const operands = least === most ? least : `call.between(${slots.length}, ${least}, ${most})`;
  const numbers = slots.map((slot) => numberOf(slot, declared)).join(', ');
  const members = [...(numbers ? [kernel.base ? `{${numbers}}` : numbers] : []), `call.walk(${operands})`];
  return [
    `tensor::${pascal(name)} x{${members.join(', ')}};`,
    ...(kernel.isChecked ? ['check(call, x);'] : []),
    `call.kernels().${snake(name)}(x);`,
  ];
}

const functionOf = (name, lines) =>
  `inline void ${snake(name)}(Call& call) {\n${lines.map((line) => `  ${line}\n`).join('')}}\n`;

export function callsHeader(declared) {
  const dense = Object.entries(declared.denseKernels);
  const walks = Object.entries(declared.walkKernels);
  const functions = [
    ...walks.map((entry) => functionOf(entry[0], walkCall(entry, declared))),
    ...dense.map((entry) => functionOf(entry[0], denseCall(entry, declared))),
  ];
  const definitions = [...walks, ...dense].map(
    ([name]) => `  define("${name}", &entry<declared::${snake(name)}>);\n`,
  );
  return `// Written by native/generate from packages/tensor/src/backends/declarations.
#pragma once

#include "node/tensor/tensor_call.h"
#include "node/tensor/tensor_checks.h"

namespace ringwise::node {
namespace declared {

${functions.join('\n')}
}  // namespace declared

/// Calls define(name, callback) for every kernel that is declared with its operands.
template <class Define>
void define_declared(Define define) {
${definitions.join('')}}

}  // namespace ringwise::node
`;
}
