"""Gloo and the store of c10d: who lost a peer is its victim."""

from __future__ import annotations

import pytest

from analyzer.model import FaultRecord
from analyzer.witnesses.gloo import WITNESS
from tests.witnesses.conftest import Reader

PAIR = "RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:598] "
BUFFER = "RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/unbound_buffer.cc:78] "
DEVICE = "RuntimeError: [enforce fail at /pytorch/third_party/gloo/gloo/transport/tcp/device.cc:83] "
STORE = "torch.distributed.DistNetworkError: "


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (f"{PAIR}Connection closed by peer [172.28.0.12]:14004", "peer_lost"),
        (f"{PAIR}Read error [192.168.70.92]:25266: Connection reset by peer", "peer_lost"),
        (f"{BUFFER}Timed out waiting 1800000ms for recv operation to complete", "hang_timeout"),
        (f"{DEVICE}ifa != nullptr. Unable to find address for: eth9", "configuration"),
        (f"{PAIR}op.preamble.length <= op.nbytes. 6232 vs 4", "unknown"),
        (
            f"{STORE}The client socket has timed out after 600000ms while trying to connect to (a, 295).",
            "peer_lost",
        ),
        (
            f"{STORE}The server socket has failed to listen on any local network address. port: 29500",
            "configuration",
        ),
        (
            "DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.",
            "hang_timeout",
        ),
        ("torch.distributed.DistStoreError: wait timeout after 300000ms, keys: /0//cpu_key", "hang_timeout"),
        ("torch.distributed.DistStoreError: Socket Timeout", "hang_timeout"),
        (f"{STORE}Connection reset by peer", "peer_lost"),
        ("RuntimeError: Broken pipe", "peer_lost"),
    ],
)
def test_what_a_socket_says_is_about_another_rank_or_the_network(read: Reader, text: str, kind: str) -> None:
    reading = read(WITNESS, text)
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.site) == (kind, "host")
    assert fault.met == (kind in {"peer_lost", "hang_timeout"})
    assert not reading.losses


def test_the_place_in_gloo_and_the_traceback_are_kept(read: Reader) -> None:
    reading = read(
        WITNESS,
        f'Traceback (most recent call last):\n  File "/srv/train.py", line 60, in step\n'
        f"    dist.barrier(group=gloo)\n{PAIR}Connection closed by peer [10.0.0.2]:41",
    )
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert fault.python is not None
    assert (fault.python.file, fault.python.line) == ("/srv/train.py", 60)
    assert fault.location is not None
    assert fault.location.line == 598
    assert (fault.block_first, fault.line) == (1, 4)


def test_the_heartbeat_of_the_store_is_the_last_thing_to_believe(read: Reader) -> None:
    """It complains as well when rank 0 has ended in good order before."""
    reading = read(
        WITNESS,
        "[W1229 22:06:38.558655037 TCPStore.cpp:106] [c10d] sendBytes failed on SocketImpl(fd=67, "
        "addr=[node1]:36214, remote=[node1]:43145): Broken pipe\n"
        "Exception raised from sendBytes at /pytorch/torch/csrc/distributed/c10d/Utils.hpp:653:\n"
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x98 (0x758 in /opt/libc10.so)\n"
        "step 12 loss 0.1",
    )
    (fault,) = reading.records
    assert isinstance(fault, FaultRecord)
    assert (fault.kind, fault.teardown, fault.last_line) == ("peer_lost", True, 3)
    assert reading.continuation == [2, 3]


def test_one_address_of_several_that_does_not_answer_is_no_fault(read: Reader) -> None:
    reading = read(
        WITNESS,
        "[W socket.cpp:764] [c10d] The client socket has failed to connect to [localhost]:29500 (errno: 99 - "
        "Cannot assign requested address).",
    )
    assert not reading.records
    assert reading.not_mine == [1]
