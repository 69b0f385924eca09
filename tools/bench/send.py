"""How many frames a second `roce-pkt send` puts on a veth pair, beside a plain C sendmmsg loop.

    unshare -n python tools/bench/send.py [--frames N] [--size OCTETS]

Both send the same frames from memory to the same interface, in turns; the median of five counts.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
from pathlib import Path

from roce_pkt.capture import Record
from roce_pkt.capture import open as open_capture
from roce_pkt.capture.writer import write_pcap
from roce_pkt.run.send import Pace, Sender
from roce_pkt.run.wire_socket import WireSocket
from roce_pkt.wire.build import Path as Way
from roce_pkt.wire.build import roce_frame

PLAIN_C = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
int main(int argc, char **argv) {
    int frames = atoi(argv[2]), size = atoi(argv[3]), batch = 512, done = 0;
    int s = socket(AF_PACKET, SOCK_RAW, 0), room = 4 << 20;
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_ifindex = if_nametoindex(argv[1])};
    setsockopt(s, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    if (bind(s, (void *)&to, sizeof to)) return 1;
    char *octets = malloc((size_t)frames * size);
    FILE *in = fopen(argv[4], "rb");
    if (fread(octets, size, frames, in) != (size_t)frames) return 2;
    struct mmsghdr m[512]; struct iovec v[512];
    memset(m, 0, sizeof m);
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    while (done < frames) {
        int n = frames - done < batch ? frames - done : batch;
        for (int i = 0; i < n; i++) {
            v[i].iov_base = octets + (size_t)(done + i) * size; v[i].iov_len = size;
            m[i].msg_hdr.msg_iov = &v[i]; m[i].msg_hdr.msg_iovlen = 1;
        }
        int k = sendmmsg(s, m, n, 0);
        if (k > 0) done += k;
    }
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%f\n", frames / ((b.tv_sec - a.tv_sec) + (b.tv_nsec - a.tv_nsec) / 1e9));
    return 0;
}
"""


def main() -> None:
    """Print both rates and their ratio."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("--frames", type=int, default=200_000)
    words.add_argument("--size", type=int, default=1024, help="payload octets")
    given = words.parse_args()
    ip = "link add va type veth peer name vb", "link set va mtu 9000 up", "link set vb mtu 9000 up"
    for line in ip:
        subprocess.run(["ip", *line.split()], check=True)
    with tempfile.TemporaryDirectory() as name:
        ours, plain = [], []
        folder = Path(name)
        frames = [roce_frame(Way(), 4, {"bth": {"psn": n}}, bytes(given.size)) for n in range(1000)]
        frames = (frames * (given.frames // 1000 + 1))[: given.frames]
        (folder / "raw").write_bytes(b"".join(frames))
        write_pcap(
            folder / "a.pcap", (Record(i, 0, 0, 1, len(f), len(f), f) for i, f in enumerate(frames, 1))
        )
        (folder / "plain.c").write_text(PLAIN_C)
        subprocess.run(["gcc", "-O2", "-o", folder / "plain", folder / "plain.c"], check=True)
        for _ in range(5):
            command = [
                str(folder / "plain"),
                "va",
                str(len(frames)),
                str(len(frames[0])),
                str(folder / "raw"),
            ]
            plain.append(float(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
            with WireSocket("va") as wire:
                done = Sender(open_capture(folder / "a.pcap"), wire, Pace(flat_out=True)).run()
            ours.append(done.sent / done.seconds)
    mine, theirs = statistics.median(ours), statistics.median(plain)
    print(f"roce-pkt send {mine:,.0f} frames/s, C sendmmsg {theirs:,.0f} frames/s: {mine / theirs:.2f}")


if __name__ == "__main__":
    main()
