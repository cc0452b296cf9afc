import { expect, it } from 'vitest';
import { nameWithoutProc } from '../../../src/backends/host-address.ts';

const address = (mac: string, internal = false) => ({
  ...{ address: '10.0.0.1', netmask: '255.0.0.0', cidr: '10.0.0.1/8' },
  ...{ family: 'IPv4' as const, mac, internal },
});

it('hosts of one name differ by their hardware addresses, in whatever order they are listed', () => {
  const [a, b] = ['02:00:00:00:00:01', '02:00:00:00:00:02'];
  const loopback = [address('00:00:00:00:00:00', true)];
  const first = nameWithoutProc('MacBook-Pro.local', {
    lo0: loopback,
    en0: [address(a), address(a)],
    en1: [address(b)],
  });
  expect(first).toBe(`MacBook-Pro.local ${a} ${b}`);
  expect(nameWithoutProc('MacBook-Pro.local', { en1: [address(b)], en0: [address(a)] })).toBe(first);
  expect(nameWithoutProc('MacBook-Pro.local', { en0: [address(b)] })).not.toBe(first);
});
