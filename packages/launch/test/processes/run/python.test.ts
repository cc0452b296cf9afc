// Runs Python ranks: with a minimal client of the store's protocol, and with torch if the interpreter has it. The
// interpreter is RINGWISE_PYTHON, or else python3.

import { spawnSync } from 'node:child_process';
import { freePort } from '@ringwise/testing';
import { describe, expect, it } from 'vitest';
import { finished, ringwise, script } from '../../support/command.ts';

const python = process.env.RINGWISE_PYTHON || 'python3';
const hasTorch = spawnSync(python, ['-c', 'import torch.distributed']).status === 0;
const env = { PYTHON_EXEC: python };

/** Python client that sends what torch's store client sends: the validation, a ping, then store requests. */
const client = String.raw`
import os, socket, struct, sys

def number(value):
    return struct.pack("<q", value)

def text(value):
    return number(len(value)) + value.encode()

class Store:
    def __init__(self):
        address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
        self.socket = socket.create_connection(address)
        self.socket.sendall(b"\x00\xce\xf7\x85\x3c" + b"\x0d" + b"ping")
        answer = self.take(4)
        if answer != b"ping":
            print("turned away", answer[:4], flush=True)
            sys.exit(5)
    def take(self, count):
        taken = b""
        while len(taken) < count:
            part = self.socket.recv(count - len(taken))
            if not part:
                break
            taken += part
        return taken
    def add(self, key, amount):
        self.socket.sendall(b"\x04" + text(key) + number(amount))
        return struct.unpack("<q", self.take(8))[0]
    def wait(self, key):
        self.socket.sendall(b"\x06" + number(1) + text(key))
        assert self.take(1) == b"\x00"
    def set(self, key, value):
        self.socket.sendall(b"\x01" + text(key) + text(value))
`;

const meets = `${client}
store = Store()
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
if store.add("arrived", 1) == size:
    store.set("all", "here")
store.wait("all")
print("rank", rank, "met", store.add("arrived", 0), repr(os.environ["RINGWISE_SECRET"]), flush=True)
`;

describe('a Python script on one host', () => {
  it.each([
    ['', []],
    [', whatever name the host was given', ['--master-addr', '0.0.0.0']],
  ])('meets in a store that asks for no secret%s', async (_, flags) => {
    const command = ['run', '--nproc-per-node', '2', ...flags, script('meets.py', meets)];
    const { exitCode, stdout, stderr } = await finished(command, { ...env, RINGWISE_SECRET: 'unused' });
    expect(stderr).toBe('');
    expect(stdout.split('\n').sort()).toEqual(['', "[0] rank 0 met 2 ''", "[1] rank 1 met 2 ''"]);
    expect(exitCode).toBe(0);
  });

  it('does so by --no-python, too', async () => {
    const command = ['run', '--no-python', '--nproc-per-node', '2', python, script('meets.py', meets)];
    const { exitCode, stdout } = await finished(command);
    expect([exitCode, stdout.match(/met 2/g)?.length]).toEqual([0, 2]);
  });

  it('has a new store after each restart', async () => {
    const again = `${meets}\nsys.exit(3 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)\n`;
    const command = ['run', '--nproc-per-node', '2', '--max-restarts', '1', script('again.py', again)];
    const { exitCode, stdout } = await finished(command, env);
    expect([exitCode, stdout.match(/met 2/g)?.length]).toEqual([0, 4]);
  });

  it('keeps its port over restarts, where one was given', async () => {
    const again = `${meets}\nprint("port", os.environ["MASTER_PORT"])
sys.exit(3 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)\n`;
    const port = await freePort();
    const flags = ['--max-restarts', '1', '--master-port', `${port}`];
    const { exitCode, stdout } = await finished(['run', ...flags, script('again.py', again)], env);
    expect([exitCode, stdout.match(new RegExp(`port ${port}`, 'g'))?.length]).toEqual([0, 2]);
  });
});

describe('a client of the store without the secret', () => {
  it('is turned away, and the launcher says once what to do', async () => {
    const shell = script('rank.sh', `"$PYTHON_EXEC" "$1"`);
    const command = ['run', '--no-python', '--nproc-per-node', '3', '/bin/sh', shell, script('a.py', meets)];
    const refused = await finished(command, env);
    expect(refused.exitCode).toBe(5);
    expect(refused.stdout).toContain('turned away');
    const sentence =
      /ringwise: a client from 127\.0\.0\.1 was turned away .* with an empty RINGWISE_SECRET=/g;
    expect(refused.stderr.match(sentence)).toHaveLength(1);
    const { exitCode, stdout } = await finished(command, { ...env, RINGWISE_SECRET: '' });
    expect([exitCode, stdout.match(/met 3/g)?.length]).toEqual([0, 3]);
  });

  it('on several hosts is told what PyTorch needs', async () => {
    const port = await freePort();
    const file = script('meets.py', meets);
    const launchers = [0, 1].map((nodeRank) => {
      const where = ['--nnodes', '2', '--node-rank', `${nodeRank}`, '--master-port', `${port}`];
      return ringwise(['run', ...where, file], { ...env, RINGWISE_SECRET: 'shared by both' });
    });
    expect(await Promise.all(launchers.map(({ exitCode }) => exitCode))).toEqual([5, 5]);
    expect(launchers[0]!.out.stderr).toMatch(
      /a client from 127\.0\.0\.1 was turned away .* set TORCHELASTIC_USE_AGENT_STORE=False and MASTER_PORT to a free port/,
    );
  });
});

describe.skipIf(!hasTorch)(`torch (where ${python} has it)`, () => {
  const trains = `
import os, sys
import torch, torch.distributed as dist
dist.init_process_group("gloo")
x = torch.full((4,), float(dist.get_rank() + 1))
dist.all_reduce(x)
print("sum", x.tolist(), "restart", os.environ["TORCHELASTIC_RESTART_COUNT"], flush=True)
dist.barrier()
dist.destroy_process_group()
`;

  it('runs a script unchanged, with gloo, also after a restart', async () => {
    const fails = `${trains}\nsys.exit(3 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "0" else 0)\n`;
    const command = ['run', '--nproc-per-node', '2', '--max-restarts', '1', script('train.py', fails)];
    const { exitCode, stdout } = await finished(command, env);
    expect([exitCode, stdout.match(/sum \[3\.0, 3\.0, 3\.0, 3\.0\] restart [01]/g)?.length]).toEqual([0, 4]);
  });

  it('runs on several hosts with the variables that the launcher names', async () => {
    const [port, torchPort] = [await freePort(), await freePort()];
    const variables = `
import os
os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"
os.environ["MASTER_PORT"] = "${torchPort}"
`;
    const file = script('train.py', variables + trains);
    const launchers = [0, 1].map((nodeRank) => {
      const where = ['--nnodes', '2', '--node-rank', `${nodeRank}`, '--master-port', `${port}`];
      return ringwise(['run', ...where, file], { ...env, RINGWISE_SECRET: 'shared by both' });
    });
    expect(await Promise.all(launchers.map(({ exitCode }) => exitCode))).toEqual([0, 0]);
    for (const { out } of launchers) expect(out.stdout).toContain('sum [3.0, 3.0, 3.0, 3.0]');
  });
});
