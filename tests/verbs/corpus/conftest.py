"""A real object store and a stand-in of the hub, each behind a network that a test may let fail."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hub_stand_in import empty_cache, stand_in
from wire import Wire, object_store, on_s3, wire

from attnscope.verbs.corpus.store import Place, place_of


@pytest.fixture(scope="session")
def store() -> Iterator[Wire]:
    with object_store() as made:
        import boto3

        options = on_s3(made)
        client = boto3.client(
            "s3", endpoint_url=made.address, aws_access_key_id=options["key"],
            aws_secret_access_key=options["secret"], region_name="us-east-1",
        )  # fmt: skip
        client.create_bucket(Bucket="bucket")
        yield made


@pytest.fixture
def bucket(store: Wire, request: pytest.FixtureRequest) -> Iterator[Place]:
    yield place_of(f"s3://bucket/{abs(hash(request.node.name))}", **on_s3(store))
    store.fault = lambda asked: None
    store.log.clear()


@pytest.fixture
def as_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """Makes a folder the data set `some/set` of the hub, behind a wire."""
    import fsspec
    from huggingface_hub import constants

    empty_cache(tmp_path / "cache", monkeypatch)
    with ExitStack() as open_while:

        def served(folder: Path) -> Wire:
            hub = urlsplit(open_while.enter_context(stand_in("some/set", folder)).address)
            made = open_while.enter_context(wire(str(hub.hostname), int(hub.port or 0)))
            monkeypatch.setattr(constants, "ENDPOINT", made.address)
            files = made.address + "/{repo_id}/resolve/{revision}/{filename}"
            monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
            fsspec.get_filesystem_class("hf").clear_instance_cache()
            return made

        yield served
