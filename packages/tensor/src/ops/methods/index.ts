// The operations of a tensor as its methods. core/tensor.ts declares them; loading these files adds them to the class.
import { refuseForeignNames } from '../foreign-names.ts';
import './arrays.ts';
import './basic.ts';
import './products.ts';
import './statistics.ts';
import './differentiable.ts';
import './functions.ts';
import './in-place.ts';

refuseForeignNames();
