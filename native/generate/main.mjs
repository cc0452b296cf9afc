// Writes the C++ that is generated from the kernel declarations of packages/tensor: `main.mjs FOLDER` writes
// FOLDER/tensor/declared_kernels.h and FOLDER/node/tensor/declared_calls.h. CMake runs it when it configures
// a build, with the TypeScript loader of packages/testing. It does not touch a file whose text stays the
// same, so that nothing is compiled again.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as declarations from '../../packages/tensor/src/backends/declarations/declarations.ts';
import { callsHeader } from './calls.mjs';
import { kernelsHeader } from './kernels.mjs';

function update(path, text) {
  let present = null;
  try {
    present = readFileSync(path, 'utf8');
  } catch {
    mkdirSync(dirname(path), { recursive: true });
  }
  if (present !== text) writeFileSync(path, text);
}

const folder = process.argv[2];
if (!folder) {
  console.error('main.mjs: expected the folder to write to. Usage: node main.mjs FOLDER');
  process.exit(2);
}
update(join(folder, 'tensor/declared_kernels.h'), kernelsHeader(declarations));
update(join(folder, 'node/tensor/declared_calls.h'), callsHeader(declarations));
