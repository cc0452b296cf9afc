// Everything that takes options refuses unknown names, and options that are not an object; option-values.test.ts tests
// values. The test finds the functions with options in the sources, so a new one cannot be forgotten.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import ts from 'typescript';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as npy from '../../../src/files/npy/index.ts';
import * as safetensors from '../../../src/files/safetensors/index.ts';
import * as t from '../../../src/index.ts';
import * as nn from '../../../src/nn/index.ts';
import * as optim from '../../../src/optim/index.ts';
import { sequenceCalls } from './sequence-options.ts';
import { structuredCalls } from './structured-options.ts';

const row = (): t.Tensor => t.tensor([1, 2, 3]);
const rows = (): t.Tensor => t.ones([2, 3]);
const planes = (): t.Tensor => t.ones([1, 2, 4, 4]);
const labels = (): t.Tensor => t.tensor([0n, 1n]);
const leaf = (): t.Tensor => t.ones([2], { requiresGrad: true });
const sgd = (): optim.SGD => new optim.SGD([leaf()], { lr: 0.1, momentum: 0.9 });
const double = (x: t.Tensor): t.Tensor => x.mul(2);

let folder: string;
let file: safetensors.SafetensorsFile;
const at = (name: string): string => join(folder, name);
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'options-'));
  await safetensors.saveSafetensors(at('x.safetensors'), { x: row() });
  file = await safetensors.openSafetensors(at('x.safetensors'));
});
afterAll(async () => {
  await file.close();
  rmSync(folder, { recursive: true, force: true });
});

type Call = (options: never) => unknown;

