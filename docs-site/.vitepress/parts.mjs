// The parts of the sidebar: each page by its path from the root of the repository, where the site is built, and with
// another title where its own is too long.
import { readdirSync } from 'node:fs';

/** Decisions that are listed with titles of their own. */
const listed = ['board', 'handshakes', 'one-root-cause', 'life-line', 'reproducible-sums'];
const decisions = readdirSync('docs/decisions')
  .filter((name) => name.endsWith('.md') && !listed.some((each) => name.includes(each)))
  .map((name) => `docs/decisions/${name}`);

/** @type {readonly { text: string, nav?: string, pages: readonly (string | readonly [string, string])[] }[]} */
export const parts = [
  {
    text: 'Tutorial',
    nav: 'Tutorial',
    pages: [
      ['docs/tutorial/README.md', 'From one process to two hosts'],
      ['README.md', 'Overview'],
      ['examples/README.md', 'Examples, in order'],
    ],
  },
  {
    text: 'How to',
    nav: 'How to',
    pages: [
      ['docs/install.md', 'Install'],
      ['docs/launch.md', 'Launch on several hosts'],
      ['docs/debugging.md', 'Find out why it hangs'],
      ['docs/backends.md', 'Choose or write a backend'],
      ['packages/tfjs/README.md', 'Train TensorFlow.js models'],
      ['docs/adapters.md', 'Adapt another autograd'],
      ['docs/c-abi.md', 'Use it from C and Python'],
      ['docs/performance.md', 'Measure your machines'],
    ],
  },
  {
    text: 'From PyTorch',
    nav: 'From PyTorch',
    pages: [
      ['docs/from-pytorch.md', 'Names side by side'],
      ['docs/tensor.md', 'Tensors and layers'],
      ['docs/data.md', 'Data'],
    ],
  },
  {
    text: 'Reference',
    nav: 'Reference',
    pages: [
      ['docs/collectives.md', 'The verbs'],
      ['docs/errors.md', 'Errors by code'],
      ['docs/environment.md', 'Environment variables'],
      'packages/collectives/README.md',
      'packages/ddp/README.md',
      'packages/elastic/README.md',
      'packages/tensor/README.md',
      'packages/data/README.md',
      'packages/launch/README.md',
      'packages/store/README.md',
      'packages/formats/README.md',
      'packages/ringwise/README.md',
    ],
  },
  {
    text: 'Explanation',
    pages: [
      ['docs/ddp.md', 'How DDP works'],
      ['ARCHITECTURE.md', 'Architecture'],
      ['docs/simulation.md', 'Simulated networks'],
      ['docs/decisions/2026-11-21-board.md', 'What the board is'],
      ['docs/decisions/2026-11-21-handshakes.md', 'Why signatures are compared'],
      ['docs/decisions/2026-11-21-one-root-cause.md', 'One root cause'],
      ['docs/decisions/2026-11-21-life-line.md', 'How ranks die with their launcher'],
      ['docs/decisions/2026-11-21-reproducible-sums.md', 'Reproducible sums'],
      ...decisions,
    ],
  },
  {
    text: 'Project',
    pages: [
      ['docs/platforms.md', 'Platforms'],
      ['docs/status.md', 'Status'],
      ['docs/gpu-results.md', 'Results on GPUs'],
      ['CONTRIBUTING.md', 'Contributing'],
      'packages/testing/README.md',
    ],
  },
];
