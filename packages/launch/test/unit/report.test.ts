import { inspect } from 'node:util';
import { describe, expect, it } from 'vitest';
import type { RankOutcome } from '../../src/agent/rank-process.ts';
import { lastLines } from '../../src/report/last-lines.ts';
import {
  isSecondary,
  joinedWords,
  parseLastWords,
  reportError,
  reviveError,
} from '../../src/report/last-words.ts';
import {
  exitCodeOf,
  exitCodeOfSignal,
  failureReport,
  firstUserFrame,
  rootCause,
} from '../../src/report/report.ts';
import type { ReportedError } from '../../src/report/words.ts';

const secondary = Object.assign(new Error('lost rank 2'), { code: 'ERR_COLL_PEER_LOST', secondary: true });

function outcome(rank: number, given: Partial<RankOutcome> = {}): RankOutcome {
  return {
    rank,
    host: 'gpu-a',
    pid: 100 + rank,
    exitCode: 0,
    signal: null,
    failedNs: null,
    lastWords: null,
    tail: [],
    logFile: null,
    ...given,
  };
}

function thrown(rank: number, timeNs: bigint, error: unknown, given: Partial<RankOutcome> = {}): RankOutcome {
  const lastWords = { timeNs, error: { ...reportError(error), stack: '' } };
  return outcome(rank, { exitCode: 1, failedNs: timeNs, lastWords, ...given });
}

const stopped = (rank: number) => outcome(rank, { exitCode: null, signal: 'SIGTERM' });
const reportOf = (root: RankOutcome, ...outcomes: RankOutcome[]) => failureReport(outcomes, 0n, root);

describe('rootCause', () => {
  it('is null when no rank failed, even if all were stopped', () => {
    expect(rootCause([outcome(0), stopped(1)])).toBeNull();
  });

  it('is the first failure in time, not in rank', () => {
    expect(rootCause([thrown(0, 9n, 'late'), thrown(1, 5n, 'early')])?.rank).toBe(1);
  });

  it('is never a rank that failed only because a peer did, while there is another', () => {
    const killed = outcome(2, { exitCode: null, signal: 'SIGKILL', failedNs: 9n });
    expect(rootCause([thrown(0, 1n, secondary), thrown(1, 2n, secondary), killed])?.rank).toBe(2);
  });

  it('sees through errors that wrap a secondary one', () => {
    const wrapped = new Error('step failed', { cause: secondary });
    expect(rootCause([thrown(0, 1n, wrapped), thrown(1, 2n, new Error('mine'))])?.rank).toBe(1);
  });

  it('is the first secondary failure when there is no other', () => {
    expect(rootCause([thrown(0, 4n, secondary), thrown(1, 3n, secondary)])?.rank).toBe(1);
  });
});

describe('exitCodeOf', () => {
  it('is that of the root cause, 128 + n for a signal', () => {
    expect(exitCodeOf(outcome(0, { exitCode: 7, failedNs: 1n }))).toBe(7);
    expect(exitCodeOf(outcome(0, { exitCode: null, signal: 'SIGSEGV', failedNs: 1n }))).toBe(139);
    expect(exitCodeOf(outcome(0, { exitCode: null, failedNs: 1n }))).toBe(1);
    expect(exitCodeOfSignal('SIGINT')).toBe(130);
  });
});