/** Calls each function that takes options; the other arguments are valid. */
const calls: Readonly<Record<string, Call>> = {
  ...sequenceCalls,
  ...structuredCalls,
  ...{
    arange: (o) => t.arange(0, 3, 1, o),
    linspace: (o) => t.linspace(0, 1, 3, o),
    eye: (o) => t.eye(2, 2, o),
  },
  ...{ zeros: (o) => t.zeros([2], o), ones: (o) => t.ones([2], o), full: (o) => t.full([2], 1, o) },
  ...{ zerosLike: (o) => t.zerosLike(row(), o), onesLike: (o) => t.onesLike(row(), o) },
  ...{ tensor: (o) => t.tensor([1], o), fromHost: (o) => t.fromHost(new Float32Array(1), [1], o) },
  ...{ rand: (o) => t.rand([2], o), randn: (o) => t.randn([2], o), randint: (o) => t.randint(0, 2, [2], o) },
  ...{ randperm: (o) => t.randperm(3, o), bernoulli: (o) => t.bernoulli(t.rand([2]), o) },
  ...{ empty: (o) => t.empty([2], o), emptyLike: (o) => t.emptyLike(row(), o) },
  ...{ fullLike: (o) => t.fullLike(row(), 1, o), logspace: (o) => t.logspace(0, 1, 2, o) },
  ...{ randLike: (o) => t.randLike(row(), o), randnLike: (o) => t.randnLike(row(), o) },
  ...{ randintLike: (o) => t.randintLike(row(), 0, 2, o), normal: (o) => t.normal(row(), row(), o) },
  ...{ allclose: (o) => t.allclose(row(), row(), o), isin: (o) => t.isin(row(), row(), o) },
  ...{ meshgrid: (o) => t.meshgrid([row()], o), combinations: (o) => t.combinations(row(), 2, o) },
  ...{
    addmm: (o) => t.addmm(rows(), t.ones([2, 2]), rows(), o),
    'Tensor.addmm': (o) => rows().addmm(t.ones([2, 2]), rows(), o),
    addmv: (o) => t.addmv(row(), t.ones([3, 3]), row(), o),
    'Tensor.addmv': (o) => row().addmv(t.ones([3, 3]), row(), o),
    addr: (o) => t.addr(t.ones([3, 3]), row(), row(), o),
    'Tensor.addr': (o) => t.ones([3, 3]).addr(row(), row(), o),
    baddbmm: (o) => t.baddbmm(t.ones([1, 2, 2]), t.ones([1, 2, 2]), t.ones([1, 2, 2]), o),
    'Tensor.baddbmm': (o) => t.ones([1, 2, 2]).baddbmm(t.ones([1, 2, 2]), t.ones([1, 2, 2]), o),
    addbmm: (o) => t.addbmm(t.ones([2, 2]), t.ones([1, 2, 2]), t.ones([1, 2, 2]), o),
    'Tensor.addbmm': (o) => t.ones([2, 2]).addbmm(t.ones([1, 2, 2]), t.ones([1, 2, 2]), o),
    trilIndices: (o) => t.trilIndices(2, 2, 0, o),
    triuIndices: (o) => t.triuIndices(2, 2, 0, o),
  },
  ...{ argsort: (o) => t.argsort(row(), 0, o), 'Tensor.argsort': (o) => row().argsort(0, o) },
  ...{ cov: (o) => t.cov(row(), o), 'Tensor.cov': (o) => row().cov(o), diff: (o) => t.diff(row(), 1, 0, o) },
  ...{ quantile: (o) => t.quantile(row(), 0.5, 0, o), 'Tensor.quantile': (o) => row().quantile(0.5, 0, o) },
  nanquantile: (o) => t.nanquantile(row(), 0.5, 0, o),
  'Tensor.nanquantile': (o) => row().nanquantile(0.5, 0, o),
  bincount: (o) => t.bincount(t.tensor([1, 2], { dtype: 'int64' }), o),
  gradient: (o) => t.gradient(row(), 0, o),
  histogram: (o) => t.histogram(row(), 2, o),
  'Tensor.histogram': (o) => row().histogram(2, o),
  indexReduce: (o) => t.indexReduce(row(), 0, labels(), t.ones([2]), 'amax', o),
  'Tensor.indexReduce': (o) => row().indexReduce(0, labels(), t.ones([2]), 'amax', o),
  ...{ unique: (o) => t.unique(row(), o), uniqueConsecutive: (o) => t.uniqueConsecutive(row(), o) },
  ...{ cdist: (o) => t.cdist(t.ones([2, 2]), t.ones([2, 2]), o), stdMean: (o) => t.stdMean(row(), 0, o) },
  normalize: (o) => t.normalize(t.ones([2, 2]), o),
  ...{ aminmax: (o) => t.aminmax(row(), 0, o), 'Tensor.aminmax': (o) => row().aminmax(0, o) },
  searchsorted: (o) => t.searchsorted(row(), row(), o),
  bucketize: (o) => t.bucketize(row(), row(), o),
  'Tensor.newZeros': (o) => row().newZeros([2], o),
  'Tensor.newOnes': (o) => row().newOnes([2], o),
  'Tensor.newFull': (o) => row().newFull([2], 1, o),
  'Tensor.newEmpty': (o) => row().newEmpty([2], o),
  'Tensor.allclose': (o) => row().allclose(row(), o),
  ...{ set: (o) => t.set(row(), [0], 1, o), indexPut: (o) => t.indexPut(row(), [0], 1, o) },
  indexAdd: (o) => t.indexAdd(row(), 0, labels(), t.ones([2]), o),
  scatterReduce: (o) => t.scatterReduce(row(), 0, labels(), t.ones([2]), 'sum', o),
  'Tensor.set': (o) => row().set([0], 1, o),
  'Tensor.indexPut': (o) => row().indexPut([0], 1, o),
  'Tensor.indexAdd': (o) => row().indexAdd(0, labels(), t.ones([2]), o),
  'Tensor.scatterReduce': (o) => row().scatterReduce(0, labels(), t.ones([2]), 'sum', o),
  ...{ addcmul: (o) => t.addcmul(row(), row(), row(), o), addcdiv: (o) => t.addcdiv(row(), row(), row(), o) },
  ...{
    'Tensor.addcmul': (o) => row().addcmul(row(), row(), o),
    'Tensor.addcdiv': (o) => row().addcdiv(row(), row(), o),
  },
  ...{ isclose: (o) => t.isclose(row(), row(), o), 'Tensor.isclose': (o) => row().isclose(row(), o) },
  multinomial: (o) => t.multinomial(row(), 1, o),
  grad: (o) => t.grad(leaf().sum(), [], o),
  gradCheck: (o) => t.gradCheck(double, [], o),
  customFunction: (o) => t.customFunction(o),
  autocast: (o) => t.autocast(o, () => 0),
  compile: (o) => t.compile(double, o),
  scaledDotProductAttention: (o) => t.scaledDotProductAttention(rows(), rows(), rows(), o),
  selfAttention: (o) => t.selfAttention(t.ones([2, 6]), 1, o),
  batchNorm: (o) => t.batchNorm(rows(), t.zeros([3]), t.ones([3]), o),
  conv1d: (o) => t.conv1d(t.ones([1, 2, 4]), t.ones([1, 2, 2]), null, o),
  conv2d: (o) => t.conv2d(planes(), t.ones([1, 2, 2, 2]), null, o),
  ...{ maxPool2d: (o) => t.maxPool2d(planes(), 2, o), avgPool2d: (o) => t.avgPool2d(planes(), 2, o) },
  conv3d: (o) => t.conv3d(t.ones([1, 1, 2, 2, 2]), t.ones([1, 1, 2, 2, 2]), null, o),
  convTranspose1d: (o) => t.convTranspose1d(t.ones([1, 2, 4]), t.ones([2, 1, 2]), null, o),
  convTranspose2d: (o) => t.convTranspose2d(planes(), t.ones([2, 1, 2, 2]), null, o),
  pad: (o) => t.pad(row(), [1, 1], o),
  maxPool1d: (o) => t.maxPool1d(rows(), 2, o),
  avgPool1d: (o) => t.avgPool1d(rows(), 2, o),
  maxPool2dWithIndices: (o) => t.maxPool2dWithIndices(planes(), 2, o),
  maxUnpool2d: (o) => t.maxUnpool2d(planes(), t.zeros([1, 2, 4, 4], { dtype: 'int64' }), 2, o),
  ...{ lpPool1d: (o) => t.lpPool1d(rows(), 2, 2, o), lpPool2d: (o) => t.lpPool2d(planes(), 2, 2, o) },
  ...{ im2col: (o) => t.im2col(planes(), 2, o), col2im: (o) => t.col2im(t.ones([4, 1]), 2, 2, o) },
  ...{ dropout1d: (o) => t.dropout1d(rows(), 0.5, o), dropout2d: (o) => t.dropout2d(planes(), 0.5, o) },
  ...{ dropout3d: (o) => t.dropout3d(planes(), 0.5, o), alphaDropout: (o) => t.alphaDropout(row(), 0.5, o) },
  gridSample: (o) => t.gridSample(planes(), t.zeros([1, 2, 2, 2]), o),
  groupNorm: (o) => t.groupNorm(planes(), 2, o),
  instanceNorm: (o) => t.instanceNorm(planes(), null, null, o),
  localResponseNorm: (o) => t.localResponseNorm(planes(), 2, o),
  interpolate: (o) => t.interpolate(planes(), withSize(o)),
  linear: (o) => t.linear(rows(), rows(), null, o),
  dropout: (o) => t.dropout(row(), 0.5, o),
  ...{ layerNorm: (o) => t.layerNorm(row(), [3], o), rmsNorm: (o) => t.rmsNorm(row(), [3], o) },
  addLayerNorm: (o) => t.addLayerNorm(row(), row(), [3], o),
  ...{ gelu: (o) => t.gelu(row(), o), to: (o) => t.to(row(), 'float64', o) },
  ...{ sort: (o) => t.sort(row(), 0, o), topk: (o) => t.topk(row(), 1, 0, o) },
  ...{
    variance: (o) => t.variance(row(), 0, o),
    std: (o) => t.std(row(), 0, o),
    norm: (o) => t.norm(row(), 0, o),
  },
  varMean: (o) => t.varMean(row(), 0, o),
  crossEntropy: (o) => t.crossEntropy(rows(), labels(), o),
  nllLoss: (o) => t.nllLoss(rows(), labels(), o),
  ...{ mseLoss: (o) => t.mseLoss(row(), row(), o), l1Loss: (o) => t.l1Loss(row(), row(), o) },
  ...{ huberLoss: (o) => t.huberLoss(row(), row(), o), smoothL1Loss: (o) => t.smoothL1Loss(row(), row(), o) },
  ...{
    bce: (o) => t.bce(t.ones([2]), t.ones([2]), o),
    bceWithLogits: (o) => t.bceWithLogits(row(), row(), o),
  },
  klDiv: (o) => t.klDiv(row(), row(), o),
  cosineEmbeddingLoss: (o) => t.cosineEmbeddingLoss(rows(), rows(), t.ones([2]), o),

  ...{ 'Tensor.gelu': (o) => row().gelu(o), 'Tensor.to': (o) => row().to('float64', o) },
  ...{ 'Tensor.sort': (o) => row().sort(0, o), 'Tensor.topk': (o) => row().topk(1, 0, o) },
  ...{ 'Tensor.variance': (o) => row().variance(0, o), 'Tensor.std': (o) => row().std(0, o) },
  'Tensor.norm': (o) => row().norm(0, o),
  'Tensor.backward': (o) => leaf().sum().backward(null, o),
  'Tensor.zeroGrad': (o) => leaf().zeroGrad(o),

  buffer: (o) => nn.buffer(row(), o),
  'new Linear': (o) => new nn.Linear(2, 2, o),
  ...{ 'new Conv1d': (o) => new nn.Conv1d(2, 2, 2, o), 'new Conv2d': (o) => new nn.Conv2d(2, 2, 2, o) },
  ...{
    'new GroupNorm': (o) => new nn.GroupNorm(2, 2, o),
    'new Upsample': (o) => new nn.Upsample(withSize(o)),
  },
  ...{ 'new MaxPool1d': (o) => new nn.MaxPool1d(2, o), 'new AvgPool1d': (o) => new nn.AvgPool1d(2, o) },
  ...{ 'new LPPool1d': (o) => new nn.LPPool1d(2, 2, o), 'new LPPool2d': (o) => new nn.LPPool2d(2, 2, o) },
  ...{ 'new Unfold': (o) => new nn.Unfold(2, o), 'new Fold': (o) => new nn.Fold(4, 2, o) },
  'new MaxUnpool2d': (o) => new nn.MaxUnpool2d(2, o),
  'new InstanceNorm1d': (o) => new nn.InstanceNorm1d(2, o),
  'new InstanceNorm2d': (o) => new nn.InstanceNorm2d(2, o),
  'new InstanceNorm3d': (o) => new nn.InstanceNorm3d(2, o),
  'new LocalResponseNorm': (o) => new nn.LocalResponseNorm(2, o),
  'new UpsamplingNearest2d': (o) => new nn.UpsamplingNearest2d(withSize(o)),
  'new UpsamplingBilinear2d': (o) => new nn.UpsamplingBilinear2d(withSize(o)),
  'new Conv3d': (o) => new nn.Conv3d(2, 2, 2, o),
  'new ConvTranspose1d': (o) => new nn.ConvTranspose1d(2, 2, 2, o),
  'new ConvTranspose2d': (o) => new nn.ConvTranspose2d(2, 2, 2, o),
  'new Embedding': (o) => new nn.Embedding(2, 2, o),
  ...{ 'new LayerNorm': (o) => new nn.LayerNorm(2, o), 'new RMSNorm': (o) => new nn.RMSNorm(2, o) },
  ...{ 'new BatchNorm': (o) => new nn.BatchNorm1d(2, o), 'new GELU': (o) => new nn.GELU(o) },
  ...{ 'new MaxPool2d': (o) => new nn.MaxPool2d(2, o), 'new AvgPool2d': (o) => new nn.AvgPool2d(2, o) },
  'new MultiHeadAttention': (o) => new nn.MultiHeadAttention(4, 2, o),
  'MultiHeadAttention.forward': (o) => new nn.MultiHeadAttention(3, 1).forward(rows(), undefined, o),
  'new TransformerBlock': (o) => new nn.TransformerBlock(4, 2, o),
  ...{ 'new CrossEntropyLoss': (o) => new nn.CrossEntropyLoss(o), 'new NLLLoss': (o) => new nn.NLLLoss(o) },
  ...{ 'new BCELoss': (o) => new nn.BCELoss(o), 'new BCEWithLogitsLoss': (o) => new nn.BCEWithLogitsLoss(o) },
  ...{ 'new MSELoss': (o) => new nn.MSELoss(o), 'new L1Loss': (o) => new nn.L1Loss(o) },
  ...{ 'new SmoothL1Loss': (o) => new nn.SmoothL1Loss(o), 'new HuberLoss': (o) => new nn.HuberLoss(o) },
  ...{
    'new KLDivLoss': (o) => new nn.KLDivLoss(o),
    'new CosineSimilarity': (o) => new nn.CosineSimilarity(o),
  },
  'new CosineEmbeddingLoss': (o) => new nn.CosineEmbeddingLoss(o),
  'Module.zeroGrad': (o) => new nn.Linear(1, 1).zeroGrad(o),
  'Module.loadStateDict': (o) => new nn.ReLU().loadStateDict({}, o),
  ...{ uniform_: (o) => nn.init.uniform_(row(), 0, 1, o), normal_: (o) => nn.init.normal_(row(), 0, 1, o) },
  truncNormal_: (o) => nn.init.truncNormal_(row(), o),
  ...{
    xavierUniform_: (o) => nn.init.xavierUniform_(rows(), o),
    xavierNormal_: (o) => nn.init.xavierNormal_(rows(), o),
  },
  kaimingUniform_: (o) => nn.init.kaimingUniform_(rows(), o),
  kaimingNormal_: (o) => nn.init.kaimingNormal_(rows(), o),
  orthogonal_: (o) => nn.init.orthogonal_(rows(), o),

  ...{ 'new SGD': (o) => new optim.SGD([leaf()], o), 'new Adam': (o) => new optim.Adam([leaf()], o) },
  ...{ 'new AdamW': (o) => new optim.AdamW([leaf()], o), 'new Lion': (o) => new optim.Lion([leaf()], o) },
  'new RMSprop': (o) => new optim.RMSprop([leaf()], o),
  ...{
    'new ASGD': (o) => new optim.ASGD([leaf()], o),
    'new Adadelta': (o) => new optim.Adadelta([leaf()], o),
    'new Adafactor': (o) => new optim.Adafactor([leaf()], o),
    'new Adagrad': (o) => new optim.Adagrad([leaf()], o),
    'new Adamax': (o) => new optim.Adamax([leaf()], o),
    'new LBFGS': (o) => new optim.LBFGS([leaf()], o),
    'new Muon': (o) => new optim.Muon([t.ones([2, 2], { requiresGrad: true })], o),
    'new NAdam': (o) => new optim.NAdam([leaf()], o),
    'new RAdam': (o) => new optim.RAdam([leaf()], o),
    'new Rprop': (o) => new optim.Rprop([leaf()], o),
  },
  'new Optimizer': (o) => new optim.SGD([leaf()], o),
  'Optimizer.zeroGrad': (o) => sgd().zeroGrad(o),
  'Optimizer.addParamGroup': (o) => sgd().addParamGroup({ params: [leaf()], ...checkedSpread(o) }),
  'new AveragedModel': (o) => new optim.AveragedModel(new nn.Linear(1, 1), new nn.Linear(1, 1), o),
  updateBn: (o) => optim.updateBn([], new nn.Linear(1, 1), o),
  ...{
    'linalg.cholesky': (o) => t.linalg.cholesky(t.eye(2), o),
    'linalg.solve': (o) => t.linalg.solve(t.eye(2), t.eye(2), o),
    'linalg.solveTriangular': (o) => t.linalg.solveTriangular(t.eye(2), t.eye(2), o),
    'linalg.qr': (o) => t.linalg.qr(t.eye(2), o),
    'linalg.eigh': (o) => t.linalg.eigh(t.eye(2), o),
    'linalg.eigvalsh': (o) => t.linalg.eigvalsh(t.eye(2), o),
    'linalg.svd': (o) => t.linalg.svd(t.eye(2), o),
    'linalg.pinv': (o) => t.linalg.pinv(t.eye(2), o),
    'linalg.matrixRank': (o) => t.linalg.matrixRank(t.eye(2), o),
    'linalg.lstsq': (o) => t.linalg.lstsq(t.eye(2), t.eye(2), o),
    'linalg.vectorNorm': (o) => t.linalg.vectorNorm(row(), null, o),
    'linalg.norm': (o) => t.linalg.norm(row(), null, o),
    'linalg.matrixNorm': (o) => t.linalg.matrixNorm(t.eye(2), undefined, o),
  },
  clipGradNorm: (o) => optim.clipGradNorm([leaf()], 1, o),
  'new GradScaler': (o) => new optim.GradScaler(o),
  'new StepLR': (o) => new optim.StepLR(sgd(), o),
  'new MultiStepLR': (o) => new optim.MultiStepLR(sgd(), o),
  'new ExponentialLR': (o) => new optim.ExponentialLR(sgd(), o),
  'new LinearLR': (o) => new optim.LinearLR(sgd(), o),
  'new CosineAnnealingLR': (o) => new optim.CosineAnnealingLR(sgd(), o),
  'new WarmupCosineLR': (o) => new optim.WarmupCosineLR(sgd(), o),
  'new OneCycleLR': (o) => new optim.OneCycleLR(sgd(), o),
  ...{
    'new ConstantLR': (o) => new optim.ConstantLR(sgd(), o),
    'new CosineAnnealingWarmRestarts': (o) => new optim.CosineAnnealingWarmRestarts(sgd(), o),
    'new CyclicLR': (o) => new optim.CyclicLR(sgd(), o),
    'new PolynomialLR': (o) => new optim.PolynomialLR(sgd(), o),
    'new ReduceLROnPlateau': (o) => new optim.ReduceLROnPlateau(sgd(), o),
    'new SWALR': (o) => new optim.SWALR(sgd(), o),
  },
  'new SequentialLR': (o) => new optim.SequentialLR(sgd(), o),

  saveNpz: (o) => npy.saveNpz(at('x.npz'), { x: row() }, o),
  loadNpz: (o) => npy.loadNpz(at('x.npz'), o),
  loadSafetensors: (o) => safetensors.loadSafetensors(at('x.safetensors'), o),
  'SafetensorsFile.read': (o) => file.read('x', o),
  'SafetensorsFile.readSlice': (o) => file.readSlice('x', 0, 1, o),
  saveShardedSafetensors: (o) => safetensors.saveShardedSafetensors(folder, {}, o),
  loadShardedSafetensors: (o) => safetensors.loadShardedSafetensors(at('x.json'), [], o),
};

