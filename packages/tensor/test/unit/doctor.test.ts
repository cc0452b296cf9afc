// Tests this package's part of `ringwise doctor`: its findings from the reports of the driver.
import { expect, it } from 'vitest';
import { cudaFinding, librariesFinding } from '../../src/doctor.ts';

const none = {
  compiled: true,
  kernelsVersion: '13.0',
  driver: null,
  driverVersion: null,
  devices: [],
  reason: 'no CUDA driver: tried /x',
};
const device = { name: 'H200', memoryBytes: 139 * 2 ** 30, computeCapability: '9.0', multiprocessors: 132 };

it('lists the devices', () => {
  const found = {
    ...none,
    driver: '/lib/libcuda.so.1',
    driverVersion: '13.0',
    devices: [device],
    reason: '',
  };
  expect(cudaFinding(found, true, undefined)).toEqual({
    name: 'cuda',
    state: 'ok',
    text: 'driver /lib/libcuda.so.1, CUDA 13.0; kernels of CUDA 13.0\n0: H200, 139 GiB, 9.0',
  });
});

it('names the driver that the kernels need, where it knows only an older CUDA', () => {
  const found = {
    ...none,
    driver: '/lib/libcuda.so.1',
    driverVersion: '12.8',
    devices: [device],
    reason: '',
  };
  expect(cudaFinding(found, true, undefined)).toEqual({
    name: 'cuda',
    state: 'wrong',
    text: expect.stringMatching(
      /^driver .*, CUDA 12\.8; kernels of CUDA 13\.0\n(?:.*\n)*.*cannot load kernels of a newer CUDA$/,
    ),
    fix: expect.stringContaining('Install a driver that knows CUDA 13.0 (580 or newer for CUDA 13)'),
  });
  expect(cudaFinding({ ...found, kernelsVersion: '12.9' }, true, undefined).state).toBe('ok');
});

it.each(['', '-1', ' '])(
  'says why there are none; where CUDA_VISIBLE_DEVICES is %j, devices are none',
  (visible) => {
    const note = { name: 'cuda', state: 'note', text: 'no GPUs: no CUDA driver: tried /x' };
    expect(cudaFinding(none, false, undefined)).toEqual(note);
    expect(cudaFinding(none, true, visible)).toEqual(note);
  },
);

it.each([
  [{ compiled: false }, /CUDA toolkit/],
  [{ compiled: true }, /Install the driver's libcuda/],
  [{ driver: '/lib/libcuda.so.1' }, /See nvidia-smi/],
])('with %j misses the devices that the host has', (info, fix) => {
  for (const visible of [undefined, '0', '1,-1']) {
    expect(cudaFinding({ ...none, ...info }, true, visible)).toEqual({
      name: 'cuda',
      state: 'wrong',
      text: 'there are /dev/nvidia files, but no GPU can be used: no CUDA driver: tried /x',
      fix: expect.stringMatching(fix),
    });
  }
});

it('tells of each library where it is, or every path that was tried and what computes instead', () => {
  const found = { name: 'cublasLt', path: '/lib/libcublasLt.so.13', version: '13.1', reason: '' };
  const lost = { name: 'cublasLt', path: '', version: '', reason: 'not found: /a; /b' };
  expect(librariesFinding([found])).toEqual({
    name: 'cuda libraries',
    state: 'ok',
    text: 'cublasLt 13.1: /lib/libcublasLt.so.13',
  });
  expect(librariesFinding([lost])).toMatchObject({
    state: 'note',
    text: 'cublasLt: not found: /a; /b; own kernels are used',
  });
});
