// Forty questions of people who know PyTorch or TypeScript and not ringwise, each with the words that they would type
// into the search. The list was written before the answers were looked up. `answers` are the sections that answer the
// question; one of them has to be among the first results.

/** @type {readonly { question: string, search: string, answers: readonly string[] }[]} */
export const questions = [
  // People who know PyTorch.
  {
    question: 'How do I start two processes on one machine?',
    search: 'start two processes',
    answers: ['/docs/tutorial/README#step-2-two-ranks'],
  },
  { question: 'What replaces torchrun?', search: 'torchrun', answers: ['/docs/launch#from-torchrun'] },
  {
    question: 'What replaces init_process_group?',
    search: 'init_process_group',
    answers: ['/docs/from-pytorch#starting-and-ending'],
  },
  {
    question: 'How do I accumulate gradients over several batches?',
    search: 'gradient accumulation',
    answers: ['/docs/from-pytorch#distributeddataparallel', '/packages/ddp/README#api-by-task'],
  },
  {
    question: 'Where is no_sync?',
    search: 'no_sync',
    answers: ['/docs/from-pytorch#distributeddataparallel'],
  },
  {
    question: 'Some parameters get no gradient. What do I do?',
    search: 'find_unused_parameters',
    answers: ['/docs/from-pytorch#distributeddataparallel'],
  },
  {
    question: 'How do I clip gradients with DDP?',
    search: 'clip_grad_norm_',
    answers: ['/docs/from-pytorch#optimizers-schedules-mixed-precision-compile'],
  },
  {
    question: 'Is there mixed precision?',
    search: 'autocast GradScaler',
    answers: ['/packages/tensor/README#mixed-precision'],
  },
  {
    question: 'How do I synchronise batch norm?',
    search: 'SyncBatchNorm',
    answers: ['/docs/from-pytorch#distributeddataparallel'],
  },
  {
    question: 'How do I save a checkpoint and go on from it?',
    search: 'save checkpoint resume',
    answers: ['/docs/from-pytorch#distributeddataparallel'],
  },
  {
    question: 'How does each rank get its own part of the data?',
    search: 'DistributedSampler',
    answers: ['/docs/data#several-ranks'],
  },
  {
    question: 'How do I load data in the background?',
    search: 'num_workers',
    answers: ['/docs/data#workers'],
  },
  {
    question: 'How do I run under Slurm?',
    search: 'slurm sbatch',
    answers: ['/examples/slurm/README#on-slurm'],
  },
  {
    question: 'How do I train on two hosts?',
    search: 'two hosts',
    answers: ['/docs/tutorial/README#step-6-two-hosts'],
  },
  {
    question: 'What happens when a rank dies?',
    search: 'rank dies restart',
    answers: ['/packages/launch/README#when-a-rank-fails', '/docs/launch#what-happens-when'],
  },
  {
    question: 'Is there FSDP or ZeRO?',
    search: 'FSDP',
    answers: ['/docs/from-pytorch#distributeddataparallel'],
  },
  {
    question: 'How do I gather objects of different sizes?',
    search: 'all_gather_object',
    answers: ['/docs/collectives#objects'],
  },
  {
    question: 'How do I send to one other rank?',
    search: 'send recv isend',
    answers: ['/docs/collectives#send-recv-batch'],
  },
  {
    question: 'The ranks have different numbers of batches.',
    search: 'uneven inputs join',
    answers: ['/docs/ddp#join'],
  },
  {
    question: 'How do I send compressed gradients?',
    search: 'compress gradients hook',
    answers: ['/docs/from-pytorch#distributeddataparallel', '/docs/ddp#hooks'],
  },
  {
    question: 'How do I make groups of some of the ranks?',
    search: 'new_group',
    answers: ['/docs/from-pytorch#ranks-and-groups'],
  },
  { question: 'How do I change the timeout?', search: 'timeout', answers: ['/docs/errors#err_coll_timeout'] },
  {
    question: 'My job hangs. How do I find out why?',
    search: 'hangs',
    answers: ['/docs/debugging#when-something-hangs'],
  },
  {
    question: 'Can I load weights that PyTorch saved?',
    search: 'load pytorch weights',
    answers: ['/docs/tensor#files-and-weights-that-pytorch-saved'],
  },
  { question: 'How do I use the GPU?', search: 'gpu cuda', answers: ['/packages/tensor/README#cuda'] },
  {
    question: 'Which functions of torch are missing?',
    search: 'missing functions',
    answers: ['/docs/tensor#functions-and-layers-of-pytorch-that-are-missing'],
  },
  {
    question: 'How fast is it beside Gloo, MPI and PyTorch?',
    search: 'gloo mpi speed',
    answers: ['/docs/performance#against-others', '/docs/performance#one-host'],
  },
  // People who know TypeScript and Node.js.
  {
    question: 'Does it run on Windows and macOS?',
    search: 'windows macos',
    answers: ['/docs/platforms#platforms'],
  },
  { question: 'Does it run on Alpine?', search: 'alpine musl', answers: ['/docs/platforms#platforms'] },
  { question: 'Can I use require()?', search: 'require commonjs', answers: ['/docs/install#imports'] },
  {
    question: 'How do I run a TypeScript file?',
    search: 'typescript tsx',
    answers: ['/docs/install#typescript'],
  },
  {
    question: 'How do I train a TensorFlow.js model?',
    search: 'tensorflow.js',
    answers: ['/packages/tfjs/README#ringwisetfjs', '/README#when-to-take-something-else'],
  },
  {
    question: 'Does it work with Next.js and bundlers?',
    search: 'next.js bundler',
    answers: ['/docs/install#bundlers'],
  },
  {
    question: 'Do I have to free tensors?',
    search: 'memory leak dispose',
    answers: ['/packages/tensor/README#memory', '/docs/tensor#memory-is-given-back-by-you-or-by-backward'],
  },
  {
    question: 'What does ERR_COLL_MISMATCH mean?',
    search: 'ERR_COLL_MISMATCH',
    answers: ['/docs/errors#err_coll_mismatch'],
  },
  {
    question: 'Which ports does it open? Is the traffic protected?',
    search: 'firewall port security',
    answers: ['/docs/launch#ports-for-firewalls'],
  },
  {
    question: 'How do I run it in Kubernetes?',
    search: 'kubernetes',
    answers: ['/examples/kubernetes/README#on-kubernetes'],
  },
  {
    question: 'Can I use my own autograd or framework?',
    search: 'own autograd',
    answers: ['/packages/ddp/README#ringwiseddp'],
  },
  {
    question: 'Can I see the progress of a run in a browser?',
    search: 'live page browser',
    answers: ['/packages/launch/README#look-at-a-job', '/docs/launch#look-at-a-job'],
  },
  {
    question: 'Which environment variables are there?',
    search: 'environment variables',
    answers: ['/docs/environment#environment-variables'],
  },
];
