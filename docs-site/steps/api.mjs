// Writes the API reference as Markdown: a page per exported name, from the built declarations of the packages. Names
// that are marked @internal are left out.
import { readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Application, Comment, ReflectionKind, TSConfigReader } from 'typedoc';
import { documentedEntryPoints } from '../../scripts/docs/documented.mjs';

const tsconfig = 'docs-site/tsconfig.json';

/** Writes the reference into `folder`. Returns the number of modules. Throws if TypeDoc reports an error. */
export async function writeApi(folder) {
  const entries = documentedEntryPoints();
  const app = await Application.bootstrapWithPlugins(
    {
      name: 'API',
      plugin: ['typedoc-plugin-markdown'],
      entryPoints: entries.map(([, file]) => file),
      tsconfig,
      // Never the default folder, which is docs/ of the repository and would be emptied.
      out: resolve(folder),
      markdown: resolve(folder),
      cleanOutputDir: false,
      readme: 'none',
      logLevel: 'Warn',
      disableSources: true,
      excludeInternal: true,
      excludePrivate: true,
      excludeProtected: true,
      excludeExternals: true,
      // Markdown and the layout of pages.
      router: 'member',
      entryFileName: 'index',
      parametersFormat: 'table',
      useCodeBlocks: true,
      hidePageHeader: true,
      hideBreadcrumbs: false,
      sanitizeComments: true,
      validation: false,
    },
    [new TSConfigReader()],
  );
  const project = await app.convert();
  if (project === undefined || app.logger.hasErrors())
    throw new Error('docs: TypeDoc could not read the packages');
  const specifiers = new Map(entries.map(([specifier, file]) => [resolve(file), specifier]));
  for (const module of project.children ?? []) {
    const specifier = specifiers.get(project.getSymbolIdFromReflection(module)?.fileName);
    if (specifier === undefined) throw new Error(`docs: no entry point for the module ${module.name}`);
    module.name = specifier.replace('@ringwise/', '');
    linkMethodsToFunctions(module);
  }
  await app.outputs.writeOutput({ name: 'markdown', path: resolve(folder) }, project);
  if (app.logger.hasErrors()) throw new Error('docs: TypeDoc could not write the reference');
  renameIndexPages(folder);
  const modules = (project.children ?? []).map((module) => ({
    name: module.name,
    members: (module.children ?? []).map((member) => ({ name: member.name, kind: member.kind })),
  }));
  writeFileSync(join(folder, 'modules.json'), JSON.stringify(modules));
  if (modules.length !== entries.length)
    throw new Error(`docs: TypeDoc read ${modules.length} of ${entries.length} entry points`);
  return modules.length;
}

/** Refers from each method of Tensor without a docstring to the function of the same name, which has one. */
function linkMethodsToFunctions(module) {
  // Elementwise functions are variables whose type has the signature.
  const kinds = ReflectionKind.Function | ReflectionKind.Variable;
  const functions = new Map(module.getChildrenByKind(kinds).map((each) => [each.name, each]));
  const tensor = module.getChildByName('Tensor');
  for (const method of tensor?.getChildrenByKind(ReflectionKind.Method) ?? []) {
    const target = functions.get(method.name);
    for (const signature of method.signatures ?? []) {
      if (target === undefined || signature.hasComment()) continue;
      signature.comment = new Comment([
        { kind: 'text', text: 'Does what the function ' },
        { kind: 'inline-tag', tag: '@link', target, text: `${method.name}()` },
        { kind: 'text', text: ' does, with this tensor as the first argument.' },
      ]);
    }
  }
}

/**
 * Renames the page of a symbol that is called Index: VitePress, and file systems that ignore case, take it for the
 * index of its folder.
 */
function renameIndexPages(folder) {
  const paths = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.md'),
  );
  for (const path of paths.filter((each) => /[/\\]Index\.md$/.test(each)))
    renameSync(join(folder, path), join(folder, path.replace(/Index\.md$/, 'Index-type.md')));
  for (const path of paths.map((each) => each.replace(/([/\\])Index\.md$/, '$1Index-type.md'))) {
    const text = readFileSync(join(folder, path), 'utf8');
    if (text.includes('/Index.md)')) {
      writeFileSync(join(folder, path), text.replaceAll('/Index.md)', '/Index-type.md)'));
    }
  }
}
