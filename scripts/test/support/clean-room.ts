// Empty projects in which published packages are installed, without a compiler and without this repository.
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { npmPackage } from '../../cross/npm-package.mjs';

export const root = fileURLToPath(new URL('../../..', import.meta.url));

const isMusl =
  process.platform === 'linux' &&
  !(process.report.getReport() as { header: { glibcVersionRuntime?: string } }).header.glibcVersionRuntime;

/** How the names of this machine's compiled packages end, such as linux-x64 or linuxmusl-arm64. */
export const platform = `${process.platform}${isMusl ? 'musl' : ''}-${process.arch}`;

/** Longest time in ms that one command may take. */
const limitMs = 400_000;

/** The Yarn that has Plug'n'Play. */
const yarnBerry = {
  name: '@yarnpkg/cli-dist',
  version: '4.18.1',
  integrity:
    'sha512-EH+A4TxAtBWXKE0DGQxW9Bo9crXHLJ73mfxjTQJuv8XonNWWTpei8BQ5JjczHJNU9GROTycwMFn8iOvRIZXUcA==',
};

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CleanRoom {
  /** Makes an empty project, with the files given, and returns its folder. */
  readonly project: (name: string, files?: Readonly<Record<string, string>>) => string;
  /** Runs a command in a folder, to its end. The PATH has no compiler. */
  readonly run: (folder: string, command: string, ...args: readonly string[]) => Promise<Ended>;
  /** The same, with variables added to the environment. */
  readonly runWith: (
    env: Readonly<Record<string, string>>,
    folder: string,
    command: string,
    ...args: readonly string[]
  ) => Promise<Ended>;
  /** Adds the command `yarn-berry`, Yarn with Plug'n'Play, which npm's registry must give on the first call. */
  readonly addYarnBerry: () => void;
}

/**
 * Makes a clean room inside `folder`, whose package managers use the registry at `url`, with caches of their own.
 * `node` is the executable of Node.js that its programs run.
 */
export function cleanRoom(folder: string, url: string, node = process.execPath): CleanRoom {
  const bin = join(folder, 'bin');
  mkdirSync(bin, { recursive: true });
  const npm = join(dirname(process.execPath), 'npm');
  symlinkSync(node, join(bin, 'node'));
  for (const name of ['npm', 'npx']) symlinkSync(join(dirname(npm), name), join(bin, name));
  // The commands that pnpm links are shell scripts, which use the others.
  for (const name of ['sh', 'sed', 'dirname', 'uname']) {
    const path = [`/bin/${name}`, `/usr/bin/${name}`].find((each) => existsSync(each));
    if (path !== undefined) symlinkSync(path, join(bin, name));
  }
  const command = (name: string, program: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\nexec node '${program}' "$@"\n`, { mode: 0o755 });
  command('pnpm', join(root, 'node_modules/pnpm/bin/pnpm.cjs'));
  command('yarn', join(root, 'node_modules/yarn/bin/yarn.js'));
  const npmrc = join(folder, 'npmrc');
  writeFileSync(
    npmrc,
    `registry=${url}/\n//${new URL(url).host}/:_authToken=none\naudit=false\nfund=false\n`,
  );
  const environment = {
    PATH: bin,
    HOME: folder,
    TMPDIR: folder,
    npm_config_userconfig: npmrc,
    npm_config_registry: `${url}/`,
    npm_config_cache: join(folder, 'npm-cache'),
    npm_config_store_dir: join(folder, 'pnpm-store'),
    npm_config_update_notifier: 'false',
    YARN_CACHE_FOLDER: join(folder, 'yarn-cache'),
    // The other Yarn reads these. It would refuse versions that are younger than a day.
    YARN_GLOBAL_FOLDER: join(folder, 'yarn-berry'),
    YARN_NPM_REGISTRY_SERVER: url,
    YARN_UNSAFE_HTTP_WHITELIST: '127.0.0.1',
    YARN_NPM_MINIMAL_AGE_GATE: '0',
    YARN_ENABLE_TELEMETRY: 'false',
  };
  const runWith: CleanRoom['runWith'] = (env, cwd, command, ...args) =>
    new Promise((resolve) => {
      const options = { cwd, env: { ...environment, ...env }, timeout: limitMs, encoding: 'utf8' as const };
      execFile(command, [...args], options, (error, stdout, stderr) => {
        const code = error === null ? 0 : typeof error.code === 'number' ? error.code : 1;
        resolve({ code, stdout, stderr: error && stderr === '' ? error.message : stderr });
      });
    });
  return {
    project: (name, files = {}) => {
      const place = join(folder, name);
      mkdirSync(place, { recursive: true });
      writeFileSync(
        join(place, 'package.json'),
        '{ "name": "empty", "version": "1.0.0", "private": true }\n',
      );
      for (const [path, text] of Object.entries(files)) writeFileSync(join(place, path), text);
      return place;
    },
    run: (cwd, command, ...args) => runWith({}, cwd, command, ...args),
    runWith,
    addYarnBerry: () => command('yarn-berry', join(npmPackage(yarnBerry), 'bin/yarn.js')),
  };
}
