// A job of one process that no launcher has started, and what jobs refuse.
import { postLocalSGDHook } from '@ringwise/ddp';
import { fromHost, manualSeed, memory, mseLoss, scope } from '@ringwise/tensor';
import { BatchNorm1d, Linear } from '@ringwise/tensor/nn';
import { GradScaler, SGD } from '@ringwise/tensor/optim';
import { beforeAll, expect, it } from 'vitest';
import { type ElasticStep, elastic } from '../../src/index.ts';

const launched = ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'RINGWISE_RUN_ID', 'SLURM_PROCID'];
beforeAll(() => {
  for (const name of launched) delete process.env[name];
});

const data = Array.from({ length: 10 }, (_, i) => ({
  x: Float32Array.of(i / 10, 1),
  y: Float32Array.of(i / 5),
}));
type Batch = Record<'x' | 'y', { readonly data: Float32Array; readonly shape: number[] }>;

const makeNet = () => {
  manualSeed(1);
  return new Linear(2, 1);
};

const lossOf = (net: Linear, { x, y }: Batch) =>
  mseLoss(net.forward(fromHost(x.data, x.shape)), fromHost(y.data, y.shape));

/** Trains in a plain loop, and returns the parameters. */
function expected(epochs: number): number[] {
  const net = makeNet();
  const optimizer = new SGD(net.parameters(), { lr: 0.1 });
  for (let epoch = 0; epoch < epochs; epoch++)
    for (const [from, to] of [
      [0, 4],
      [4, 8],
      [8, 10],
    ] as const) {
      const part = data.slice(from, to);
      const flat = (key: 'x' | 'y') => Float32Array.from(part.flatMap((each) => [...each[key]]));
      const batch = {
        x: { data: flat('x'), shape: [to - from, 2] },
        y: { data: flat('y'), shape: [to - from, 1] },
      };
      optimizer.zeroGrad();
      scope(() => lossOf(net, batch).backward());
      optimizer.step();
    }
  return net.parameters().flatMap((param) => Array.from(param.dataSync() as Float32Array));
}

it('refuses calls in the function of run() that would drop gradients, or update by those of this rank', async () => {
  const calls: Record<string, (net: Linear, optimizer: SGD) => void> = {
    'optimizer.zeroGrad()': (_, optimizer) => optimizer.zeroGrad(),
    'optimizer.step()': (_, optimizer) => optimizer.step(),
    'model.zeroGrad()': (net) => net.zeroGrad(),
  };
  for (const [name, call] of Object.entries(calls)) {
    const job = await elastic();
    const net = makeNet();
    const optimizer = new SGD(net.parameters(), { lr: 0.1 });
    const loader = job.loader(data, { globalBatch: 4, microBatch: 2, shuffle: false });
    await job.ddp(net, { optimizer, loader });
    const run = async (): Promise<void> => {
      for await (const step of job.steps(loader, { epochs: 1 }))
        await step.run((batch) => {
          scope(() => lossOf(net, batch as Batch).backward());
          call(net, optimizer);
          return 1;
        });
    };
    await expect(run()).rejects.toMatchObject({
      code: 'ERR_ELASTIC_STEP',
      message: expect.stringContaining(
        `run: the function called ${name}; expected forward and backward only`,
      ),
    });
    await job.close();
    for (const restored of [optimizer, net]) expect(Object.keys(restored)).not.toContain('zeroGrad');
    call(net, optimizer); // outside it works as before
  }
});

for (const name of ['without a scaler', 'with a scaler'])
  it(`trains as a plain loop, ${name}`, async () => {
    await using job = await elastic();
    const net = makeNet();
    const optimizer = new SGD(net.parameters(), { lr: 0.1 });
    const loader = job.loader(data, { globalBatch: 4, microBatch: 4, shuffle: false });
    const scaler = name === 'with a scaler' ? new GradScaler({ initScale: 8 }) : undefined;
    const model = await job.ddp(net, { optimizer, loader, ...(scaler && { scaler }) });
    expect([job.size, job.rank, job.leader, job.hasLeft, loader.length]).toEqual([1, 0, true, false, 3]);
    const tensors: number[] = [];
    for await (const step of job.steps(loader, { epochs: 3 })) {
      await step.run((batch) =>
        scope(() => {
          const loss = lossOf(model.module, batch as Batch);
          (scaler ? scaler.scale(loss) : loss).backward();
          return 1;
        }),
      );
      tensors.push(memory().tensors);
    }
    // Nothing is left over by a step. The collector may take tensors of earlier tests meanwhile.
    expect(tensors.at(-1)).toBeLessThanOrEqual(tensors[1]!);
    const got = net.parameters().flatMap((param) => Array.from(param.dataSync() as Float32Array));
    for (const [i, value] of expected(3).entries()) expect(got[i]).toBeCloseTo(value, 6);
    expect(job.finalSteps).toBe(9);
  });

