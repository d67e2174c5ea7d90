"""Retries requests to remote stores, and tells refusals, missing files and passing faults apart."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from attnscope.errors import InputError, one_line
from attnscope.printable import printable
from attnscope.verbs.corpus.store import RefusedError

T = TypeVar("T")
PAUSES = (0.3, 1.0, 3.0, 8.0, 20.0)  # seconds before what failed is tried again
FIRST = 2  # of these where nothing was had yet: a name that is wrong does not come right
_NETWORKS = {
    "aiohttp", "aiobotocore", "azure", "botocore", "fsspec", "gcsfs", "google", "httpcore2", "httpx",
    "httpx2", "huggingface_hub", "requests", "urllib3",
}  # fmt: skip
_FOR_GOOD = (IsADirectoryError, NotADirectoryError, NotImplementedError, ValueError)
_NOBODY = {"NoCredentialsError", "PartialCredentialsError", "ProfileNotFound"}
_LATER = (408, 425, 429)  # of HTTP's answers below 500 those that say: ask again
PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs",
    "abfss": "adlfs", "adl": "adlfs", "http": "aiohttp", "https": "aiohttp", "sftp": "paramiko",
    "ssh": "paramiko", "oci": "ocifs", "smb": "smbprotocol", "dropbox": "dropboxdrivefs",
    "webdav": "webdav4", "hf": "huggingface_hub",
}  # fmt: skip
_S3 = "AWS_ACCESS_KEY_ID with AWS_SECRET_ACCESS_KEY, AWS_PROFILE, ~/.aws/credentials, the machine's own role"
_GS = "GOOGLE_APPLICATION_CREDENTIALS, gcloud's own (gcloud auth application-default login)"
_AZURE = "AZURE_STORAGE_CONNECTION_STRING, AZURE_STORAGE_ACCOUNT_NAME with AZURE_STORAGE_ACCOUNT_KEY"
_CREDENTIALS = {
    "s3": f"{_S3}; FSSPEC_S3_ANON=true asks as nobody",
    "gs": f"{_GS}; FSSPEC_GS_TOKEN=anon asks as nobody",
    "az": _AZURE,
    "hf": "HF_TOKEN, or what `hf auth login` keeps",
    "http": "a name and password in the address (https://NAME:PASSWORD@...)",
}
UNKNOWN = "Protocol not known: "  # how fsspec says so
_ALIKE = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "adl": "az", "https": "http"}


def trying(act: Callable[[], T], doing: str, address: str, pauses: Sequence[float] | None = None) -> T:
    """The result of `act`, tried again after pauses where the network or the store was at fault.

    `doing` is what is done to the address: read, list, write. `FileNotFoundError` where nothing is there.
    """
    failed = f"cannot {doing} '{printable(address)}'"
    pauses = PAUSES if pauses is None else pauses
    for pause in (*pauses, None):
        try:
            return act()
        except Exception as error:
            _raise_for_good(error, failed, address)
            if pause is None:
                kept = "; what is done is kept, and the same command goes on from there"
                late = kept if len(pauses) > FIRST else ""
                raise RefusedError(
                    f"{failed}: {_said(error)}, {len(pauses) + 1} times in a row{late}"
                ) from error
        time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _raise_for_good(error: Exception, failed: str, address: str) -> None:
    status = next(filter(None, map(_status, _chain(error))), None)
    if type(error).__name__ == "RepositoryNotFoundError":  # which the hub says by 401 to who has no token
        raise FileNotFoundError(2, "no such data set", address) from error
    nobody = _NOBODY & {type(each).__name__ for each in _chain(error)}
    if isinstance(error, PermissionError) or status in (401, 403) or nobody:
        raise RefusedError(f"{failed}: not allowed{_looked_for(address)}") from error
    if status == 404 or (isinstance(error, FileNotFoundError) and status is None and not passing(error)):
        raise FileNotFoundError(2, "no such file", address) from error
    if status is not None and 400 <= status < 500 and status not in _LATER:
        raise RefusedError(f"{failed}: {_said(error)}") from error
    if isinstance(error, NotImplementedError):
        raise RefusedError(
            f"{failed}: {str(error).strip() or 'that kind of address cannot do it'}"
        ) from error
    if isinstance(error, InputError):
        raise error
    if not passing(error):
        if isinstance(error, (OSError, *_FOR_GOOD)):
            raise RefusedError(f"{failed}: {_said(error)}") from error
        raise error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _status(error: BaseException) -> int | None:
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):  # botocore's
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    elif response is not None:  # httpx's and requests'
        status = getattr(response, "status_code", None)
    else:  # gcsfs' and aiohttp's
        gcsfs = type(error).__module__.startswith("gcsfs")
        status = getattr(error, "code" if gcsfs else "status", None)
    return status if isinstance(status, int) and 100 <= status < 600 else None


def passing(error: BaseException) -> bool:
    """Whether the error may pass, so that another try makes sense."""
    if isinstance(error, _FOR_GOOD):
        return False
    kinds = (kind for each in _chain(error) for kind in type(each).__mro__)
    rooms = {kind.__module__.partition(".")[0] for kind in kinds}
    if isinstance(error, FileNotFoundError):
        broken = any(isinstance(each, (ConnectionError, TimeoutError)) for each in _chain(error))
        return broken or bool(rooms & (_NETWORKS - {"fsspec"}))
    return isinstance(error, (OSError, EOFError)) or bool(rooms & _NETWORKS)


def _said(error: BaseException) -> str:
    of = error.__cause__ if isinstance(error, FileNotFoundError) else None  # the web's, which says but where
    told = next((each for each in _chain(of or error) if str(each).strip()), error)
    return one_line(told)


def _looked_for(address: str) -> str:
    scheme = address.partition("://")[0]
    where = _CREDENTIALS.get(_ALIKE.get(scheme, scheme))
    return f"; credentials are looked for in {where}" if where else ""


def missing(address: str, schemes: set[str], error: Exception) -> InputError:
    """The error for an address whose scheme nothing here can open."""
    named = str(error).partition(UNKNOWN)[2]  # of several in one address the one that is meant
    scheme, name = named or address.partition("://")[0], printable(address)
    if isinstance(error, ImportError):
        package = PACKAGES.get(scheme, "")
        need = f"{package}: pip install {package}" if package else f"a package: {one_line(error)}"
        return RefusedError(f"cannot open '{name}': {scheme}:// needs {need}")
    usual = ", ".join(f"{each}://" for each in ("s3", "gs", "az", "https", "hf", "sftp") if each in schemes)
    return RefusedError(f"cannot open '{name}': there is no {printable(scheme)}://, such as {usual}")
