"""Makes calls of rsockets that none of librdmacm's programs makes."""

import array
import ctypes
import itertools
import mmap
import signal
import socket
import struct
import sys
import time

TCP_KEEPIDLE = 4
SOL_RDMA = 0x10000
RDMA_SQSIZE, RDMA_RQSIZE, RDMA_INLINE = 0, 1, 2

# Sizes of messages, some of which are just above those of inline data.
SIZES = [1, 4, 5, 15, 16, 17, 64, 65, 80, 81, 512, 513, 3000]

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


def opened(options=(), kind=socket.SOCK_STREAM):
    stream = call("rsocket", socket.AF_INET, kind, 0)
    for level, option, value in options:
        set_option(stream, level, option, value)
    return stream


def name_of(address, port):
    family = struct.pack("=H", socket.AF_INET)
    return family + struct.pack("!H4s8x", port, socket.inet_aton(address))


def accept(address, port, options=()):
    """Accepts one peer, and reads its first byte: siw's accepting side must not send before."""
    listener = listen(address, port, options)
    print("listening", flush=True)
    stream = call("raccept", listener, None, None)
    assert receive(stream) == 1
    return stream


def connect(address, port, options=(), kind=socket.SOCK_STREAM):
    if is_server:
        return accept(address, port, options)
    stream = opened(options, kind)
    name = name_of(address, port)
    call("rconnect", stream, name, len(name))
    return stream


def queues_of(requests):
    # A completion queue of rxe holds 32,767 completions, of both queues together.
    sends = min(requests, 2048)
    return [(SOL_RDMA, RDMA_SQSIZE, sends), (SOL_RDMA, RDMA_RQSIZE, requests)]


def set_option(stream, level, option, value):
    call("rsetsockopt", stream, level, option, ctypes.byref(ctypes.c_int(value)), 4)


def send(stream):
    assert call("rsend", stream, b"x", 1, 0) == 1


def receive(stream):
    byte = ctypes.create_string_buffer(1)
    return call("rrecv", stream, byte, 1, 0)


def send_all(stream, memory, size):
    assert call("rsend", stream, memory, size, 0) == size


def receive_all(stream, memory, size):
    assert call("rrecv", stream, memory, size, socket.MSG_WAITALL) == size


def close_after_peer(stream):
    """Closes once the peer has read everything, as siw may lose what is in flight."""
    assert receive(stream) == 0
    call("rclose", stream)


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


def echoes(address, port, length, requests, *inline_sizes):
    """Returns so many bytes, in messages of its own sizes, on a stream for each inline size."""
    memory = ctypes.create_string_buffer(max(SIZES))
    for inline in inline_sizes:
        options = [*queues_of(requests), (SOL_RDMA, RDMA_INLINE, inline)]
        stream = connect(address, port, options)
        left, sizes = length, itertools.cycle(SIZES)
        while left > 0:
            size = min(next(sizes), left)
            receive_all(stream, memory, size)
            send_all(stream, memory, size)
            left -= size
        close_after_peer(stream)


def measures(address, port, part):
    """What rstream does without sizes, with a part of its messages."""
    message = bytes(range(256)) * 4096
    received = ctypes.create_string_buffer(len(message))

    def exchange(stream, size, count):
        for _ in range(count):
            send_all(stream, message, size)
        for _ in range(count):
            receive_all(stream, received, size)
            assert received[:size] == message[:size]

    buffers = [(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 19)]
    buffers += [(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 19)]
    for inline, one_by_one in (64, True), (0, False):
        stream = connect(address, port, [*buffers, (SOL_RDMA, RDMA_INLINE, inline)])
        for size, count in zip([64, 4096, 65536, 1 << 20], [100000, 10000, 1000, 100]):
            exchange(stream, 16, 1)
            count = max(count // part, 1)
            for _ in range(count if one_by_one else 1):
                exchange(stream, size, 1 if one_by_one else count)
        call("rshutdown", stream, socket.SHUT_RDWR)
        call("rclose", stream)


def content(length):
    return bytes(range(256)) * (length // 256)


def expect_content(stream, length):
    """Reads so many bytes, and the end."""
    memory = ctypes.create_string_buffer(1 << 16)
    received = bytearray()
    while read := call("rrecv", stream, memory, len(memory), 0):
        received += memory[:read]
    assert received == content(length), len(received)


def reads(address, port, length):
    """Reads so many bytes until the end."""
    stream = connect(address, port)
    expect_content(stream, length)
    call("rclose", stream)


def writes(address, port, length):
    """Sends so many bytes, and closes at once."""
    stream = connect(address, port)
    send_all(stream, content(length), length)
    call("rclose", stream)


def listen(address, port, options):
    listener = opened(options)
    name = name_of(address, port)
    call("rbind", listener, name, len(name))
    call("rlisten", listener, 1)
    return listener


def count(stream):
    """Sends a byte, reads until the end, and prints how many bytes."""
    memory = ctypes.create_string_buffer(1 << 16)
    send(stream)
    received = bytearray()
    while read := call("rrecv", stream, memory, len(memory), 0):
        received += memory[:read]
    assert received == content(1 << 20)[: len(received)], len(received)
    print(len(received), flush=True)
    call("rclose", stream)


def counts(address, port, requests):
    count(connect(address, port, queues_of(requests)))


def outlasts(address, port, requests, received, sent, size):
    """Reads so many messages, and then sends so many."""
    stream = connect(address, port, queues_of(requests))
    memory = ctypes.create_string_buffer(numbered(max(received, sent) * size))
    # rrecv waits for a message even if it is to read nothing.
    if received:
        buffer = ctypes.create_string_buffer(received * size)
        receive_all(stream, buffer, received * size)
        assert buffer.raw == memory[: received * size]
    for start in range(0, sent * size, size):
        send_all(stream, ctypes.byref(memory, start), size)
    close_after_peer(stream)


def numbered(length):
    """Numbers of four bytes."""
    return array.array("I", range(length // 4)).tobytes()


def asks(address, port, length):
    """Sends so many bytes and ends them, then reads as many until the end."""
    stream = connect(address, port)
    send_all(stream, content(length), length)
    call("rshutdown", stream, socket.SHUT_WR)
    expect_content(stream, length)
    call("rclose", stream)


def answers(address, port, length):
    """Reads so many bytes until the end, then sends as many. Closes when it is interrupted."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    stream = connect(address, port)
    expect_content(stream, length)
    send_all(stream, content(length), length)
    signal.sigwait([signal.SIGINT])
    call("rclose", stream)


def sends_datagram(address, port):
    send(connect(address, port, kind=socket.SOCK_DGRAM))


# Commands that connect themselves, and those of a stream.
COMMANDS = {
    "closes": closes,
    "echoes": echoes,
    "measures": measures,
    "counts": counts,
    "outlasts": outlasts,
    "reads": reads,
    "writes": writes,
    "asks": asks,
    "answers": answers,
    "datagram": sends_datagram,
}
STREAM_COMMANDS = {"maps": maps, "idle": idle}
role, command, address, port, *numbers = sys.argv[1:]
is_server = role == "server"
port, numbers = int(port), [int(number) for number in numbers]
if command in COMMANDS:
    sys.exit(COMMANDS[command](address, port, *numbers))
stream = connect(address, port)
STREAM_COMMANDS[command](stream, *numbers)
print("done", flush=True)
receive(stream)
call("rclose", stream)
