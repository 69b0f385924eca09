"""A raw Ethernet socket that sends many frames in one system call (Linux AF_PACKET, sendmmsg)."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import time
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from roce_pkt.errors import InputError, nearest

BATCH = 512
"""Frames in one system call."""
_FULL = (errno.ENOBUFS, errno.EAGAIN)
_WAIT_S = 50e-6
_MOST_WAITS = 40_000
_SEND_BUFFER_BYTES = 4 << 20


class _Iovec(ctypes.Structure):
    _fields_ = (("base", ctypes.c_size_t), ("size", ctypes.c_size_t))


class _Header(ctypes.Structure):
    """`struct msghdr`, pointers as numbers."""

    _fields_ = (
        ("name", ctypes.c_size_t), ("name_size", ctypes.c_uint), ("iov", ctypes.c_size_t),
        ("iov_count", ctypes.c_size_t), ("control", ctypes.c_size_t), ("control_size", ctypes.c_size_t),
        ("flags", ctypes.c_int),
    )  # fmt: skip


class _Message(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = (("header", _Header), ("sent", ctypes.c_uint))


class WireSocket:
    """Sends whole Ethernet frames out of one interface.

    Args:
        interface: Its name.

    Raises:
        InputError: No such interface, or no right to send raw frames.
    """

    def __init__(self, interface: str) -> None:
        names = [name for _, name in socket.if_nameindex()]
        if interface not in names:
            near = nearest(interface, names)
            raise InputError(
                f"--interface {interface}: no such interface{near}; there are {', '.join(names)}"
            )
        try:
            self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        except PermissionError:
            raise InputError(
                "sending raw frames needs the capability CAP_NET_RAW: run as root, or give it to the "
                "interpreter with setcap cap_net_raw+ep"
            ) from None
        except OSError as error:
            raise InputError(f"raw frames cannot be sent here: {error.strerror}") from None
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        self._socket.bind((interface, 0))
        self._call = ctypes.CDLL(None, use_errno=True).sendmmsg
        self._iovecs: Any = (_Iovec * BATCH)()
        self._messages: Any = (_Message * BATCH)()
        kinds: Any = np.dtype(_Iovec), np.dtype(_Message)
        self._iov: Any = np.frombuffer(memoryview(self._iovecs), kinds[0])
        head: Any = np.frombuffer(memoryview(self._messages), kinds[1])["header"]
        head["iov"] = ctypes.addressof(self._iovecs) + np.arange(BATCH) * ctypes.sizeof(_Iovec)
        head["iov_count"] = 1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, addresses: NDArray[np.uint64], sizes: NDArray[np.uint64]) -> int:
        """Hand frames to the interface, waiting while its queue is full.

        Args:
            addresses: Where each frame lies; at most `BATCH`.
            sizes: Octets of each.

        Returns:
            How many were taken. Fewer than given means that the next one is refused.

        Raises:
            InputError: The interface is down or gone.
        """
        count, done, waits = len(addresses), 0, 0
        self._iov["base"][:count], self._iov["size"][:count] = addresses, sizes
        while done < count:
            place = ctypes.byref(self._messages, done * ctypes.sizeof(_Message))
            taken = self._call(self._socket.fileno(), place, count - done, 0)
            if taken > 0:
                done += taken
                continue
            number = ctypes.get_errno()
            if number in _FULL and waits < _MOST_WAITS:
                waits += 1
                time.sleep(_WAIT_S)
            elif number in (errno.EMSGSIZE, errno.EINVAL):
                return done
            elif number != errno.EINTR:
                raise InputError(f"the interface takes no more frames: {os.strerror(number)}")
        return done