describe('failureReport', () => {
  it('names rank, error, process, and what the others said', () => {
    const root = thrown(2, 12_400_000_000n, new RangeError('token 50304 is outside\nthe vocabulary'));
    const others = [thrown(0, 13_000_000_000n, secondary), thrown(1, 13_000_000_000n, secondary), stopped(3)];
    expect(reportOf(root, ...others, root)).toBe(
      [
        'rank 2 of 4 failed (exit code 1) after 12.4 s; rank 3 was stopped.',
        '  RangeError: token 50304 is outside',
        '  the vocabulary',
        `  pid 102 on gpu-a`,
        '  ranks 0, 1 reported ERR_COLL_PEER_LOST',
      ].join('\n'),
    );
  });

  it('names the line of the program in ranks that are secondary, and their stack if one of them is all there is', () => {
    const stack = ['Error: lost', '    at onEnd (node:internal/x:1:2)', '    at vitest.config.ts:5'].join(
      '\n',
    );
    const lost = thrown(0, 2n, secondary);
    const words = { ...lost.lastWords!, error: { ...lost.lastWords!.error, stack } };
    const other = { ...lost, lastWords: words };
    const root = thrown(1, 1n, new Error('mine'));
    expect(reportOf(root, other, root)).toMatch(
      /\n {2}rank 0 reported ERR_COLL_PEER_LOST {3}vitest\.config\.ts:5$/,
    );
    expect(reportOf(other, other)).toContain('lost rank 2   vitest.config.ts:5\n    at vitest.config.ts:5\n');
  });

  it('gives the message of an error whose code is a number, such as a DOMException', () => {
    const root = thrown(1, 1n, new Error('mine'));
    const other = thrown(0, 2n, new DOMException('x could not be cloned.', 'DataCloneError'));
    expect(reportOf(root, other, root)).toMatch('rank 0 reported DataCloneError: x could not be cloned.');
    const numbered = thrown(0, 2n, Object.assign(new Error('not found'), { code: 404 }));
    expect(reportOf(root, numbered, root)).toMatch('rank 0 reported Error: not found');
  });

  it('shows the end of the output of a rank that died without a word', () => {
    const tail = Array.from({ length: 50 }, (_, i) => `line ${i}`);
    const root = outcome(0, { exitCode: null, signal: 'SIGKILL', failedNs: 100_000_000n, tail });
    expect(reportOf(root, root, stopped(1), stopped(2))).toBe(
      [
        'rank 0 of 3 failed (SIGKILL) after 0.1 s; ranks 1, 2 were stopped.',
        '  The launcher did not send it; the kernel does when memory runs out (see dmesg).',
        `  pid 100 on gpu-a`,
        '  last output of rank 0:',
        ...tail.slice(-10).map((line) => `    ${line}`),
      ].join('\n'),
    );
  });

  it('says what exit code 13 means, for which Node.js prints nothing', () => {
    const root = outcome(0, { exitCode: 13, failedNs: 1n });
    expect(reportOf(root, root)).toContain(
      'a top-level await waits for a promise that nothing is left to settle',
    );
    const said = thrown(0, 1n, new Error('mine'), { exitCode: 13 });
    expect(reportOf(said, said)).not.toContain('top-level await');
  });

  it('does not say who killed a rank that had reported its error before', () => {
    const root = thrown(0, 1n, new Error('mine'), { exitCode: null, signal: 'SIGKILL' });
    expect(reportOf(root, root)).toMatch(
      /^rank 0 of 1 failed \(SIGKILL\) after 0\.0 s\.\n {2}Error: mine\n {2}pid/,
    );
  });

  it('says what to do about top-level await in a script that is no module', () => {
    const error = Object.assign(new Error('Transform failed'), { code: 'ERR_REQUIRE_ASYNC_MODULE' });
    const root = thrown(0, 1n, error);
    expect(reportOf(root, root)).toContain(
      '\n  Top-level await needs an ES module. Two ways out: name the script .mjs (or .mts), or name it .js (or .ts) and ' +
        'put "type": "module" into the nearest package.json.\n',
    );
  });

  it.each([
    ['Cannot use import statement outside a module', '`import` needs an ES module'],
    ["Unexpected token 'export'", '`export` needs an ES module'],
    ["Cannot use 'import.meta' outside a module", '`import.meta` needs an ES module'],
    [
      'await is only valid in async functions and the top level bodies of modules',
      'Top-level await needs an ES module',
    ],
    [
      'Transform failed with 1 error:\na.ts:1:0: ERROR: Top-level await is currently not supported with the "cjs" output format',
      'Top-level await needs an ES module',
    ],
  ])('shows the two ways out of CommonJS after: %s', (said, advice) => {
    const root = thrown(0, 1n, new SyntaxError(said));
    expect(reportOf(root, root)).toContain(`\n  ${advice}. Two ways out: `);
  });

  it("names ours after an import of PyTorch's name", () => {
    const said = "The requested module '@ringwise/tensor' does not provide an export named 'manual_seed'";
    const root = thrown(0, 1n, new SyntaxError(said));
    expect(reportOf(root, root)).toContain(
      '\n  Names are in camelCase here, such as manualSeed; docs/from-pytorch.md',
    );
  });

  it('says which entries of tensor there are after an import from the wrong one', () => {
    const said = "The requested module 'ringwise/tensor' does not provide an export named 'clipGradNorm'";
    const root = thrown(0, 1n, new SyntaxError(said));
    expect(reportOf(root, root)).toContain('optimizers, schedules and clipGradNorm in /optim');
  });

  it('says which entry to name after an import from ringwise itself', () => {
    const said = "The requested module 'ringwise' does not provide an export named 'init'";
    const root = thrown(0, 1n, new SyntaxError(said));
    expect(reportOf(root, root)).toContain('ringwise/collectives has init.');
  });

  it('says how to start TypeScript that Node.js does not run', () => {
    const error = Object.assign(new SyntaxError('TypeScript enum is not supported in strip-only mode'), {
      code: 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
    });
    expect(reportOf(thrown(0, 1n, error), thrown(0, 1n, error))).toContain('NODE_OPTIONS="--import tsx"');
  });

  it('has the place of TypeScript that Node.js does not run, from the output of the rank', () => {
    const error = Object.assign(
      new SyntaxError('TypeScript parameter property is not supported in strip-only mode'),
      {
        code: 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
      },
    );
    const tail = [
      ...['/elsewhere/other.ts:1', 'a line of the program', '', 'file:///elsewhere/gpt.ts:37'],
      ...[
        '  readonly out: Linear;',
        '  constructor(readonly width: number) {',
        '              ^^^^^',
        '    super();',
        '',
      ],
      ...[
        `SyntaxError [ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX]: ${error.message}`,
        '    at parseTypeScript (node:x:68:40)',
      ],
    ];
    const root = thrown(0, 1n, error, { tail });
    expect(reportOf(root, root)).toContain(`${error.message}   /elsewhere/gpt.ts:37\n`);
  });

  it('finds the place of a syntax error above a stack longer than the lines that launchers send', () => {
    const error = new SyntaxError("Unexpected token ';'");
    const above = ['file:///elsewhere/gpt.mjs:2', 'const b = ;', '          ^', '', `${error}`];
    const frames = Array.from({ length: 11 }, (_, i) => `    at link (node:internal/modules/loader:${i}:1)`);
    const root = thrown(0, 1n, error, { tail: lastLines([...above, ...frames, '', 'Node.js v26.0.0']) });
    expect(reportOf(root, root)).toContain(`${error.message}   /elsewhere/gpt.mjs:2\n`);
  });

  it('says what to raise when there are no file descriptors', () => {
    const error = Object.assign(new Error('spawn EMFILE'), { code: 'EMFILE' });
    expect(reportOf(thrown(0, 1n, error), thrown(0, 1n, error))).toContain('ulimit -n 4096');
  });

  it('says how to start a program that Node.js does not run', () => {
    const error = Object.assign(new TypeError('Unknown file extension ".sh"'), {
      code: 'ERR_UNKNOWN_FILE_EXTENSION',
    });
    expect(reportOf(thrown(0, 1n, error), thrown(0, 1n, error))).toContain('--no-python ./program');
  });

  it('shows the reason of V8 above its stack, and what to do when the heap was full', () => {
    const fatal = 'FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory';
    const tail = [
      '',
      fatal,
      '----- Native stack trace -----',
      ...Array.from({ length: 16 }, (_, i) => `${i}: 0x1`),
    ];
    const root = outcome(0, { exitCode: null, signal: 'SIGABRT', failedNs: 1n, tail });
    expect(reportOf(root, root)).toMatch(
      /\n {2}JavaScript objects took all of the heap: .*\n[\s\S]*last output of rank 0:\n {4}FATAL ERROR: .*\n {4}6: 0x1\n/,
    );
  });

  it('tells how ranks failed that reported no error', () => {
    const root = outcome(0, { exitCode: 3, failedNs: 1n });
    const other = outcome(1, { exitCode: 4, failedNs: 2n });
    expect(reportOf(root, root, other)).toContain('  rank 1 ended with exit code 4');
  });

  it('tells which ranks had ended well, as they may be what the others lost', () => {
    const root = thrown(1, 1n, secondary);
    expect(reportOf(root, outcome(0), root, stopped(2))).toMatch(/\n {2}rank 0 ended with exit code 0$/);
  });
});

