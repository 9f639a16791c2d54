"""The hub, an S3-compatible store, addresses and claims, spoken to as they speak."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from llamapool.domain.facts_message import to_message
from llamapool.errors import FetchError
from tests.support.file_server import ACCESS_KEY, SECRET_KEY, TOKEN
from tests.unit.fetch.conftest import asked, digest, model_bytes

if TYPE_CHECKING:
    from tests.support.file_server import FileServer
    from tests.unit.fetch.conftest import Volume

PARTS = ["big-00001-of-00002.gguf", "big-00002-of-00002.gguf"]


@pytest.fixture
def hub(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    server.files["/owner/repo/model.gguf"] = model_bytes()
    secret = {"name": "hub", "key": "token"}
    return {"huggingFace": {"repo": "owner/repo", "files": ["model.gguf"], "tokenSecretRef": secret}}


def test_a_file_of_the_hub_has_the_checksum_that_the_hub_publishes(
    volume: Volume, server: FileServer, hub: dict[str, Any]
) -> None:
    server.needs_token = True
    volume.give_secret("model", token=TOKEN)
    model = asked(hub)
    fetched = volume.fetch(model)
    assert volume.served(model) == server.files["/owner/repo/model.gguf"]
    assert fetched is not None
    assert fetched.sha256 == digest(server.files["/owner/repo/model.gguf"])
    assert "secret" not in volume.log + to_message(fetched)


def test_a_transfer_from_the_hub_goes_on_under_a_new_signature(
    volume: Volume, server: FileServer, hub: dict[str, Any]
) -> None:
    volume.give_secret("model", token=TOKEN)
    server.cuts = [100_000, 200_000]
    model = asked(hub)
    volume.fetch(model)
    assert volume.served(model) == server.files["/owner/repo/model.gguf"]
    resolved = [path for method, path, _ in server.asked if method == "GET" and "/resolve/" in path]
    assert len(resolved) == 3
    assert all("/resolve/c0ffee" in path for path in resolved), "of the commit that was found first"


def test_a_checksum_other_than_the_hub_s_is_told_before_anything_is_downloaded(
    volume: Volume, server: FileServer, hub: dict[str, Any]
) -> None:
    volume.give_secret("model", token=TOKEN)
    with pytest.raises(FetchError, match="by its source, not 0000"):
        volume.fetch(asked(hub, sha256="0" * 64))
    assert server.downloads() == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "gated: accept its terms on the hub, and give a token in tokenSecretRef"),
        ({"files": ["other.gguf"]}, "no such file at that revision"),
        ({"revision": "v9"}, "no such revision"),
    ],
)
def test_what_the_hub_refuses_is_said_in_words(
    volume: Volume, server: FileServer, hub: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    server.needs_token = not changes
    place = {**hub["huggingFace"], "tokenSecretRef": None, **changes}
    with pytest.raises(FetchError, match=said):
        volume.fetch(asked({"huggingFace": place}))


def test_a_secret_that_lacks_its_key_is_named(volume: Volume, hub: dict[str, Any]) -> None:
    with pytest.raises(FetchError, match=r"model/token: the Secret's key cannot be read"):
        volume.fetch(asked(hub))


@pytest.fixture
def store(server: FileServer) -> dict[str, Any]:
    server.files["/bucket/a model/27b.gguf"] = model_bytes()
    place = {"endpoint": server.address, "bucket": "bucket", "keys": ["a model/27b.gguf"]}
    return {"s3": {**place, "credentialsSecretRef": {"name": "s3"}}}


def test_an_object_of_a_store_is_asked_for_with_a_signature_that_the_store_verifies(
    volume: Volume, server: FileServer, store: dict[str, Any]
) -> None:
    server.files["/bucket/a%20model/27b.gguf"] = server.files["/bucket/a model/27b.gguf"]
    volume.give_secret("model", AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY=SECRET_KEY)
    server.cuts = [100_000]
    model = asked(store)
    fetched = volume.fetch(model)
    assert volume.served(model) == server.files["/bucket/a model/27b.gguf"]
    assert fetched is not None
    for query in server.queries:
        assert query not in volume.log + to_message(fetched)


def test_a_wrong_key_is_told_in_the_store_s_words_and_not_shown(
    volume: Volume, server: FileServer, store: dict[str, Any]
) -> None:
    volume.give_secret("model", AWS_ACCESS_KEY_ID=ACCESS_KEY, AWS_SECRET_ACCESS_KEY="wrong-key")  # noqa: S106
    with pytest.raises(
        FetchError, match=r"s3://bucket/a model/27b.gguf: it answers 403 \(SignatureDoesNotMatch\)"
    ) as raised:
        volume.fetch(asked(store))
    assert "wrong-key" not in str(raised.value) + volume.log
    assert len(server.asked) == 1


def test_a_split_model_comes_whole_with_projector_and_draft_model(volume: Volume, server: FileServer) -> None:
    for number, name in enumerate(PARTS):
        split = {"split.count": 2, "split.no": number, "split.tensors.count": 2}
        server.files[f"/{name}"] = model_bytes(number, **split)
    server.files["/mmproj.gguf"], server.files["/draft.gguf"] = model_bytes(3, kibibytes=64), model_bytes(4)
    addresses = {name: f"{server.address}{name}" for name in server.files}
    model = asked(
        {"http": {"urls": [addresses[f"/{name}"] for name in PARTS]}},
        sha256=digest(server.files[f"/{PARTS[0]}"]),
        mmproj={"source": {"http": {"urls": [addresses["/mmproj.gguf"]]}}},
        draft={"source": {"http": {"urls": [addresses["/draft.gguf"]]}}},
    )
    fetched = volume.fetch(model)
    assert fetched is not None
    assert fetched.facts.weights is not None
    assert fetched.facts.weights.total_bytes == 2 << 20
    assert fetched.projector_bytes == 64 << 10
    assert fetched.draft is not None
    folder = (volume.folder / model.model.path.removeprefix("/")).parent
    for name in PARTS:
        assert (folder / name).read_bytes() == server.files[f"/{name}"]


@pytest.mark.parametrize("sha256", [None, digest(model_bytes())])
def test_a_file_on_a_claim_is_verified_where_it_is(volume: Volume, sha256: str | None) -> None:
    (volume.folder / "models").mkdir()
    (volume.folder / "models" / "m.gguf").write_bytes(model_bytes())
    fetched = volume.fetch(asked({"pvc": {"claimName": "c", "path": "m.gguf"}}, sha256=sha256))
    assert fetched is not None
    assert fetched.sha256 == sha256
    assert fetched.facts.architecture == "mamba2"


def test_a_file_on_a_claim_that_is_another_is_refused(volume: Volume) -> None:
    (volume.folder / "models").mkdir()
    (volume.folder / "models" / "m.gguf").write_bytes(model_bytes(1))
    model = asked({"pvc": {"claimName": "c", "path": "m.gguf"}}, sha256=digest(model_bytes()))
    with pytest.raises(FetchError, match="as asked for; it is not served"):
        volume.fetch(model)
