// Finds exports without a docstring, in the built declarations of the packages. Names that are marked @internal need
// none.
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

/** Returns the exported names of a module that have no docstring. */
function undocumentedIn(module, checker) {
  return checker.getExportsOfModule(module).flatMap((exported) => {
    const isAlias = (exported.flags & ts.SymbolFlags.Alias) !== 0;
    const symbol = isAlias ? checker.getAliasedSymbol(exported) : exported;
    // The bundled declarations of a namespace (nn.init) refer to those of its members, which carry the docstrings.
    if ((symbol.flags & ts.SymbolFlags.Module) !== 0) return [];
    const text = ts.displayPartsToString(symbol.getDocumentationComment(checker)).trim();
    const isInternal = symbol.getJsDocTags().some(({ name }) => name === 'internal');
    return text !== '' || isInternal ? [] : [exported.name];
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
