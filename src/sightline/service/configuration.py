"""What an operator may set; handed to worker processes as JSON in the environment."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from sightline.problems import SightlineError
from sightline.service.limits import ServiceLimits

_VARIABLE = "SIGHTLINE_SERVE"
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Configuration:
    """How the service runs."""

    model: str = "default"
    host: str = "127.0.0.1"
    token: str | None = None
    #: Fetch remote images of articles, from public addresses only.
    fetch: bool = False
    #: Origins whose pages may read answers.
    cors: tuple[str, ...] = ()
    #: Further names under which the service may be called; on other interfaces any is allowed.
    hosts: tuple[str, ...] = ()
    #: Corpora to look at on the web page.
    corpora: tuple[str, ...] = ()
    limits: ServiceLimits = field(default_factory=ServiceLimits)

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """The names that a request may use; none means any."""
        on_loopback = self.host in ("127.0.0.1", "localhost", "::1")
        if not self.hosts and not on_loopback:
            return frozenset()
        return frozenset(name.lower() for name in (*_LOOPBACK, self.host, *self.hosts))

    def to_environment(self) -> None:
        """Put it where `from_environment` finds it, in this process and those it starts."""
        os.environ[_VARIABLE] = orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_environment(cls) -> Configuration:
        """What `to_environment` put there."""
        text = os.environ.get(_VARIABLE)
        if text is None:
            raise SightlineError("The service is started with `sightline serve`.")
        values: dict[str, Any] = orjson.loads(text)
        limits = ServiceLimits(**values.pop("limits"))
        for name in ("cors", "hosts", "corpora"):
            values[name] = tuple(values[name])
        return cls(**values, limits=limits)
