"""Reads KV events as consumers of vLLM workers do: pyzmq for the sockets, typed msgspec structs for the batches.

    wire_reader.py decode                  batches as hex lines on stdin
    wire_reader.py follow EVENTS,REPLAY... one pair of addresses a rank; "ready" is printed once all are subscribed to,
                                           a line on stdin ends the run

Both print one JSON document. Whatever does not fit the types ends the program with an error.
"""

import json
import sys
from typing import Union

import msgspec
import zmq
from zmq.utils.monitor import recv_monitor_message

QUIET_MS = 1000  # how long nothing arrives once everything has
PATIENCE_MS = 30_000
END = 2**64 - 1


class BlockStored(msgspec.Struct, tag=True, kw_only=True, forbid_unknown_fields=True):
    block_hashes: list[int]
    parent_block_hash: Union[int, None]
    token_ids: list[int]
    block_size: int
    medium: Union[str, None] = None
    group_idx: Union[int, None] = None


class BlockRemoved(msgspec.Struct, tag=True, kw_only=True, forbid_unknown_fields=True):
    block_hashes: list[int]
    medium: Union[str, None] = None
    group_idx: Union[int, None] = None


class AllBlocksCleared(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    pass


class Batch(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    ts: float
    events: list[Union[BlockStored, BlockRemoved, AllBlocksCleared]]
    data_parallel_rank: Union[int, None] = None


decoder = msgspec.msgpack.Decoder(Batch)


def decode(payload):
    batch = decoder.decode(payload)
    keys = [list(event) for event in msgspec.msgpack.decode(payload)[1]]
    return {"ts": batch.ts, "rank": batch.data_parallel_rank, "events": msgspec.to_builtins(batch.events), "keys": keys}


def message(frames):
    number, payload = frames
    return {"seq": int.from_bytes(number, "big"), "payload": payload.hex()}


def connect(context, kind, address):
    """A socket whose connection stands."""
    socket = context.socket(kind)
    socket.setsockopt(zmq.LINGER, 0)
    monitor = socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED)
    if kind == zmq.SUB:
        socket.setsockopt(zmq.SUBSCRIBE, b"")
    socket.connect("tcp://" + address)
    if not monitor.poll(PATIENCE_MS):
        sys.exit(f"no connection to {address}")
    recv_monitor_message(monitor)
    socket.disable_monitor()
    return socket


def ask(socket, start):
    """The batches from a number on, and whether the end was marked."""
    socket.send_multipart([b"", start.to_bytes(8, "big")])
    batches = []
    while socket.poll(PATIENCE_MS):
        first, second, *frames = socket.recv_multipart()
        if first or second or len(frames) != 2:
            sys.exit(f"a reply is not two empty frames, a number and a batch: {[first, second, *frames]}")
        one = message(frames)
        if one["seq"] == END:
            return {"batches": batches, "ended": one["payload"] == ""}
        batches.append(one)
    return {"batches": batches, "ended": False}


def live(socket):
    received = []
    while socket.poll(QUIET_MS):
        topic, *frames = socket.recv_multipart()
        if topic:
            sys.exit(f"topic {topic}")
        received.append(message(frames))
    return received


def follow(pairs):
    context = zmq.Context()
    ranks = [[connect(context, kind, address) for kind, address in zip((zmq.SUB, zmq.DEALER), pair.split(","))] for pair in pairs]
    print("ready", flush=True)
    sys.stdin.readline()
    out = []
    for events, replay in ranks:
        batches = live(events)
        for batch in batches:
            batch["decoded"] = decode(bytes.fromhex(batch["payload"]))
        out.append({
            "live": batches,
            "all": ask(replay, 0),
            "half": ask(replay, len(batches) // 2),
            "none": ask(replay, len(batches)),
        })
    return out


if sys.argv[1] == "decode":
    document = [decode(bytes.fromhex(line)) for line in sys.stdin]
else:
    document = follow(sys.argv[2:])
print(json.dumps(document))
