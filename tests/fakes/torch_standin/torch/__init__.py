"""As much of torch as the hook touches, for interpreters that have none.

``TORCH_STANDIN`` chooses how the optimizer wraps ``step``: as torch 1.13 does, or as 2.x does.
"""

import os

STYLE = os.environ["TORCH_STANDIN"]
__version__ = STYLE + ".0"


class Tensor:
    pass


from torch import optim, serialization, utils  # noqa: E402, F401
from torch.serialization import save  # noqa: E402, F401
