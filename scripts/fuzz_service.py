"""Throws generated requests at the service for some minutes: no answer may be a 5xx.

    python scripts/fuzz_service.py [--model MODEL] [--seconds 180]

Starts `sightline serve` on a free port, lets schemathesis make requests out of its OpenAPI
description, good and bad ones, and ends with schemathesis's exit code. What the web page asks for
is no part of that description; here it is added. Without a model, one of random weights is made:
what is answered matters here, not how good it is.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from service_helpers import Service, tiny_model

from sightline.service.openapi import LINK_BODY
from sightline.service.web import FormRequest

#: Beside 5xx: answers that are not as described.
CHECKS = "not_a_server_error,content_type_conformance,response_schema_conformance"


def _described(url: str) -> dict[str, Any]:
    """The description of the API, and of what the page asks for beyond it."""
    with urllib.request.urlopen(f"{url}/openapi.json") as answer:
        description: dict[str, Any] = json.load(answer)
    form = LINK_BODY["requestBody"]["content"]["multipart/form-data"]["schema"]
    record = {"type": "string", "contentMediaType": "application/json"}
    corrected = {**form, "properties": {**form["properties"], "record": record}}
    asked = FormRequest.model_json_schema(ref_template="#/components/schemas/{model}")
    description["components"]["schemas"] |= asked.pop("$defs")
    uploads = {"/v1/page": form, "/v1/page/html": corrected}
    for path, schema in uploads.items():
        description["paths"][path] = {"post": _operation({"multipart/form-data": schema})}
    forms = {"name": "form", "in": "path", "required": True, "schema": {"type": "string"}}
    described = _operation({"application/json": asked}, forms)
    description["paths"]["/v1/forms/{form}"] = {"post": described}
    number = {"name": "number", "in": "path", "required": True, "schema": {"type": "integer"}}
    index = {**number, "name": "index"}
    name = {**forms, "name": "name"}
    queries = [
        {"name": key, "in": "query", "schema": {"type": kind}}
        for key, kind in (("sort", "string"), ("offset", "integer"), ("split", "string"))
    ]
    listed: dict[str, list[dict[str, Any]]] = {
        "/": [], "/page/{name}": [name], "/v1/examples": [], "/v1/examples/{name}": [name],
        "/v1/corpora": [], "/v1/corpora/{number}/documents": [number, *queries],
        "/v1/corpora/{number}/documents/{index}": [number, index],
    }  # fmt: skip
    for path, parameters in listed.items():
        description["paths"][path] = {"get": _operation(None, *parameters)}
    return description


def _operation(content: dict[str, Any] | None, *parameters: dict[str, Any]) -> dict[str, Any]:
    body = {content_type: {"schema": schema} for content_type, schema in (content or {}).items()}
    said = {"requestBody": {"content": body, "required": True}} if body else {}
    return {"parameters": list(parameters), "responses": {"default": {"description": ""}}, **said}


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
        demo = Path(__file__).parents[1] / "src" / "sightline" / "data" / "demo"
        service = Service(model, "--corpus", demo, folder=Path(folder)).wait()
        description = Path(folder) / "openapi.json"
        description.write_text(json.dumps(_described(service.url)))
        command = [Path(sys.executable).with_name("schemathesis"), "run", "--max-time"]
        command += [str(choices.seconds), "--checks", CHECKS, "--continue-on-failure"]
        command += ["--suppress-health-check", "all"]  # a busy machine is no fault of the service
        try:
            done = subprocess.run([*command, "--url", service.url, description], cwd=folder)
        finally:
            ended = service.stop()
        errors = [line for line in service.log.read_text().splitlines() if '"error"' in line]
        print(f"the service ended with {ended}, its log has {len(errors)} errors")
        print("\n".join(errors[:20]))
        return done.returncode or int(bool(errors)) or ended


if __name__ == "__main__":
    sys.exit(main())
