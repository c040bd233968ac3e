"""Calls rsockets that none of librdmacm's programs make."""

import ctypes
import mmap
import socket
import struct
import sys
import time

TCP_KEEPIDLE = 4

library = ctypes.CDLL("librdmacm.so.1", use_errno=True)
library.riomap.restype = ctypes.c_int64
library.riomap.argtypes = [
    ctypes.c_int,
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int64,
]
library.riounmap.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]


def call(name, *arguments):
    result = getattr(library, name)(*arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def connect(address, port, kind=socket.SOCK_STREAM):
    stream = call("rsocket", socket.AF_INET, kind, 0)
    family = struct.pack("=H", socket.AF_INET)
    name = family + struct.pack("!H4s8x", port, socket.inet_aton(address))
    call("rconnect", stream, name, len(name))
    return stream


def set_option(stream, level, option, value):
    call("rsetsockopt", stream, level, option, ctypes.byref(ctypes.c_int(value)), 4)


def send(stream):
    assert call("rsend", stream, b"x", 1, 0) == 1


def receive(stream):
    byte = ctypes.create_string_buffer(1)
    return call("rrecv", stream, byte, 1, 0)


def maps(stream, cycles):
    """Maps and unmaps a buffer so often, with a byte each time."""
    memory = ctypes.create_string_buffer(64)
    for _ in range(cycles):
        call("riomap", stream, memory, 64, mmap.PROT_WRITE, 0, 0)
        send(stream)
        call("riounmap", stream, memory, 64)


def idle(stream, seconds):
    """Sends keep-alives each second, then a byte, and waits for one."""
    set_option(stream, socket.IPPROTO_TCP, TCP_KEEPIDLE, 1)
    set_option(stream, socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    time.sleep(seconds)
    send(stream)
    assert receive(stream) == 1


def closes(address, port, streams):
    """Connects and closes so many streams."""
    opened = [connect(address, port) for _ in range(streams)]
    for stream in opened:
        call("rclose", stream)


COMMANDS = {"maps": maps, "idle": idle}
command, address, port, number = sys.argv[1:]
port, number = int(port), int(number)
if command == "closes":
    sys.exit(closes(address, port, number))
if command == "datagram":
    sys.exit(send(connect(address, port, socket.SOCK_DGRAM)))
stream = connect(address, port)
COMMANDS[command](stream, number)
print("done", flush=True)
receive(stream)
call("rclose", stream)
