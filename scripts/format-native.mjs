// Formats all C, C++ and CUDA sources with clang-format and the style in .clang-format. With --check, changes nothing,
// names the files that differ and exits with code 1.
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format } from '@wasm-fmt/clang-format';
import { sources } from './checks/sources.mjs';

const style = readFileSync('.clang-format', 'utf8');
const isCheck = process.argv.includes('--check');

for (const path of sources('*.c', '*.h', '*.cc', '*.cu', '*.cuh')) {
  if (!existsSync(path)) continue; // git still lists a removed file until the removal is committed
  const text = readFileSync(path, 'utf8');
  const formatted = format(text, path, style);
  if (formatted === text) continue;
  if (isCheck) {
    console.error(`format-native: ${path} is not formatted; run npm run format`);
    process.exitCode = 1;
  } else {
    writeFileSync(path, formatted);
  }
}
