// The names of PyTorch 2.13 that docs/tensor.md answers for: its functions, methods, layers, optimisers and schedules,
// without aliases, internals, and what belongs to another backend. names.test.ts looks for each in the package.

/** Functions of torch and torch.nn.functional, and methods of tensors. */
export const functions = (
  'abs acos acosh adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d ' +
  'adaptive_max_pool2d adaptive_max_pool3d add addbmm addcdiv addcmul addmm addmv affine_grid ' +
  'affine_grid_generator all allclose alpha_dropout amax amin aminmax angle any arange argmax argmin argsort ' +
  'argwhere as_tensor asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d avg_pool1d avg_pool2d ' +
  'avg_pool3d baddbmm batch_norm bernoulli bilinear binary_cross_entropy binary_cross_entropy_with_logits ' +
  'bincount binomial bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor ' +
  'block_diag bmm broadcast_shapes broadcast_tensors broadcast_to bucketize cartesian_prod cat cdist ceil celu ' +
  'channel_shuffle chunk clamp clone column_stack combinations complex conj conv1d conv2d conv3d ' +
  'conv_transpose1d conv_transpose2d conv_transpose3d copysign corrcoef cos cosh cosine_embedding_loss ' +
  'cosine_similarity count_nonzero cov cross cross_entropy ctc_loss cummax cummin cumprod cumsum ' +
  'cumulative_trapezoid deg2rad detach diag diag_embed diagflat diagonal diagonal_scatter diff digamma dist div ' +
  'dot dropout dropout1d dropout2d dropout3d dsplit dstack einsum elu embedding embedding_bag empty empty_like ' +
  'eq equal erf erfc erfinv exp exp2 expand expand_as expm1 eye fill flatten flip fliplr flipud float_power ' +
  'floor floor_divide fmax fmin fmod fold frac frexp from_numpy full full_like gather gaussian_nll_loss gcd ge ' +
  'gelu glu gradient grid_sample group_norm gt gumbel_softmax hardshrink hardsigmoid hardswish hardtanh ' +
  'heaviside hinge_embedding_loss histc histogram hsplit hstack huber_loss hypot i0 igamma igammac imag ' +
  'index_add index_copy index_fill index_put index_reduce index_select inner instance_norm interpolate ' +
  'is_complex is_conj is_floating_point is_tensor isclose isin isinf isnan isneginf isposinf isreal istft ' +
  'kl_div kron kthvalue l1_loss layer_norm lcm ldexp le leaky_relu lerp lgamma linear linear_cross_entropy ' +
  'linspace local_response_norm log log10 log1p log2 log_softmax logaddexp logaddexp2 logcumsumexp logical_and ' +
  'logical_not logical_or logical_xor logit logsigmoid logspace logsumexp lp_pool1d lp_pool2d lp_pool3d lt ' +
  'margin_ranking_loss masked_fill masked_scatter masked_select matmul max max_pool1d max_pool2d max_pool3d ' +
  'max_unpool1d max_unpool2d max_unpool3d maximum mean median meshgrid min minimum mish mm mode movedim ' +
  'mse_loss msort mul multi_margin_loss multilabel_margin_loss multilabel_soft_margin_loss multinomial mv ' +
  'mvlgamma nan_to_num nanmean nanmedian nanquantile nansum narrow ne neg new_empty new_full new_ones ' +
  'new_tensor new_zeros nextafter nll_loss nonzero norm normal normalize numel one_hot ones ones_like outer pad ' +
  'pairwise_distance pdist permute pixel_shuffle pixel_unshuffle poisson poisson_nll_loss polar polygamma ' +
  'positive pow prelu prod put quantile rad2deg rand rand_like randint randint_like randn randn_like randperm ' +
  'ravel real reciprocal relu relu6 remainder renorm repeat repeat_interleave reshape reshape_as rms_norm roll ' +
  'rot90 round rrelu rsqrt rsub scaled_dot_product_attention scatter scatter_ scatter_add scatter_reduce ' +
  'searchsorted select select_scatter selu sgn sigmoid sign signbit silu sin sinc sinh slice_scatter ' +
  'smooth_l1_loss soft_margin_loss softmax softmin softplus softshrink softsign sort split sqrt square squeeze ' +
  'stack std std_mean stft sub sum sum_to_size t take take_along_dim tan tanh tanhshrink tensor tensor_split ' +
  'tensordot threshold tile topk trace transpose trapezoid tril tril_indices triplet_margin_loss ' +
  'triplet_margin_with_distance_loss triu triu_indices trunc unbind unflatten unfold unique unique_consecutive ' +
  'unsqueeze vander var var_mean vdot view view_as vsplit vstack where xlogy zeros zeros_like'
).split(' ');

