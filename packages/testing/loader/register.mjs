// For `node --import`: a rank can import TypeScript. Node.js 22.18 and newer can by themselves. The usual loaders take
// 0.2 s to start and compile anew in each process, which is more than most ranks of a test do.
import { register } from 'node:module';

if (!process.features.typescript) register('./hooks.mjs', import.meta.url);
