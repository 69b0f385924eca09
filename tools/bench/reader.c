/* The yardstick: a plain single-pass reader that fills the same columns of the same types as roce-pkt.
 *
 * Written by hand from the protocol texts, knowing nothing of the package's tables. It reads little-endian
 * pcap with Ethernet frames: VLAN tags, IPv4, IPv6, UDP 4791, BTH and every extended header.
 * Columns that such frames cannot have (tunnels, native InfiniBand, GRH, pauses) stay as they were allocated: zero.
 * The bench compares a checksum of every column with the package's own, so nothing may be left out.
 */
#include <stdint.h>
#include <stddef.h>
#include <string.h>

typedef uint8_t u8; typedef uint16_t u16; typedef uint32_t u32; typedef uint64_t u64; typedef int64_t i64; typedef int8_t i8;

struct columns {
    i64 *number, *time_ns;
    u64 *offset;
    u32 *wire_len, *cap_len;
    u16 *interface_id, *link_type;
    u8 *kind, *hint;
    u16 *hint_value;
    u8 *status;
    u32 *headers;
    u64 *eth_dst, *eth_src;
    u16 *eth_type;
    u8 *vlan_count, *pcp, *dei;
    u16 *vid;
    u8 *pcp2, *dei2;
    u16 *vid2;
    u8 *ip_version;
    u64 *src_hi, *src_lo, *dst_hi, *dst_lo;
    u8 *dscp, *ecn, *ttl;
    u16 *ip_len, *ip_id;
    u8 *df, *mf;
    u16 *frag, *ip_chksum;
    u8 *ip_proto;
    u32 *flowlabel;
    u16 *sport, *dport, *udp_len, *udp_chksum;
    u8 *opcode, *solicited, *migreq, *padcount, *bth_version;
    u16 *pkey;
    u8 *fecn, *becn, *resv6;
    u32 *dqpn;
    u8 *ackreq, *resv7;
    u32 *psn, *eec, *srqn, *qkey, *sqpn;
    u64 *va;
    u32 *rkey, *dmalen;
    u64 *swap, *compare;
    u8 *syndrome;
    u32 *msn;
    u64 *orig;
    u32 *imm, *inv_rkey;
    u8 *sel, *plt;
    u16 *l3_offset, *bth_offset, *payload_offset;
    u32 *payload_len, *trailer_len, *icrc;
    i8 *icrc_ok;
};

/* Codes that are the package's own convention; the bench passes them in. */
struct codes {
    u8 rocev2, hint_udp, hint_arp, hint_ethertype, hint_icmp, hint_icmpv6, hint_igmp, hint_proto, hint_tcp;
    u32 eth, vlan, ipv4, ipv6, udp, bth, rdeth, xrceth, deth, feth, reth, atomiceth, aeth, atomicacketh, immdt, ieth, cnp;
};

static inline u16 le16(const u8 *p) { u16 v; memcpy(&v, p, 2); return v; }
static inline u32 le32(const u8 *p) { u32 v; memcpy(&v, p, 4); return v; }
static inline u16 be16(const u8 *p) { return __builtin_bswap16(le16(p)); }
static inline u32 be32(const u8 *p) { return __builtin_bswap32(le32(p)); }
static inline u64 be64(const u8 *p) { u64 v; memcpy(&v, p, 8); return __builtin_bswap64(v); }
static inline u64 be48(const u8 *p) { return (u64)be16(p) << 32 | be32(p + 2); }
static inline u32 be24(const u8 *p) { return (u32)p[0] << 16 | (u32)p[1] << 8 | p[2]; }

#define RDETH 1
#define XRCETH 2
#define DETH 4
#define FETH 8
#define RETH 16
#define ATOMICETH 32
#define AETH 64
#define ATOMICACKETH 128
#define IMMDT 256
#define IETH 512
#define CNPB 1024
#define PAYLOAD 2048
#define KNOWN 4096

static u16 follow[256];

static void make_follow(void) {
    static const u16 rc[32] = {
        [0x00] = PAYLOAD, [0x01] = PAYLOAD, [0x02] = PAYLOAD, [0x03] = IMMDT | PAYLOAD, [0x04] = PAYLOAD,
        [0x05] = IMMDT | PAYLOAD, [0x06] = RETH | PAYLOAD, [0x07] = PAYLOAD, [0x08] = PAYLOAD,
        [0x09] = IMMDT | PAYLOAD, [0x0a] = RETH | PAYLOAD, [0x0b] = RETH | IMMDT | PAYLOAD, [0x0c] = RETH,
        [0x0d] = AETH | PAYLOAD, [0x0e] = PAYLOAD, [0x0f] = AETH | PAYLOAD, [0x10] = AETH | PAYLOAD, [0x11] = AETH,
        [0x12] = AETH | ATOMICACKETH, [0x13] = ATOMICETH, [0x14] = ATOMICETH, [0x16] = IETH | PAYLOAD,
        [0x17] = IETH | PAYLOAD, [0x1c] = FETH | RETH, [0x1d] = RETH | PAYLOAD,
    };
    for (int op = 0; op < 32; op++) {
        int response = (op >= 0x0d && op <= 0x12);
        follow[op] = rc[op];
        follow[0x20 | op] = op <= 0x0b ? rc[op] : 0;
        if (op <= 0x14)
            follow[0x40 | op] = rc[op] | RDETH | (response ? 0 : DETH);
        if (rc[op])
            follow[0xa0 | op] = rc[op] | (response ? 0 : XRCETH);
    }
    follow[0x55] = RDETH | DETH;
    follow[0x5c] = RDETH | FETH | RETH;
    follow[0x64] = DETH | PAYLOAD;
    follow[0x65] = DETH | IMMDT | PAYLOAD;
    follow[0x81] = CNPB;
}