/** Functions of torch.linalg. */
export const linearAlgebra = (
  'linalg.cholesky linalg.cond linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh ' +
  'linalg.householder_product linalg.inv linalg.ldl_factor linalg.ldl_solve linalg.lstsq linalg.lu ' +
  'linalg.lu_factor linalg.lu_solve linalg.matrix_exp linalg.matrix_norm linalg.matrix_power linalg.matrix_rank ' +
  'linalg.multi_dot linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.solve_triangular ' +
  'linalg.svd linalg.svdvals linalg.tensorinv linalg.tensorsolve linalg.vecdot linalg.vector_norm'
).split(' ');

export const modules = (
  'AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveLogSoftmaxWithLoss AdaptiveMaxPool1d ' +
  'AdaptiveMaxPool2d AdaptiveMaxPool3d AlphaDropout AvgPool1d AvgPool2d AvgPool3d BCELoss BCEWithLogitsLoss ' +
  'BatchNorm1d BatchNorm2d BatchNorm3d Bilinear CELU CTCLoss ChannelShuffle CircularPad1d CircularPad2d ' +
  'CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ' +
  'ConvTranspose3d CosineEmbeddingLoss CosineSimilarity CrossEntropyLoss Dropout Dropout1d Dropout2d Dropout3d ' +
  'ELU Embedding EmbeddingBag FeatureAlphaDropout Flatten Fold GELU GLU GRU GRUCell GaussianNLLLoss GroupNorm ' +
  'Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity InstanceNorm1d ' +
  'InstanceNorm2d InstanceNorm3d KLDivLoss L1Loss LPPool1d LPPool2d LPPool3d LSTM LSTMCell LayerNorm LeakyReLU ' +
  'Linear LinearCrossEntropyLoss LocalResponseNorm LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d ' +
  'MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Mish ModuleDict ModuleList MultiLabelMarginLoss ' +
  'MultiLabelSoftMarginLoss MultiMarginLoss MultiheadAttention NLLLoss PReLU PairwiseDistance ParameterDict ' +
  'ParameterList PixelShuffle PixelUnshuffle PoissonNLLLoss RMSNorm RNN RNNCell RReLU ReLU ReLU6 ' +
  'ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU ' +
  'Sequential SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin Softplus Softshrink Softsign ' +
  'SyncBatchNorm Tanh Tanhshrink Threshold Transformer TransformerDecoder TransformerDecoderLayer ' +
  'TransformerEncoder TransformerEncoderLayer TripletMarginLoss TripletMarginWithDistanceLoss Unflatten Unfold ' +
  'Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d'
).split(' ');

/** Optimisers, schedules and averages of weights. */
export const optimizers = (
  'ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax LBFGS Muon NAdam RAdam RMSprop Rprop SGD SparseAdam ' +
  'ChainedScheduler ConstantLR CosineAnnealingLR CosineAnnealingWarmRestarts CyclicLR ExponentialLR LambdaLR ' +
  'LinearLR MultiStepLR MultiplicativeLR OneCycleLR PolynomialLR ReduceLROnPlateau SequentialLR StepLR SWALR ' +
  'AveragedModel'
).split(' ');
