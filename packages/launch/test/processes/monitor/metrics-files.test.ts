import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { crc32c, maskedCrc32c } from '../../../src/monitor/files/crc32c.ts';
import { jsonLinesSink } from '../../../src/monitor/files/json-lines.ts';
import { openSinks } from '../../../src/monitor/files/sinks.ts';
import { tensorboardSink } from '../../../src/monitor/files/tensorboard.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ringwise-metrics-'));
});

afterEach(() => {
  rmSync(folder, { recursive: true });
});

const report = (step: number, values: Record<string, number>, rank = 0) => ({
  timeMs: 1_700_000_000_500,
  rank,
  restarts: 1,
  step,
  values,
});

/** Reads a TensorBoard event file: time, version, step, and the tag and value of a scalar for each record. */
function readEvents(path: string) {
  const bytes = readFileSync(path);
  const events: { time: number; version: string; step: number; tag: string; value: number }[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = Number(bytes.readBigUInt64LE(at));
    expect(bytes.readUInt32LE(at + 8)).toBe(maskedCrc32c(bytes.subarray(at, at + 8)));
    const data = bytes.subarray(at + 12, at + 12 + length);
    expect(bytes.readUInt32LE(at + 12 + length)).toBe(maskedCrc32c(data));
    const fields = readFields(data);
    const value = fields.get(5) ? readFields(readFields(fields.get(5)!).get(1)!) : null;
    events.push({
      time: fields.get(1)!.readDoubleLE(),
      version: fields.get(3)?.toString() ?? '',
      step: readVarint(fields.get(2) ?? Buffer.of(0), 0)[0],
      tag: value?.get(1)?.toString() ?? '',
      value: value?.get(2)?.readFloatLE() ?? Number.NaN,
    });
    at += length + 16;
  }
  return events;
}

/** Parses a protobuf message: returns the bytes of each field by its number. */
function readFields(data: Buffer): Map<number, Buffer> {
  const fields = new Map<number, Buffer>();
  for (let at = 0; at < data.length; ) {
    const [tag, start] = readVarint(data, at);
    const kind = tag & 7;
    let from = start;
    let length = { 1: 8, 5: 4 }[kind] ?? 0;
    if (kind === 0) length = readVarint(data, from)[1] - from;
    if (kind === 2) [length, from] = readVarint(data, from);
    fields.set(tag >> 3, data.subarray(from, from + length));
    at = from + length;
  }
  return fields;
}

function readVarint(data: Buffer, at: number): [number, number] {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = data[at++]!;
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return [value, at];
  }
}

const onlyFile = (path: string) => {
  const names = readdirSync(path);
  expect(names).toHaveLength(1);
  return join(path, names[0]!);
};

describe('crc32c', () => {
  it('has the published values', () => {
    expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283);
    expect(maskedCrc32c(Buffer.from('123456789'))).toBe(0xc78ab0e5);
  });
});

describe('the file of JSON lines', () => {
  it('gets one line for each report, and null for what is no number', () => {
    const path = join(folder, 'new', 'metrics.jsonl');
    for (const step of [3, 4]) {
      const sink = jsonLinesSink(path);
      sink.add(report(step, { loss: step === 3 ? 0.5 : Number.NaN }));
      sink.close();
    }
    expect(readFileSync(path, 'utf8')).toBe(
      '{"time":1700000000.5,"rank":0,"restarts":1,"step":3,"loss":0.5}\n' +
        '{"time":1700000000.5,"rank":0,"restarts":1,"step":4,"loss":null}\n',
    );
  });
});

it('keeps the columns of a report whose numbers have their names', () => {
  const path = join(folder, 'metrics.jsonl');
  const sink = jsonLinesSink(path);
  sink.add(report(3, { rank: 7, time: 8, loss: 0.5 }));
  sink.close();
  expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
    ...{ time: 1_700_000_000.5, rank: 0, restarts: 1, step: 3 },
    ...{ reported_rank: 7, reported_time: 8, loss: 0.5 },
  });
});

describe("TensorBoard's event files", () => {
  it('hold a version, then one checked record for each number, in a folder per rank', () => {
    const sink = tensorboardSink(folder);
    sink.add(report(0, { loss: 2, lr: 0.5 }));
    sink.add(report(300, { loss: 1 }));
    sink.add(report(7, { loss: 3 }, 11));
    sink.close();
    expect(readdirSync(folder).sort()).toEqual(['rank0', 'rank11']);
    const events = readEvents(onlyFile(join(folder, 'rank0')));
    expect(events[0]).toMatchObject({ version: 'brain.Event:2', time: 1_700_000_000.5 });
    expect(events.slice(1).map(({ step, tag, value }) => [step, tag, value])).toEqual([
      [0, 'loss', 2],
      [0, 'lr', 0.5],
      [300, 'loss', 1],
    ]);
    expect(readEvents(onlyFile(join(folder, 'rank11')))[1]).toMatchObject({ step: 7, tag: 'loss', value: 3 });
  });

  const python = [process.env.PYTHON_EXEC ?? '', 'python3'].find(
    (name) => name && spawnSync(name, ['-c', 'import tensorboard']).status === 0,
  );

  it.skipIf(!python)('are read by tensorboard', () => {
    const sink = tensorboardSink(folder);
    for (let step = 0; step < 100; step++)
      sink.add(report(step, { loss: 1 / (step + 1), 'eval/accuracy': step }));
    sink.close();
    const program = `import sys, json
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1]); events.Reload()
print(json.dumps({tag: [[e.step, e.value, e.wall_time] for e in events.Scalars(tag)] for tag in events.Tags()['scalars']}))`;
    const { stdout, stderr } = spawnSync(python!, ['-c', program, join(folder, 'rank0')], {
      encoding: 'utf8',
    });
    expect(stdout, stderr).not.toBe('');
    const read = JSON.parse(stdout) as Record<string, [number, number, number][]>;
    expect(Object.keys(read).sort()).toEqual(['eval/accuracy', 'loss']);
    expect(read.loss).toHaveLength(100);
    expect(read['eval/accuracy']![99]).toEqual([99, 99, 1_700_000_000.5]);
    expect(read.loss![99]![1]).toBeCloseTo(0.01, 6);
  });
});

describe('openSinks', () => {
  it('refuses a path where it cannot write, naming the flag', () => {
    const options = { metricsFile: null, tensorboardDir: null };
    const open = (changed: object) => () => openSinks({ ...options, ...changed }, () => {});
    const expected = expect.objectContaining({ code: 'ERR_LAUNCH_ARGUMENT' });
    expect(open({ metricsFile: folder })).toThrow(expected);
    expect(open({ metricsFile: folder })).toThrow(
      'ringwise run: --metrics expects a path where it may write',
    );
    expect(open({ tensorboardDir: '/dev/null/x' })).toThrow('--tensorboard');
  });

  it.skipIf(!readdirSync('/dev').includes('full'))(
    'gives up a file that is full, once and with a sentence',
    () => {
      const said: string[] = [];
      const sinks = openSinks({ metricsFile: '/dev/full', tensorboardDir: folder }, (text) =>
        said.push(text),
      );
      for (let step = 0; step < 3; step++) {
        sinks.add(report(step, { loss: 1 }));
        sinks.flush();
      }
      sinks.close();
      expect(said).toEqual([expect.stringMatching(/^--metrics: ENOSPC.*; no more is written there\.$/)]);
      expect(readEvents(onlyFile(join(folder, 'rank0')))).toHaveLength(4);
    },
  );
});