/* Returns the number of frames. */
i64 read_capture(const u8 *file, u64 size, struct columns *c, const struct codes *k, u64 capacity) {
    if (!follow[0])
        make_follow();
    u64 pos = 24, n = 0, tick = le32(file) == 0xa1b23c4d ? 1 : 1000; /* nanosecond or microsecond pcap */
    u16 link = (u16)le32(file + 20);
    while (pos + 16 <= size && n < capacity) {
        u32 cap = le32(file + pos + 8), wire = le32(file + pos + 12);
        const u8 *f = file + pos + 16;
        if (pos + 16 + cap > size)
            break;
        c->number[n] = (i64)n + 1;
        c->time_ns[n] = (i64)le32(file + pos) * 1000000000 + (i64)(le32(file + pos + 4) * tick);
        c->offset[n] = pos + 16;
        c->wire_len[n] = wire;
        c->cap_len[n] = cap;
        c->interface_id[n] = 0;
        c->link_type[n] = link;
        pos += 16 + cap;
        u8 kind = 0, hint = 0;
        u16 hint_value = 0;
        u32 headers = 0, at = 0, end = wire > cap ? wire : cap, l3 = 0, proto = 256, vlans = 0, type;
        u32 bth = 0, payload = 0, payload_len = 0, trailer = 0, icrc = 0;
        if (cap < 14)
            goto out;
        c->eth_dst[n] = be48(f);
        c->eth_src[n] = be48(f + 6);
        type = be16(f + 12);
        c->eth_type[n] = type;
        headers |= k->eth;
        at = 14;
        while ((type == 0x8100 || type == 0x88a8 || type == 0x9100) && at + 4 <= cap) {
            u16 tag = be16(f + at);
            if (vlans == 0) {
                c->pcp[n] = tag >> 13; c->dei[n] = tag >> 12 & 1; c->vid[n] = tag & 0xfff;
            } else if (vlans == 1) {
                c->pcp2[n] = tag >> 13; c->dei2[n] = tag >> 12 & 1; c->vid2[n] = tag & 0xfff;
            }
            headers |= k->vlan;
            type = be16(f + at + 2);
            at += 4;
            vlans++;
        }
        if (type == 0x0800 && at + 20 <= cap) {
            u32 ihl = (f[at] & 15) * 4, len = be16(f + at + 2);
            u16 fr = be16(f + at + 6);
            l3 = at;
            headers |= k->ipv4;
            c->ip_version[n] = f[at] >> 4;
            c->dscp[n] = f[at + 1] >> 2;
            c->ecn[n] = f[at + 1] & 3;
            c->ip_len[n] = len;
            c->ip_id[n] = be16(f + at + 4);
            c->df[n] = fr >> 14 & 1;
            c->mf[n] = fr >> 13 & 1;
            c->frag[n] = fr & 0x1fff;
            c->ttl[n] = f[at + 8];
            c->ip_proto[n] = proto = f[at + 9];
            c->ip_chksum[n] = be16(f + at + 10);
            c->src_hi[n] = c->dst_hi[n] = 0;
            c->src_lo[n] = 0xffff00000000ull | be32(f + at + 12);
            c->dst_lo[n] = 0xffff00000000ull | be32(f + at + 16);
            if (at + len < end)
                end = at + len;
            at += ihl;
        } else if (type == 0x86dd && at + 40 <= cap) {
            u32 word = be32(f + at), len = be16(f + at + 4);
            l3 = at;
            headers |= k->ipv6;
            c->ip_version[n] = word >> 28;
            c->dscp[n] = word >> 22 & 63;
            c->ecn[n] = word >> 20 & 3;
            c->flowlabel[n] = word & 0xfffff;
            c->ip_len[n] = len;
            c->ip_proto[n] = proto = f[at + 6];
            c->ttl[n] = f[at + 7];
            c->src_hi[n] = be64(f + at + 8);
            c->src_lo[n] = be64(f + at + 16);
            c->dst_hi[n] = be64(f + at + 24);
            c->dst_lo[n] = be64(f + at + 32);
            if (at + 40 + len < end)
                end = at + 40 + len;
            at += 40;
            while (proto == 0 && at + 8 <= cap && at + 8 + 8 * f[at + 1] <= cap) {
                proto = f[at];
                at += 8 + 8 * f[at + 1];
            }
        } else {
            hint = type == 0x0806 ? k->hint_arp : k->hint_ethertype;
            hint_value = type == 0x0806 ? 0 : type;
            goto out;
        }
        if (proto != 17 || at + 8 > cap) {
            hint = proto == 1 ? k->hint_icmp : proto == 2 ? k->hint_igmp : proto == 6 ? k->hint_tcp
                 : proto == 58 ? k->hint_icmpv6 : k->hint_proto;
            goto out;
        }
        {
            u16 dport = be16(f + at + 2), ulen = be16(f + at + 4);
            headers |= k->udp;
            c->sport[n] = be16(f + at);
            c->dport[n] = dport;
            c->udp_len[n] = ulen;
            c->udp_chksum[n] = be16(f + at + 6);
            if (at + ulen < end)
                end = at + ulen;
            at += 8;
            if (dport != 4791) {
                hint = k->hint_udp;
                goto out;
            }
        }
        kind = k->rocev2;
        u32 limit = end - 4, stop = limit < cap ? limit : cap;
        if (end <= cap && at + 16 <= end)
            icrc = be32(f + limit);
        if (at + 12 > stop)
            goto out;
        {
            const u8 *b = f + at;
            u8 op = b[0];
            u32 what = follow[op], pads = b[1] >> 4 & 3;
            bth = at;
            headers |= k->bth;
            c->opcode[n] = op;
            c->solicited[n] = b[1] >> 7;
            c->migreq[n] = b[1] >> 6 & 1;
            c->padcount[n] = pads;
            c->bth_version[n] = b[1] & 15;
            c->pkey[n] = be16(b + 2);
            c->fecn[n] = b[4] >> 7;
            c->becn[n] = b[4] >> 6 & 1;
            c->resv6[n] = b[4] & 63;
            c->dqpn[n] = be24(b + 5);
            c->ackreq[n] = b[8] >> 7;
            c->resv7[n] = b[8] & 127;
            c->psn[n] = be24(b + 9);
            at += 12;
            if (what & RDETH && at + 4 <= stop) { c->eec[n] = be24(f + at + 1); headers |= k->rdeth; at += 4; }
            if (what & XRCETH && at + 4 <= stop) { c->srqn[n] = be24(f + at + 1); headers |= k->xrceth; at += 4; }
            if (what & DETH && at + 8 <= stop) {
                c->qkey[n] = be32(f + at); c->sqpn[n] = be24(f + at + 5); headers |= k->deth; at += 8;
            }
            if (what & FETH && at + 4 <= stop) {
                c->sel[n] = f[at + 3] >> 4 & 3; c->plt[n] = f[at + 3] & 15; headers |= k->feth; at += 4;
            }
            if (what & RETH && at + 16 <= stop) {
                c->va[n] = be64(f + at); c->rkey[n] = be32(f + at + 8); c->dmalen[n] = be32(f + at + 12);
                headers |= k->reth; at += 16;
            }
            if (what & ATOMICETH && at + 28 <= stop) {
                c->va[n] = be64(f + at); c->rkey[n] = be32(f + at + 8); c->swap[n] = be64(f + at + 12);
                c->compare[n] = be64(f + at + 20); headers |= k->atomiceth; at += 28;
            }
            if (what & AETH && at + 4 <= stop) {
                c->syndrome[n] = f[at]; c->msn[n] = be24(f + at + 1); headers |= k->aeth; at += 4;
            }
            if (what & ATOMICACKETH && at + 8 <= stop) { c->orig[n] = be64(f + at); headers |= k->atomicacketh; at += 8; }
            if (what & IMMDT && at + 4 <= stop) { c->imm[n] = be32(f + at); headers |= k->immdt; at += 4; }
            if (what & IETH && at + 4 <= stop) { c->inv_rkey[n] = be32(f + at); headers |= k->ieth; at += 4; }
            if (what & CNPB && at + 16 <= stop) { headers |= k->cnp; at += 16; }
            payload = at;
            u32 left = limit > at ? limit - at : 0;
            if (!(what & PAYLOAD))
                pads = 0;
            payload_len = left - (pads < left ? pads : left);
            trailer = cap > end ? cap - end : 0;
        }
    out:
        c->kind[n] = kind;
        c->hint[n] = hint;
        c->hint_value[n] = hint_value;
        c->status[n] = 0;
        c->headers[n] = headers;
        c->vlan_count[n] = vlans;
        c->l3_offset[n] = l3;
        c->bth_offset[n] = bth;
        c->payload_offset[n] = payload;
        c->payload_len[n] = payload_len;
        c->trailer_len[n] = trailer;
        c->icrc[n] = icrc;
        c->icrc_ok[n] = -1;
        n++;
    }
    return (i64)n;
}

/* Every octet once, nothing made of them: what memory allows. */
u64 sum_octets(const u8 *file, u64 size) {
    u64 sum = 0, word;
    for (u64 at = 0; at + 8 <= size; at += 8) {
        memcpy(&word, file + at, 8);
        sum += word;
    }
    return sum;
}
