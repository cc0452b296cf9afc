// Forty questions of people who know PyTorch or TypeScript and not ringwise, each with the words that they would type
// into the search. The list was written before the answers were looked up. `answer` is the page, and the section if the
// page is long, that answers the question.

/** @type {readonly { question: string, search: string, answer: string }[]} */
export const questions = [
  // People who know PyTorch.
  { question: 'How do I start two processes on one machine?', search: 'start two processes', answer: '' },
  { question: 'What replaces torchrun?', search: 'torchrun', answer: '' },
  { question: 'What replaces init_process_group?', search: 'init_process_group', answer: '' },
  { question: 'How do I accumulate gradients over several batches?', search: 'gradient accumulation', answer: '' },
  { question: 'Where is no_sync?', search: 'no_sync', answer: '' },
  { question: 'Some parameters get no gradient. What do I do?', search: 'find_unused_parameters', answer: '' },
  { question: 'How do I clip gradients with DDP?', search: 'clip_grad_norm_', answer: '' },
  { question: 'Is there mixed precision?', search: 'autocast GradScaler', answer: '' },
  { question: 'How do I synchronise batch norm?', search: 'SyncBatchNorm', answer: '' },
  { question: 'How do I save a checkpoint and go on from it?', search: 'save checkpoint resume', answer: '' },
  { question: 'How does each rank get its own part of the data?', search: 'DistributedSampler', answer: '' },
  { question: 'How do I load data in the background?', search: 'num_workers', answer: '' },
  { question: 'How do I run under Slurm?', search: 'slurm sbatch', answer: '' },
  { question: 'How do I train on two hosts?', search: 'two hosts', answer: '' },
  { question: 'What happens when a rank dies?', search: 'rank dies restart', answer: '' },
  { question: 'Is there FSDP or ZeRO?', search: 'FSDP', answer: '' },
  { question: 'How do I gather objects of different sizes?', search: 'all_gather_object', answer: '' },
  { question: 'How do I send to one other rank?', search: 'send recv isend', answer: '' },
  { question: 'The ranks have different numbers of batches.', search: 'uneven inputs join', answer: '' },
  { question: 'How do I send compressed gradients?', search: 'compress gradients hook', answer: '' },
  { question: 'How do I make groups of some of the ranks?', search: 'new_group', answer: '' },
  { question: 'How do I change the timeout?', search: 'timeout', answer: '' },
  { question: 'My job hangs. How do I find out why?', search: 'hangs', answer: '' },
  { question: 'Can I load weights that PyTorch saved?', search: 'load pytorch weights', answer: '' },
  { question: 'How do I use the GPU?', search: 'gpu cuda', answer: '' },
  { question: 'Which functions of torch are missing?', search: 'missing functions', answer: '' },
  { question: 'How fast is it beside Gloo, MPI and PyTorch?', search: 'gloo mpi speed', answer: '' },
  // People who know TypeScript and Node.js.
  { question: 'Does it run on Windows and macOS?', search: 'windows macos', answer: '' },
  { question: 'Does it run on Alpine?', search: 'alpine musl', answer: '' },
  { question: 'Can I use require()?', search: 'require commonjs', answer: '' },
  { question: 'How do I run a TypeScript file?', search: 'typescript tsx', answer: '' },
  { question: 'How do I train a TensorFlow.js model?', search: 'tensorflow.js', answer: '' },
  { question: 'Does it work with Next.js and bundlers?', search: 'next.js bundler', answer: '' },
  { question: 'Do I have to free tensors?', search: 'memory leak dispose', answer: '' },
  { question: 'What does ERR_COLL_MISMATCH mean?', search: 'ERR_COLL_MISMATCH', answer: '' },
  { question: 'Which ports does it open? Is the traffic protected?', search: 'firewall port security', answer: '' },
  { question: 'How do I run it in Kubernetes?', search: 'kubernetes', answer: '' },
  { question: 'Can I use my own autograd or framework?', search: 'own autograd', answer: '' },
  { question: 'Can I see the progress of a run in a browser?', search: 'live page browser', answer: '' },
  { question: 'Which environment variables are there?', search: 'environment variables', answer: '' },
];
