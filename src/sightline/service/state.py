"""What the routes share: configuration, numbers, and the engine once it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from sightline.service.configuration import Configuration
from sightline.service.engine import Engine
from sightline.service.errors import busy
from sightline.service.metrics import Metrics
from sightline.service.submissions import Reception


@dataclass
class ServiceState:
    """The state of one process."""

    configuration: Configuration
    metrics: Metrics
    reception: Reception
    engine: Engine | None = None
    #: Why there will be no engine.
    failure: str | None = None

    def engine_now(self) -> Engine:
        """The engine; 503 while there is none."""
        if self.engine is None:
            raise busy(503, self.failure or "The model is not loaded yet.")
        return self.engine
