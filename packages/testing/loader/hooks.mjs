// Compiles each TypeScript module once for all processes. The result lies in node_modules/.cache, one file for each
// module, and ends with a hash of the source that it was made from.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const cache = fileURLToPath(new URL('../node_modules/.cache/typescript/', import.meta.url));
const hash = (text) => createHash('sha256').update(text).digest('hex');

let esbuild;

async function compile(file, source) {
  esbuild ??= await import('esbuild');
  const options = { loader: 'ts', format: 'esm', target: 'node20', sourcemap: 'inline', sourcefile: file };
  return (await esbuild.transform(source, options)).code;
}

function cached(path, mark) {
  try {
    const text = readFileSync(path, 'utf8');
    return text.endsWith(mark) ? text : null;
  } catch {
    return null;
  }
}

export async function load(url, context, next) {
  if (!url.startsWith('file:') || !url.endsWith('.ts')) return next(url, context);
  const file = fileURLToPath(url);
  const source = readFileSync(file, 'utf8');
  const mark = `\n//${hash(source)}`;
  const path = `${cache}${hash(file)}.js`;
  let code = cached(path, mark);
  if (code === null) {
    code = (await compile(file, source)) + mark;
    mkdirSync(cache, { recursive: true });
    // Ranks compile the same module at once: each writes a file of its own, and the last rename stays.
    const own = `${path}.${process.pid}`;
    writeFileSync(own, code);
    renameSync(own, path);
  }
  return { format: 'module', source: code, shortCircuit: true };
}
