"""A CLIP folder behind the service: the same links as without it."""

import base64

import pytest
from service_helpers import photograph
from test_clip_backbones import clip_folder  # noqa: F401 - a fixture
from test_service import opened

from sightline.documents import Document
from sightline.image_features import ImageFiles
from sightline.link_records import link_records, open_model

SENTENCES = ["a red dog", "the cat sits, still."]


def test_a_clip_folder_is_served(clip_folder, tmp_path):  # noqa: F811
    names = ["0.jpg", "1.jpg"]
    for number, name in enumerate(names):
        (tmp_path / name).write_bytes(photograph(number))
    images = [
        {"id": name, "data": base64.b64encode((tmp_path / name).read_bytes()).decode()}
        for name in names
    ]
    client = opened(clip_folder)
    try:
        (found,) = client.get("/v1/models").json()["models"]
        assert found["dimension"] == 10 and found["words"] is None and not found["calibrated"]
        body = {"id": "d", "sentences": SENTENCES, "images": images, "matrix": True}
        answer = client.post("/v1/link", json=body).json()
        live = client.post(
            "/v1/page", files={"file": ("a.txt", "A red dog."), "images": (names[0], photograph(0))}
        )
        assert live.status_code == 200 and live.json()["measure"] == "score"
    finally:
        client.__exit__(None, None, None)
    model = open_model(str(clip_folder))
    document = Document("d", tuple(SENTENCES), tuple(names), folder=tmp_path)
    source = ImageFiles(model.image_backbone)
    (expected,) = link_records(model, [document], source, matrix=True)
    for row, other in zip(answer["matrix"], expected["matrix"], strict=True):
        assert row == pytest.approx(other, abs=1e-4)
    pairs = [(link["sentence"], link["image"]) for link in answer["links"]]
    assert pairs == [(link["sentence"], link["image"]) for link in expected["links"]]
