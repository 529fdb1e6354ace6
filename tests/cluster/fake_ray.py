"""What RayBlocks uses of Ray, without it: workers are objects of this process, and are lost at will."""

from types import SimpleNamespace

import numpy as np


class GoneError(Exception):
    """A worker died."""


class NeverError(Exception):
    """Does not happen here."""


class FakeActor:
    """A worker that dies before or after some of its calls, and comes back without its state."""

    def __init__(self, make, dies):
        self._make, self._dies = make, dies
        self._owner = make()
        self.run = SimpleNamespace(remote=self._run)

    def _run(self, call, common, own):
        moment = self._dies()
        if moment == "before":
            self._owner = self._make()
            return GoneError()
        answer = self._owner.run(call, common, own)
        if moment == "after":
            self._owner = self._make()
            return GoneError()
        return answer


class FakeRay:
    """What RayBlocks uses of Ray, in this process."""

    exceptions = SimpleNamespace(
        RayTaskError=NeverError, RayActorError=GoneError, ObjectLostError=NeverError, NodeDiedError=NeverError,
        RpcError=NeverError,
    )  # fmt: skip

    def __init__(self, chance=0.0, seed=0):
        self.rng, self.chance, self.deaths = np.random.default_rng(seed), chance, 0

    def remote(self, **_):
        return lambda cls: SimpleNamespace(remote=lambda *given: FakeActor(lambda: cls(*given), self._dies))

    def _dies(self):
        if self.rng.random() >= self.chance:
            return None
        self.deaths += 1
        return self.rng.choice(["before", "after"])

    def put(self, content):
        return content

    def get(self, content):
        if isinstance(content, GoneError):
            raise content
        return content

    def kill(self, actor):
        pass
