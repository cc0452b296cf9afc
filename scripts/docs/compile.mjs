// Compiles pieces of code from pages with the TypeScript compiler, in one program: types of our packages come from
// their built declarations. A piece that uses an exported name without importing it gets the import.
import { join, resolve } from 'node:path';
import ts from 'typescript';

/** Options of the compiler for pieces of code and for declarations. */
export const compilerOptions = {
  target: ts.ScriptTarget.ES2023,
  lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  strict: true,
  noUncheckedIndexedAccess: true,
  exactOptionalPropertyTypes: true,
  skipLibCheck: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  types: ['node'],
};
const prelude = resolve('scripts/docs/prelude.d.ts');

/** Returns the names that `code` uses, and those that it declares or imports. */
function namesOf(code) {
  const file = ts.createSourceFile('block.ts', code, ts.ScriptTarget.ES2023, true);
  const used = new Set();
  const own = new Set();
  const visit = (node) => {
    if (ts.isIdentifier(node)) {
      const { parent } = node;
      const isMember =
        (ts.isPropertyAccessExpression(parent) && parent.name === node) ||
        (ts.isPropertyAssignment(parent) && parent.name === node);
      if (isMember) return;
      if ('name' in parent && parent.name === node && !ts.isShorthandPropertyAssignment(parent))
        own.add(node.text);
      else used.add(node.text);
    }
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { used: [...used].filter((name) => !own.has(name)), own };
}

/** Returns one line that imports the exported names that `code` uses and does not declare. */
function importsFor(code, table) {
  const { used } = namesOf(code);
  const wanted = used.filter((name) => table.has(name));
  return `${wanted.map((name) => `import { ${name} } from '${table.get(name)}';`).join(' ')} export {};`;
}

/**
 * Compiles pieces, each `{ path, line, code, given, isSpan }`: a span is an expression or statement of one line.
 * Returns the faults, one line each, with the place in the page.
 */
export function compileFaults(pieces, table) {
  const files = new Map();
  for (const [index, piece] of pieces.entries()) {
    const name = resolve(join(piece.path, '..', `piece-${index}.ts`));
    const body = piece.isSpan ? `async () => { ${piece.code}\n};` : piece.code;
    const { given = '' } = piece;
    files.set(name, { piece, text: `${importsFor(`${given}\n${piece.code}`, table)} ${given}\n${body}` });
  }
  const host = ts.createCompilerHost(compilerOptions, true);
  const { fileExists, getSourceFile, readFile } = host;
  host.fileExists = (name) => files.has(name) || fileExists.call(host, name);
  host.readFile = (name) => files.get(name)?.text ?? readFile.call(host, name);
  host.getSourceFile = (name, target, ...rest) => {
    const own = files.get(name);
    return own
      ? ts.createSourceFile(name, own.text, target, true)
      : getSourceFile.call(host, name, target, ...rest);
  };
  const program = ts.createProgram([prelude, ...files.keys()], compilerOptions, host);
  return ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const what = ts.flattenDiagnosticMessageText(messageText, ' ');
    const own = file && files.get(file.fileName);
    if (!own) return `${file?.fileName ?? 'check-docs'}: ${what}`;
    const at = own.piece.line + Math.max(0, file.getLineAndCharacterOfPosition(start).line - 1);
    return `${own.piece.path}:${own.piece.isSpan ? own.piece.line : at} ${what}${own.piece.isSpan ? ` in \`${own.piece.code}\`` : ''}`;
  });
}