describe('the words of a native crash', () => {
  const said = [
    '{"crash":"SIGSEGV","timeNs":"12","thread":"node","tid":7,"address":"0x10"}',
    'last call in a group of 2 ranks: allReduce #5, running, train.ts:8',
    '/opt/lib/coll.node(+0x1f20) [0x7f00]',
    '/usr/bin/node(_ZN4node5AbortEv+0x1f) [0x55]',
    '/usr/bin/node(_ZNK2v88internal9HandleMapIN4wideEE3getEi+0x2) [0x56]',
    '/lib/libc.so.6(abort+0xd3) [0x57]',
    '/usr/bin/node[0xd3a3c0]',
    '',
  ];

  it('are an error with the name of the signal, and the native stack', () => {
    expect(parseLastWords(said.join('\n'))).toEqual({
      timeNs: 12n,
      error: {
        name: 'SIGSEGV',
        message:
          'a fault at address 0x10, in thread node (7)\nlast call in a group of 2 ranks: allReduce #5, running, train.ts:8',
        stack: [
          '    at 0x1f20 (coll.node)',
          '    at node::Abort+0x1f (node)',
          '    at v8::internal::HandleMap+0x2 (node)',
          '    at abort+0xd3 (libc.so.6)',
          '    at 0xd3a3c0 (node)',
        ].join('\n'),
        fields: { native: true },
        cause: null,
      },
    });
  });

  it('go before an error that was told earlier, and may be cut off after their first line', () => {
    const error = `${JSON.stringify({ timeNs: '3', error: reportError(new Error('before')) })}\n`;
    expect(parseLastWords(`${error}${said[0]}\nlast ca`)?.error).toMatchObject({
      name: 'SIGSEGV',
      stack: '',
    });
    expect(parseLastWords(`${error}{"crash":"SIG`)?.error).toMatchObject({ message: 'before' });
  });

  it('are in the report, with what the rank printed before', () => {
    const lastWords = parseLastWords(said.join('\n'));
    const tail = ['FATAL ERROR: out of memory'];
    const root = outcome(1, { exitCode: null, signal: 'SIGSEGV', failedNs: 1_000_000_000n, lastWords, tail });
    expect(reportOf(root, stopped(0), root)).toBe(
      [
        'rank 1 of 2 failed (SIGSEGV) after 1.0 s; rank 0 was stopped.',
        '  SIGSEGV: a fault at address 0x10, in thread node (7)',
        '  last call in a group of 2 ranks: allReduce #5, running, train.ts:8',
        '    at 0x1f20 (coll.node)',
        '    at node::Abort+0x1f (node)',
        '    at v8::internal::HandleMap+0x2 (node)',
        '    at abort+0xd3 (libc.so.6)',
        '    at 0xd3a3c0 (node)',
        '  pid 101 on gpu-a',
        '  last output of rank 1:',
        '    FATAL ERROR: out of memory',
      ].join('\n'),
    );
  });
});

