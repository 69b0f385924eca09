"""Output files that appear whole or not at all, and are never overwritten unasked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from roce_pkt.errors import InputError


def check_free(path: str | Path, *, force: bool = False) -> None:
    """Complain early, before long work, about a file that could not be written in the end.

    Raises:
        InputError: The file exists and `force` is not given, or is a directory.
    """
    target = Path(path)
    if str(path) in ("", "-"):
        raise InputError(f"{str(path)!r} is no file name; output goes to a file that has one")
    if target.is_dir():
        raise InputError(f"{path}: is a directory; name a file")
    if target.is_file() and not force:
        raise InputError(f"{path}: exists already; give --force to replace it")


def check_apart(path: str | Path, source: str | Path) -> None:
    """Refuse to write something else over the very file that is being read.

    Raises:
        InputError: Both names are of one file.
    """
    with suppress(OSError):
        if Path(path).samefile(source):
            raise InputError(f"{path}: is the input itself; name another file")


def check_outputs(
    outputs: Sequence[str | Path | None], inputs: Sequence[str | Path | None], *, force: bool = False
) -> None:
    """Complain before any work of files that could not, or should not, be written in the end.

    Args:
        outputs: Files to write; None or "" is none.
        inputs: Files that are read meanwhile.
        force: Replace files that are there.

    Raises:
        InputError: An output is an input, is named twice, exists already, or is a directory.
    """
    given = [path for path in outputs if path]
    for number, path in enumerate(given):
        for source in inputs:
            if source:
                check_apart(path, source)
        if os.path.realpath(path) in map(os.path.realpath, given[:number]):
            raise InputError(f"{path}: is named for two outputs")
        check_free(path, force=force)


@contextmanager
def whole_file(path: str | Path, *, force: bool = False) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name only when the block ends well.

    Args:
        path: Where the file shall be.
        force: Replace a file that is already there.

    Yields:
        A binary file in the same folder, under a temporary name. A device or a pipe that is there
        is written as it is: it cannot be replaced, and appears to nobody half.

    Raises:
        InputError: The file exists and `force` is not given, or its folder cannot be written.
    """
    target = Path(path)
    check_free(target, force=force)
    if target.exists() and not target.is_file():
        with _written(path), target.open("wb") as stream:
            yield stream
        return
    target = target.resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
        temporary.chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()


@contextmanager
def _written(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from error


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
