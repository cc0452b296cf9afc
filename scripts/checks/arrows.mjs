// Checks which packages and folders use which: TypeScript imports, dependencies in package.json, C++ includes. Checks
// also that no files of a package import each other in a circle, type imports included. ARCHITECTURE.md draws the
// allowed arrows; the tables below are the rules that this script enforces.
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { circlesIn } from './cycles.mjs';

/** Our packages that the sources of a package may import. Its tests and devDependencies may also use `testOnly`. */
const allowed = {
  store: [],
  collectives: ['store'],
  ddp: ['collectives'],
  elastic: ['collectives', 'data', 'ddp', 'store'],
  formats: [],
  tensor: ['formats'],
  data: ['formats'],
  launch: ['store'],
  tfjs: ['collectives', 'ddp'],
  testing: ['store'],
  ringwise: ['collectives', 'data', 'ddp', 'elastic', 'formats', 'launch', 'store', 'tensor'],
};
const testOnly = {
  collectives: ['testing', 'tensor'],
  launch: ['testing'],
  ddp: ['testing', 'tensor', 'store'],
  ringwise: ['testing'],
  tfjs: ['testing'],
  elastic: ['testing', 'tensor'],
};

/** Returns the package whose binaries an npm package holds, such as tensor for @ringwise/tensor-linux-x64, or null. */
const ownerOf = (dependency) => /^@ringwise\/([a-z]+)-(?:mpi-)?linux(?:musl)?-/.exec(dependency)?.[1] ?? null;

/**
 * Folders of native/ from which a folder may include headers. Folders that are not listed, such as `test`,
 * may use all.
 */
const includes = {
  base: ['base'],
  coll: ['base', 'coll'],
  tensor: ['base', 'tensor'],
  mpi: ['base', 'coll', 'mpi'],
  capi: ['base', 'coll', 'capi'],
  sim: ['base', 'coll', 'sim'],
  node: ['base', 'coll', 'sim', 'mpi', 'tensor', 'node'],
};

function* walk(folder) {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    if (['node_modules', 'dist'].includes(entry.name) || entry.name.startsWith('build')) continue;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) yield* walk(path);
    else yield path;
  }
}

/** Files at the root that the configuration files of all packages import. */
const sharedSettings = ['tsup.base.ts', 'vitest.base.ts'];

function nameOf(specifier) {
  const match = /^(?:@ringwise\/([a-z]+)|(ringwise))(?:\/|$)/.exec(specifier);
  return match ? (match[1] ?? match[2]) : null;
}

function* importsOf(path) {
  const text = readFileSync(path, 'utf8');
  for (const [, specifier] of text.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)'([^']+)'/g)) yield specifier;
}

function checkPackage(root, name, violations) {
  const folder = join(root, 'packages', name);
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const runtime = allowed[name];
  const all = [...runtime, ...(testOnly[name] ?? [])];
  const fields = ['dependencies', 'optionalDependencies', 'peerDependencies', 'devDependencies'];
  for (const dependency of new Set(fields.flatMap((field) => Object.keys(manifest[field] ?? {})))) {
    if (![null, name].includes(ownerOf(dependency)))
      violations.push(`packages/${name}/package.json depends on ${dependency}, the compiled part of another`);
  }
  const declared = (field) =>
    Object.keys(manifest[field] ?? {})
      .map(nameOf)
      .filter(Boolean);
  for (const target of [...declared('dependencies'), ...declared('peerDependencies')]) {
    if (!runtime.includes(target)) violations.push(`packages/${name}/package.json depends on ${target}`);
  }
  for (const target of declared('devDependencies')) {
    if (!all.includes(target))
      violations.push(`packages/${name}/package.json depends on ${target} for development`);
  }
  for (const path of walk(folder)) {
    if (!/\.[cm]?[jt]s$/.test(path)) continue;
    const inner = relative(folder, path);
    const may = inner.startsWith('test') ? all : runtime;
    for (const specifier of importsOf(path)) {
      const target = nameOf(specifier);
      const own = target === name || (target === null && !specifier.startsWith('.'));
      if (own) continue;
      if (target === null) {
        const imported = join(dirname(path), specifier);
        const isSettings = inner.endsWith('.config.ts') && sharedSettings.includes(relative(root, imported));
        const escapes = relative(folder, imported).startsWith('..');
        if (escapes && !isSettings)
          violations.push(`packages/${name}/${inner} imports ${specifier}, outside its package`);
      } else if (!may.includes(target)) {
        violations.push(`packages/${name}/${inner} imports ${target}`);
      }
    }
  }
}

/** Tells whether a file of a package must be free of circular imports: all TypeScript files outside of its tests. */
const isSource = (inner) => /\.ts$/.test(inner) && !inner.startsWith('test');

function checkCircles(root, name, violations) {
  const folder = join(root, 'packages', name);
  const files = new Set([...walk(folder)].filter((path) => isSource(relative(folder, path))));
  const imports = new Map();
  for (const file of files) {
    const targets = [...importsOf(file)].filter((specifier) => specifier.startsWith('.'));
    imports.set(
      file,
      targets.map((specifier) => join(dirname(file), specifier)).filter((path) => files.has(path)),
    );
  }
  for (const circle of circlesIn(imports)) {
    const names = [...circle, circle[0]].map((path) => relative(folder, path));
    violations.push(`packages/${name}: a circle of imports: ${names.join(' → ')}`);
  }
}

function checkNative(root, violations) {
  const native = join(root, 'native');
  for (const [folder, may] of Object.entries(includes)) {
    for (const path of walk(join(native, folder))) {
      if (!/\.(h|cc|cu)$/.test(path)) continue;
      const inner = relative(native, path);
      for (const [, quoted, angled] of readFileSync(path, 'utf8').matchAll(
        /^\s*#\s*include\s+(?:"([^"]+)"|<([^>]+)>)/gm,
      )) {
        const target = quoted?.split('/')[0];
        if (target && includes[target] && !may.includes(target))
          violations.push(`native/${inner} includes ${quoted}`);
        if (/napi|node_api/.test(angled ?? quoted) && folder !== 'node') {
          violations.push(`native/${inner} includes ${angled ?? quoted}: only native/node may see Node`);
        }
        if (/^(cuda|nccl)/.test(angled ?? '') && !/^(tensor\/cuda|coll\/nccl)\//.test(inner)) {
          violations.push(`native/${inner} includes ${angled}: only */cuda and nccl may see CUDA`);
        }
      }
    }
  }
}

/** Returns all violations of the rules in the tree at `root`, one line each. */
export function violationsIn(root) {
  const violations = [];
  for (const name of Object.keys(allowed)) checkPackage(root, name, violations);
  for (const name of Object.keys(allowed)) checkCircles(root, name, violations);
  checkNative(root, violations);
  return violations;
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const violations = violationsIn(fileURLToPath(new URL('../..', import.meta.url)));
  for (const violation of violations) console.error(`check-arrows: ${violation}`);
  if (violations.length > 0) process.exit(1);
}
