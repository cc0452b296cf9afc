// Configures only the rules with type information, which Biome lacks. `checkThenables` makes a forgotten `await` on a
// Work an error, although a Work is not a Promise. To start an operation without awaiting it, write
// `void group.allReduce(x)`.
import tseslint from 'typescript-eslint';

export default tseslint.config(
  {
    ignores: [
      '**/dist/**',
      '**/node_modules/**',
      '**/*.js',
      '**/*.mjs',
      '**/*.config.ts',
      'native/build*/**',
      'scripts/docs/prelude.d.ts',
      'scripts/test/fixtures/**',
    ],
  },
  {
    files: ['packages/**/*.ts', 'examples/**/*.ts', 'bench/**/*.ts', 'native/**/*.ts', 'scripts/**/*.ts'],
    plugins: { '@typescript-eslint': tseslint.plugin },
    languageOptions: { parser: tseslint.parser, parserOptions: { projectService: true } },
    linterOptions: { reportUnusedDisableDirectives: 'off' },
    rules: {
      '@typescript-eslint/no-floating-promises': ['error', { checkThenables: true }],
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/await-thenable': 'error',
    },
  },
);
