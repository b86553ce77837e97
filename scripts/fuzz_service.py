"""Throws generated requests at the service for some minutes: no answer may be a 5xx.

    python scripts/fuzz_service.py [--model MODEL] [--seconds 180]

Starts `sightline serve` on a free port, lets schemathesis make requests out of its OpenAPI
description, good and bad ones, and ends with schemathesis's exit code. Without a model, one of
random weights is made: what is answered matters here, not how good it is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from service_helpers import Service, tiny_model

#: Beside 5xx: answers that are not as described.
CHECKS = "not_a_server_error,content_type_conformance,response_schema_conformance"


def main() -> int:
    """Run; gives the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--seconds", type=int, default=180)
    choices = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = choices.model or Path(folder) / "tiny"
        if choices.model is None:
            tiny_model().save_pretrained(model)
        service = Service(model, folder=Path(folder)).wait()
        command = [Path(sys.executable).with_name("schemathesis"), "run", "--max-time"]
        command += [str(choices.seconds), "--checks", CHECKS, "--continue-on-failure"]
        command += ["--suppress-health-check", "all"]  # a busy machine is no fault of the service
        try:
            done = subprocess.run([*command, f"{service.url}/openapi.json"], cwd=folder)
        finally:
            ended = service.stop()
        errors = [line for line in service.log.read_text().splitlines() if '"error"' in line]
        print(f"the service ended with {ended}, its log has {len(errors)} errors")
        print("\n".join(errors[:20]))
        return done.returncode or int(bool(errors)) or ended


if __name__ == "__main__":
    sys.exit(main())
