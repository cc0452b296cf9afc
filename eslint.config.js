// Configures only the rules that Biome lacks: those with type information, and one about times in tests.
// `checkThenables` makes a forgotten `await` on a Work an error, although a Work is not a Promise. To start an
// operation without awaiting it, write `void group.allReduce(x)`.
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
  {
    // A busy machine takes as long as it likes. A test that something does not wait gives it a deadline that is longer
    // than the time limit of the test.
    files: ['packages/*/test/**/*.ts', 'examples/test/**/*.ts', 'scripts/test/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector:
            "CallExpression[callee.property.name=/^toBeLessThan/]:has(CallExpression[callee.name='expect'] BinaryExpression > :matches(Identifier[name=/(AtMs|startMs|startedMs)$/], MemberExpression[property.name=/(AtMs|startMs|startedMs)$/], CallExpression[callee.property.name='now']))",
          message: 'Do not assert an upper bound of a time: it fails on a busy machine.',
        },
      ],
    },
  },
);
