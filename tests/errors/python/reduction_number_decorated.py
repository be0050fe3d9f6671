import numpy as np

import fusec

fusec.reduction(identity=0)(3)
