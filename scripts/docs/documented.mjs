// Finds exports, and members of exported classes and interfaces, without a docstring, in the built declarations of the
// packages. Names that are marked @internal need none.
import { relative } from 'node:path';
import ts from 'typescript';
import { compilerOptions } from './compile.mjs';
import { entryPoints, publicPackages } from './exports.mjs';

/** Entry points of the commands `ringwise bench`, `doctor` and `flight`, which no program imports. */
const isLeftOut = (specifier) => /\/(bench|doctor|flight|cli)$/.test(specifier);

/** Entry points that the reference describes, as [specifier, declaration file]: not the umbrella's, which repeats. */
export const documentedEntryPoints = () =>
  publicPackages()
    .filter((name) => name !== 'ringwise')
    .flatMap((name) => entryPoints(name))
    .filter(([specifier]) => !isLeftOut(specifier));

const hasText = (symbol, checker) =>
  ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim() !== '';
const isInternal = (symbol) => symbol.getJsDocTags().some(({ name }) => name === 'internal');

/** Tells whether a member needs a docstring: not symbols, private and protected ones, nor those of other projects. */
function isShown(member) {
  const [declaration] = member.declarations ?? [];
  if (declaration === undefined || declaration.getSourceFile().fileName.includes('/node_modules/'))
    return false;
  if (declaration.name === undefined || !ts.isIdentifier(declaration.name)) return false;
  const hidden = ts.ModifierFlags.Private | ts.ModifierFlags.Protected;
  return (ts.getCombinedModifierFlags(declaration) & hidden) === 0 && !isInternal(member);
}

/**
 * Returns the members of a class or an interface, inherited and static ones included, that have no docstring. A method
 * of a tensor needs none if a function of `functions` has its name: the page of the class links to that.
 */
function undocumentedMembers(symbol, functions, checker) {
  const isClass = (symbol.flags & ts.SymbolFlags.Class) !== 0;
  if (!isClass && (symbol.flags & ts.SymbolFlags.Interface) === 0) return [];
  const statics = isClass ? checker.getPropertiesOfType(checker.getTypeOfSymbol(symbol)) : [];
  return [...checker.getPropertiesOfType(checker.getDeclaredTypeOfSymbol(symbol)), ...statics]
    .filter((member) => isShown(member) && !hasText(member, checker))
    .filter((member) => symbol.name !== 'Tensor' || !functions.has(member.name))
    .map((member) => `${symbol.name}.${member.name}`);
}

/** Returns the exported names of a module, and of their members, that have no docstring. */
function undocumentedIn(module, checker) {
  const all = checker.getExportsOfModule(module);
  const functions = new Set(all.map(({ name }) => name));
  return all.flatMap((exported) => {
    const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
    const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported;
    // The bundled declarations of a namespace (nn.init) refer to those of its members, which carry the docstrings.
    if ((symbol.flags & ts.SymbolFlags.Module) !== 0 || isInternal(symbol)) return [];
    const own = hasText(symbol, checker) ? [] : [exported.name];
    return [...own, ...undocumentedMembers(symbol, functions, checker)];
  });
}

/** Returns a fault for each exported name without a docstring. `entries` is a list of [specifier, declaration file]. */
export function undocumentedFaults(entries) {
  const files = entries.map(([, file]) => file);
  const program = ts.createProgram(files, compilerOptions);
  const checker = program.getTypeChecker();
  return entries.flatMap(([specifier, file]) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file));
    if (module === undefined) return [`${specifier}: ${relative('.', file)} exports nothing`];
    return undocumentedIn(module, checker).map(
      (name) => `${specifier} exports ${name}, which has no docstring`,
    );
  });
}
