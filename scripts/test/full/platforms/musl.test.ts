// Runs the binaries for musl on x64: with this Node if it is one for musl, else with one that is.
import { muslNode, whyNoMusl } from '../../../cross/emulators/musl.mjs';
import { testPlatform } from '../../support/emulated.ts';

testPlatform({
  name: 'Linux with musl',
  target: 'linuxmusl-x64',
  arch: 'x64',
  doctor: /ok +node +\d+\.\d+\.\d+ on linux-x64, no glibc/,
  skipped: whyNoMusl(),
  nodeIn: muslNode,
});