it.each(['steps', 'run'] as const)('says in %s() that the job was closed in the loop', async (verb) => {
  const job = await elastic();
  const net = makeNet();
  const optimizer = new SGD(net.parameters(), { lr: 0.1 });
  const loader = job.loader(data, { globalBatch: 4, microBatch: 4 });
  await job.ddp(net, { optimizer, loader });
  const train = async () => {
    for await (const step of job.steps(loader, { epochs: 3 })) {
      if (verb === 'run') await job.close();
      await step.run((batch) => {
        lossOf(net, batch as Batch).backward();
        return 1;
      });
      await job.close();
    }
  };
  await expect(train()).rejects.toMatchObject({
    code: 'ERR_ELASTIC_USE',
    message: `${verb}: the job was closed in the loop; expected close() after it. To end the loop, call leave().`,
  });
  expect(job.finalSteps).toBe(verb === 'run' ? 0 : 1);
});

it('continues where a loader says', async () => {
  await using job = await elastic();
  const net = makeNet();
  const loader = job.loader(data, { globalBatch: 4, microBatch: 2 });
  loader.load({ epoch: 1, step: 1, position: 4 });
  await job.ddp(net, { optimizer: new SGD(net.parameters(), { lr: 0.1 }), loader });
  const seen: unknown[] = [];
  for await (const step of job.steps(loader, { epochs: 2 })) {
    seen.push([step.epoch, step.index]);
    const { samples, mean } = await step.run((batch) => {
      lossOf(net, batch as Batch).backward();
      return 2;
    });
    seen.push(samples, mean);
  }
  expect(seen).toEqual([[1, 1], 4, 2, [1, 2], 2, 2]);
});

async function failing(body: (step: ElasticStep<Batch>, net: Linear) => unknown): Promise<unknown> {
  await using job = await elastic();
  const net = makeNet();
  const loader = job.loader(data, { batchPerRank: 4 });
  await job.ddp(net, { optimizer: new SGD(net.parameters(), { lr: 0.1 }), loader });
  try {
    for await (const step of job.steps(loader, { epochs: 1 }))
      await body(step as unknown as ElasticStep<Batch>, net);
  } catch (error) {
    return error;
  }
  return null;
}

it('says what is wrong with a step', async () => {
  let running: Promise<unknown> = Promise.resolve();
  const cases: [body: Parameters<typeof failing>[0], code: string, text: string][] = [
    [() => null, 'ERR_ELASTIC_STEP', 'step 0 was not run'],
    [(step) => step.run(() => 'no' as never), 'ERR_ELASTIC_STEP', "the function returned 'no'"],
    [
      async (step, net) => {
        const fn = (batch: Batch) => {
          lossOf(net, batch).backward();
          return 0;
        };
        await step.run(fn);
        await step.run(fn);
      },
      'ERR_ELASTIC_STEP',
      'step 0 is final already',
    ],
    [
      (step, net) => {
        running = step.run((batch) => {
          lossOf(net, batch).backward();
          return 0;
        });
        running.catch(() => {}); // the job has closed its group meanwhile
      },
      'ERR_ELASTIC_STEP',
      'steps: the loop continued while step 0 was running; expected it to await run()',
    ],
    [
      (step, net) =>
        step.run((batch) => {
          lossOf(net, batch).backward();
          lossOf(net, batch).backward();
          return 0;
        }),
      'ERR_ELASTIC_STEP',
      'ran 2 backwards of the model',
    ],
    [(step) => step.run(null as never), 'ERR_ELASTIC_INVALID', 'run: expected a function'],
    [(step) => step.run(() => 0, { clip: 1 } as never), 'ERR_ELASTIC_INVALID', "unknown option 'clip'"],
    [(step) => step.run(() => 0), 'ERR_DDP_UNUSED', 'parameters got no gradient'],
  ];
  for (const [body, code, text] of cases) {
    const error = await failing(body);
    expect(error).toMatchObject({ code });
    expect((error as Error).message).toContain(text);
  }
  await running.catch(() => {});
});

