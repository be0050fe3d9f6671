import numpy as np

import fusec

fusec.reduction("lambda a, b: a + b; lambda a: a")