describe('firstUserFrame', () => {
  it('skips node and node_modules', () => {
    const stack = [
      'Error: x',
      '    at node:internal/timers:1:2',
      '    at step (file:///somewhere/node_modules/lib/index.js:10:3)',
      '    at async Promise.all (index 0)',
      `    at async train (file://${process.cwd()}/my%20src/train.ts:88:5)`,
      '    at file:///elsewhere/main.mjs:1:1',
    ].join('\n');
    expect(firstUserFrame(stack)).toBe('my src/train.ts:88');
    expect(firstUserFrame('Error: x\n    at /elsewhere/(a)/main.cjs:3:1')).toBe('/elsewhere/(a)/main.cjs:3');
    expect(firstUserFrame('Error: x\n    at async file:///elsewhere/main.mjs:3:1')).toBe(
      '/elsewhere/main.mjs:3',
    );
    expect(firstUserFrame('Error: x\n    at node:fs:1:2')).toBeNull();
  });

  it('skips a URL that is no path, as a program may put any text into a stack', () => {
    const odd = '    at f (file:///elsewhere/a%zz.mjs:1:2)\n    at f (file:///elsewhere/a%2Fb.mjs:1:2)';
    expect(firstUserFrame(`Error: x\n${odd}\n    at file:///elsewhere/main.mjs:3:1`)).toBe(
      '/elsewhere/main.mjs:3',
    );
  });

  it("reads Python's stacks, innermost frame last", () => {
    const stack = [
      'Traceback (most recent call last):',
      '  File "/elsewhere/train.py", line 12, in <module>',
      '    main()',
      '  File "/elsewhere/model.py", line 7, in main',
      '  File "/usr/lib/python3/dist-packages/torch/nn.py", line 99, in forward',
    ].join('\n');
    expect(firstUserFrame(stack)).toBe('/elsewhere/model.py:7');
  });

  it('takes built code only where there is no other', () => {
    const built = '    at run (file:///elsewhere/dist/index.js:10:3)';
    expect(firstUserFrame(`Error: x\n${built}\n    at file:///elsewhere/train.ts:7:1`)).toBe(
      '/elsewhere/train.ts:7',
    );
    expect(firstUserFrame(`Error: x\n${built}`)).toBe('/elsewhere/dist/index.js:10');
  });
});

