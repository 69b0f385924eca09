"""Output files that appear whole or not at all, and are never overwritten unasked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from roce_pkt.errors import InputError


@contextmanager
def whole_file(path: str | Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when the block ends well.

    Args:
        path: Where the file shall be.
        force: Replace a file that is already there.

    Yields:
        A binary file in the same folder, under a temporary name.

    Raises:
        InputError: The file exists and `force` is not given, or its folder cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{path}: is a directory; name a file")
    if target.exists() and not force:
        raise InputError(f"{path}: exists already; give --force to replace it")
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: str | Path, text: str, *, force: bool = False) -> None:
    """Write a whole UTF-8 text file.

    Raises:
        InputError: As `whole_file`.
    """
    with whole_file(path, force=force) as stream:
        stream.write(text.encode())
