// Runs the binaries for Linux arm64 in qemu.
import { arm64Node, whyNoArm64 } from '../../../cross/emulators/arm64.mjs';
import { testPlatform } from '../../support/emulated.ts';

testPlatform({
  name: 'Linux arm64',
  target: 'linux-arm64',
  arch: 'arm64',
  doctor: /ok +node +20\.20\.2 on linux-arm64, glibc/,
  skipped: whyNoArm64(),
  nodeIn: arm64Node,
});