it('refuses wrong options, and calls in the wrong order', async () => {
  await expect(elastic({ mim: 1 } as never)).rejects.toThrow("unknown option 'mim'; did you mean 'min'");
  await expect(elastic({ log: 3 as never })).rejects.toMatchObject({ code: 'ERR_ELASTIC_INVALID' });
  await expect(elastic({ log: 'no-folder/views.jsonl' })).rejects.toMatchObject({
    code: 'ERR_ELASTIC_INVALID',
    message: expect.stringMatching(/^elastic: log: 'no-folder\/views.jsonl' cannot be written: ENOENT/),
  });
  await expect(elastic({ log: '.' })).rejects.toThrow("elastic: log: '.' cannot be written: it is a folder");
  await expect(elastic({ stallMs: -1 })).rejects.toThrow(
    "elastic: option 'stallMs': expected milliseconds above 0, at most 2147483647, got -1.",
  );
  await expect(elastic({ runId: '' })).rejects.toThrow(
    "elastic: option 'runId': expected a text that is not empty",
  );
  await expect(elastic({ min: 0 })).rejects.toThrow(
    'elastic: min: expected an integer of at least 1, got 0.',
  );
  await expect(elastic({ size: 'a' as never })).rejects.toThrow(
    "elastic: size: expected an integer of at least 1, got 'a'",
  );
  for (const leaveOn of ['SIGFOO', 'SIGKILL', 15])
    await expect(elastic({ leaveOn: leaveOn as never })).rejects.toThrow(
      'elastic: leaveOn: expected the name of a signal such as SIGTERM, or null',
    );
  for (const [replay, text] of [
    ['not-there.jsonl', 'elastic: replay: the log cannot be read: ENOENT'],
    [[{ view: 0, step: 0, size: 1 }, 1], 'got another value at index 1'],
    [5, 'got 5'],
  ])
    await expect(elastic({ replay: replay as never })).rejects.toMatchObject({
      code: 'ERR_ELASTIC_REPLAY',
      message: expect.stringContaining(text as string),
    });
  await using job = await elastic();
  expect(() => job.onView(5 as never)).toThrow(
    'onView: expected a function that gets each change of the view',
  );
  expect(() => job.size).toThrow('the process joins the job in ddp()');
  expect(() => job.leave()).toThrow(expect.objectContaining({ code: 'ERR_ELASTIC_USE' }));
  const net = makeNet();
  const optimizer = new SGD(net.parameters(), { lr: 0.1 });
  const loader = job.loader(data, { batchPerRank: 4 });
  const refused: [options: object, text: string][] = [
    [{}, 'ddp: optimizer: expected an optimizer'],
    [{ optimizer }, 'ddp: loader: expected what job.loader() returns'],
    [{ optimizer, loader, rebuild: true }, "ddp: unknown option 'rebuild'"],
    [{ optimizer, loader, hook: postLocalSGDHook({ startStep: 1 }) }, 'after the hook postLocalSGD'],
    [{ optimizer, loader, syncBatchNorm: 1 }, 'ddp: syncBatchNorm: expected true or false'],
    [
      { optimizer, loader, extra: { schedule: {} } },
      'ddp: extra.schedule: expected an object with stateDict()',
    ],
    [{ optimizer, loader, generators: [1] }, 'ddp: generators[0]'],
    [
      { optimizer: new SGD([...net.parameters(), ...makeNet().parameters()], { lr: 0.1 }), loader },
      'ddp: optimizer: 2 of its 4 parameters are not parameters of the model',
    ],
    [
      { optimizer: job.zero(makeNet().parameters(), (shard) => new SGD(shard, { lr: 0.1 })), loader },
      'ddp: optimizer: 2 of its 2 parameters are not parameters of the model',
    ],
  ];
  for (const [options, text] of refused) await expect(job.ddp(net, options as never)).rejects.toThrow(text);
  const exchange = { size: 2, gather: () => 2, gradSums: () => {} };
  const norm = new BatchNorm1d(2);
  norm.sync = exchange;
  await expect(job.ddp(norm, { optimizer, loader })).rejects.toThrow(
    'the batch norms of the model exchange over a group that the job does not change',
  );
  await using rescued = await elastic({ rescueFolder: 'not-made' });
  const spread = rescued.zero(net.parameters(), (shard) => new SGD(shard, { lr: 0.1 }));
  await expect(rescued.ddp(net, { optimizer: spread, loader })).rejects.toThrow(
    'no rank can write all of it to rescueFolder',
  );
  const trainedNet = makeNet();
  const closed = await elastic();
  const begun = closed.ddp(net, {
    optimizer,
    loader: closed.loader(data, { globalBatch: 4, microBatch: 4 }),
  });
  const [end] = await Promise.allSettled([begun, closed.close()]);
  expect(end).toMatchObject({ status: 'rejected', reason: { code: 'ERR_ELASTIC_LEFT' } });
  const joins = job.ddp(trainedNet, { optimizer: new SGD(trainedNet.parameters(), { lr: 0.1 }), loader });
  // A second call is refused while the first one joins, and afterwards.
  await expect(job.ddp(net, { optimizer, loader })).rejects.toThrow('the job has a model already');
  const model = await joins;
  await expect(job.ddp(net, { optimizer, loader })).rejects.toThrow('the job has a model already');
  const other = job.loader(data, { batchPerRank: 4 });
  for (const options of [undefined, { epoch: 1 }, {}])
    await expect(job.steps(loader, options as never).next()).rejects.toMatchObject({
      code: 'ERR_ELASTIC_INVALID',
    });
  await expect(job.steps(other, { epochs: 1 }).next()).rejects.toThrow(
    'the loader is not the one that ddp() got',
  );
  expect(model.group).toBe(job.group);
  await expect(job.group.shrink()).rejects.toMatchObject({
    code: 'ERR_COLL_UNSUPPORTED',
    message: expect.stringContaining('read job.group or membership.group again'),
  });
});