/** Adds a size to options that are an object; others stay as they are. */
function withSize(options: never): never {
  const isPlain = typeof options === 'object' && options !== null && !Array.isArray(options);
  const isTensor = (options as unknown) instanceof t.Tensor;
  return isPlain && !isTensor ? ({ size: 2, ...(options as object) } as never) : options;
}

/** Wraps options that are not an object, because spread into another object they would vanish. */
function checkedSpread(options: object): object {
  return typeof options === 'object' && options !== null && !Array.isArray(options) ? options : { options };
}

/** Public names, by names in the sources, of classes that have another name there or are exported only as a type. */
const publicNames: Readonly<Record<string, string>> = {
  GradTensor: 'Tensor',
  SafetensorsFile: 'SafetensorsFile',
};
const methodInterfaces = new Set([
  'TensorMethods',
  'ArrayMethods',
  'FunctionMethods',
  'ProductMethods',
  'StatisticMethods',
]);
const exported = new Set([
  ...Object.keys({ ...t, ...nn, ...nn.init, ...npy, ...optim, ...safetensors }),
  ...Object.keys(t.linalg).map((name) => `linalg.${name}`),
]);

const isOptions = (parameter: ts.ParameterDeclaration): boolean =>
  parameter.name.getText() === 'options' || /Options?(<.*>)?$/.test(parameter.type?.getText() ?? '');

