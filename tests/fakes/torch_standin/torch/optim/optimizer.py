import functools

import torch


def _profile_hook_step(step):
    @functools.wraps(step)
    def wrapper(*args, **kwargs):
        return step(*args, **kwargs)

    return wrapper


class _Base:
    def __init__(self, params, defaults):
        self.param_groups = [{"params": list(params)}]
        self._wrap()

    def _wrap(self):
        if not getattr(self.__class__.step, "hooked", None):
            self.__class__.step = _profile_hook_step(self.__class__.step)
            self.__class__.step.hooked = True

    def zero_grad(self):
        pass


if torch.STYLE == "1.13":

    class Optimizer(_Base):
        def _hook_for_profile(self):
            _Base._wrap(self)

        def _wrap(self):
            self._hook_for_profile()

else:

    class Optimizer(_Base):
        def _patch_step_function(self):
            _Base._wrap(self)

        def _wrap(self):
            self._patch_step_function()