describe('last words', () => {
  const overTheWire = (error: unknown) => JSON.parse(JSON.stringify(reportError(error))) as ReportedError;

  it('carry an error with its fields and causes', () => {
    const cause = new TypeError('inner');
    const error = Object.assign(new RangeError('outer', { cause }), {
      code: 'ERR_X',
      peers: [1, 2],
      handle: () => 1,
    });
    const revived = reviveError(overTheWire(error)) as typeof error;
    expect(revived).toMatchObject({ name: 'RangeError', message: 'outer', code: 'ERR_X', peers: [1, 2] });
    expect(revived.stack).toBe(error.stack);
    expect(revived.cause).toMatchObject({ name: 'TypeError', message: 'inner', stack: cause.stack });
    expect(revived).not.toHaveProperty('handle');
  });

  it('read code and secondary from getters', () => {
    class Lost extends Error {
      get code() {
        return 'ERR_LOST';
      }
      get secondary() {
        return true;
      }
    }
    const reported = overTheWire(new Lost('x'));
    expect(reported.fields.code).toBe('ERR_LOST');
    expect(isSecondary(reported)).toBe(true);
  });

  it('take what is thrown without being an error, and endless chains of causes', () => {
    expect(overTheWire({ reason: 'none' }).message).toBe("{ reason: 'none' }");
    const loop = new Error('loop');
    loop.cause = loop;
    expect(overTheWire(loop).cause?.cause?.message).toBe('loop');
  });

  it('take an error whose members are not texts, throw, or cannot be cloned', () => {
    const throwing = () => {
      throw new Error('no');
    };
    const odd = Object.assign(new Error('x'), {
      message: { status: 500 },
      stack: 42,
      request: { send() {} },
    });
    Object.defineProperty(odd, 'name', { value: undefined });
    Object.defineProperty(odd, 'code', { get: throwing, enumerable: true });
    Object.defineProperty(odd, 'cause', { get: throwing });
    expect(structuredClone(reportError(odd))).toEqual({
      name: 'Error',
      message: '{ status: 500 }',
      stack: '42',
      fields: { request: {} },
      cause: null,
    });
    expect(reportError({ [inspect.custom]: throwing }).message).toBe('a value without a text');
    expect(reportError(new Proxy({}, { getPrototypeOf: throwing })).message).toMatch(/^(Proxy\()?{}\)?$/);
  });

  it('of a program that survives any number of errors need a limited memory', () => {
    const line = (error: unknown) => `${JSON.stringify({ timeNs: '1', error: reportError(error) })}\n`;
    const survived = line('x'.repeat(16_000)).repeat(64);
    let text = '';
    let longest = 0;
    for (let mebibytes = 0; mebibytes < 40; mebibytes++) {
      text = joinedWords(text, survived);
      longest = Math.max(longest, text.length);
    }
    expect(longest).toBeLessThan(10 << 20);
    expect(parseLastWords(joinedWords(text, line('the last')))?.error.message).toBe("'the last'");
  });

  it('are the last complete line', () => {
    const line = (timeNs: string) => `${JSON.stringify({ timeNs, error: reportError('x') })}\n`;
    expect(parseLastWords(`${line('1')}${line('2')}`)?.timeNs).toBe(2n);
    expect(parseLastWords('{"timeNs":')).toBeNull();
    expect(parseLastWords('')).toBeNull();
    expect(parseLastWords('not ours\n')).toBeNull();
  });
});