/** Returns the public functions, constructors and methods of a source file that take options. */
function takersIn(source: ts.SourceFile): string[] {
  const takers: string[] = [];
  const add = (name: string, { parameters }: ts.SignatureDeclaration): void => {
    if (parameters.some(isOptions)) takers.push(name);
  };
  for (const statement of source.statements) {
    const isExported =
      ts.canHaveModifiers(statement) &&
      ts.getModifiers(statement)?.some(({ kind }) => kind === ts.SyntaxKind.ExportKeyword);
    if (!isExported) continue;
    const prefix = source.fileName.startsWith('linalg') ? 'linalg.' : '';
    if (ts.isFunctionDeclaration(statement) && exported.has(prefix + statement.name!.text))
      add(prefix + statement.name!.text, statement);
    if (ts.isVariableStatement(statement)) {
      for (const { name, initializer } of statement.declarationList.declarations) {
        if (initializer && ts.isArrowFunction(initializer) && exported.has(name.getText()))
          add(name.getText(), initializer);
      }
    }
    // These interfaces declare the methods of Tensor.
    if (ts.isInterfaceDeclaration(statement) && methodInterfaces.has(statement.name.text)) {
      for (const member of statement.members)
        if (ts.isMethodSignature(member)) add(`Tensor.${member.name.getText()}`, member);
    }
    if (ts.isClassDeclaration(statement)) {
      const name = publicNames[statement.name!.text] ?? statement.name!.text;
      if (!exported.has(name) && !Object.hasOwn(publicNames, statement.name!.text)) continue;
      for (const member of statement.members) {
        if (ts.isConstructorDeclaration(member)) add(`new ${name}`, member);
        const isHidden =
          ts.canHaveModifiers(member) &&
          ts.getModifiers(member)?.some(({ kind }) => kind === ts.SyntaxKind.ProtectedKeyword);
        if (ts.isMethodDeclaration(member) && ts.isIdentifier(member.name) && !isHidden)
          add(`${name}.${member.name.text}`, member);
      }
    }
  }
  return takers;
}

