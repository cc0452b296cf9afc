// Generates tensor/declared_kernels.h: the enumerations, the struct that each kernel receives, and the table
// of kernels.
import { nameIn, pascal, snake } from './names.mjs';

const plainTypes = {
  size: 'size_t',
  integer: 'int64_t',
  number: 'double',
  flag: 'bool',
  stream: 'Stream',
  dtype: 'DType',
};

function typeOf(attribute, { choices, groups }) {
  if (typeof attribute === 'string') return plainTypes[attribute];
  return attribute.kind === 'choice'
    ? nameIn(choices, attribute, 'a choice')
    : nameIn(groups, attribute, 'a group');
}

function operandMembers(name, { form, dtype, isOutput, extent }) {
  const member = snake(name);
  const target = isOutput ? '' : 'const ';
  const note = `  // ${extent}${form === 'optional' || form === 'mask' ? '; or null' : ''}`;
  if (form === 'heads') return [`HeadRows ${member};${note}`];
  if (form === 'mask') return [`AttentionMask ${member};${note}`];
  if (dtype === 'int64') return [`${target}int64_t* ${member};${note}`];
  const pointer = `${target}void* ${member};${note}`;
  if (dtype === 'label') return [`DType ${member}_dtype;`, pointer];
  if (form === 'number') return [`${pointer}; null: the number`, `double ${member}_number;`];
  return [pointer];
}

const baseNameOf = (base, { parts, denseKernels }) =>
  base.kind === 'dense' ? pascal(nameIn(denseKernels, base, 'a base')) : nameIn(parts, base, 'a base');

/** Returns the entries of `members` that are not in `base`. */
const own = (members, base) => Object.entries(members).filter(([name]) => !(base && name in base));

function partStruct(name, part, declared) {
  const { base } = part;
  const lines = [];
  if (part.kind === 'dense' && base?.kind !== 'dense') lines.push('DType dtype;');
  for (const [operand, declaration] of own(part.operands, base?.operands))
    lines.push(...operandMembers(operand, declaration));
  for (const [attribute, declaration] of own(part.attributes, base?.attributes))
    lines.push(`${typeOf(declaration, declared)} ${snake(attribute)};`);
  const inherits = base ? ` : ${baseNameOf(base, declared)}` : '';
  return `struct ${name}${inherits} {\n${lines.map((line) => `  ${line}\n`).join('')}};\n`;
}

function walkStruct(name, { base, attributes }, declared) {
  const members = own(attributes, base?.attributes).map(
    ([key, type]) => `  ${typeOf(type, declared)} ${snake(key)};\n`,
  );
  return `struct ${name}${base ? ` : ${baseNameOf(base, declared)}` : ''} {\n${members.join('')}  Walk walk;\n};\n`;
}

const enumeration = ([name, { names }]) =>
  `enum class ${name} : int { ${[...names.map(pascal), 'Count'].join(', ')} };\n`;

export function kernelsHeader(declared) {
  const { choices, groups, parts, walkKernels, denseKernels, listKernels } = declared;
  const all = [...Object.keys(walkKernels), ...Object.keys(denseKernels), ...Object.keys(listKernels)];
  const structs = [
    ...Object.entries(groups).map(([name, { members }]) =>
      partStruct(name, { kind: 'group', base: null, operands: {}, attributes: members }, declared),
    ),
    ...Object.entries(parts).map(([name, part]) => partStruct(name, part, declared)),
    ...Object.entries(walkKernels).map(([name, kernel]) => walkStruct(pascal(name), kernel, declared)),
    ...Object.entries(denseKernels).map(([name, kernel]) => partStruct(pascal(name), kernel, declared)),
  ];
  const pointers = all.map((name) => `  void (*${snake(name)})(const ${pascal(name)}&);\n`);
  const each = all.map((name) => `  X(${snake(name)}, ${pascal(name)})`).join(' \\\n');
  return `// Written by native/generate from packages/tensor/src/backends/declarations. An extent is a number of elements,
// written as a formula of the other members.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "base/target.h"
#include "tensor/attention.h"
#include "tensor/random.h"
#include "tensor/walk.h"

namespace ringwise::tensor {

${Object.entries(choices).map(enumeration).join('')}
${structs.join('\n')}
${Object.keys(listKernels)
  .map((name) => `struct ${pascal(name)};\n`)
  .join('')}
/// The kernels of one instruction set or device.
struct Kernels {
  CpuLevel level;  // the instruction set, if these are kernels of a CPU
  const char* name;
${pointers.join('')}};

/// Expands to X(name, Type) for every kernel: its member of Kernels, and the struct that it receives.
#define RINGWISE_EACH_KERNEL(X) \\
${each}

}  // namespace ringwise::tensor
`;
}