async function failureOf(
  call: () => unknown,
): Promise<{ readonly code?: string; readonly message?: string }> {
  try {
    await call();
  } catch (error) {
    return error as Error;
  }
  return {};
}

test('everything that takes options is in the table', () => {
  const root = new URL('../../../src/', import.meta.url);
  const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) =>
    name.endsWith('.ts'),
  );
  const takers = names.flatMap((name) =>
    takersIn(
      ts.createSourceFile(name, readFileSync(new URL(name, root), 'utf8'), ts.ScriptTarget.Latest, true),
    ),
  );
  expect(Object.keys(calls).toSorted()).toEqual([...new Set(takers)].toSorted());
});

describe('refuses', () => {
  test.each(Object.keys(calls))('unknown options and what are no options: %s', async (name) => {
    const unknown = await failureOf(() => calls[name]!({ __nope: 1 } as never));
    expect(unknown).toMatchObject({
      code: 'ERR_TENSOR_ARGUMENT',
      message: expect.stringContaining("unknown option '__nope'; "),
    });
    for (const wrong of [5, 'x', true, [], null]) {
      const { code, message } = await failureOf(() => calls[name]!(wrong as never));
      expect([name, wrong, code, message]).toEqual([name, wrong, 'ERR_TENSOR_ARGUMENT', expect.any(String)]);
    }
  });
});
