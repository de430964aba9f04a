/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/community_id.h"

#include <netinet/in.h>
#include <openssl/evp.h>
#include <string.h>

/* Seed, two addresses, protocol, padding, two ports. */
#define TUPLE_MAX (2 + 2 * 16 + 2 + 2 * 2)
#define SHA1_BYTES 20

struct tuple {
	uint8_t bytes[TUPLE_MAX];
	size_t len;
};

/* Appends bytes to the tuple that is hashed. */
static void
tuple_put(struct tuple *tuple, const void *bytes, size_t len)
{
	memcpy(tuple->bytes + tuple->len, bytes, len);
	tuple->len += len;
}

/* Appends a port in network order. */
static void
tuple_put_port(struct tuple *tuple, uint16_t port)
{
	uint8_t bytes[2] = {(uint8_t)(port >> 8), (uint8_t)port};

	tuple_put(tuple, bytes, sizeof(bytes));
}

/* Does the protocol have ports that belong to a flow's identity? */
static bool
community_id_has_ports(uint8_t proto)
{
	return proto == IPPROTO_TCP || proto == IPPROTO_UDP || proto == IPPROTO_SCTP;
}

bool
community_id(const struct addr *src, uint16_t sport, const struct addr *dst, uint16_t dport, uint8_t proto,
    char ret_text[COMMUNITY_ID_MAX])
{
	size_t size = src->family == 4 ? 4 : 16;
	struct tuple tuple = {.len = 0};
	uint8_t digest[SHA1_BYTES];
	unsigned int len = sizeof(digest);
	int order;

	ret_text[0] = '\0';
	if (src->family == 0 || src->family != dst->family || proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6)
		return false;
	/* The smaller end first. */
	order = memcmp(src->bytes, dst->bytes, size);
	if (order > 0 || (order == 0 && sport > dport))
		return community_id(dst, dport, src, sport, proto, ret_text);
	tuple_put(&tuple, "\0\0", 2);
	tuple_put(&tuple, src->bytes, size);
	tuple_put(&tuple, dst->bytes, size);
	tuple_put(&tuple, &proto, 1);
	tuple_put(&tuple, "\0", 1);
	if (community_id_has_ports(proto)) {
		tuple_put_port(&tuple, sport);
		tuple_put_port(&tuple, dport);
	}
	if (EVP_Digest(tuple.bytes, tuple.len, digest, &len, EVP_sha1(), NULL) != 1)
		return false;
	memcpy(ret_text, "1:", 2);
	EVP_EncodeBlock((unsigned char *)ret_text + 2, digest, SHA1_BYTES);
	return true;
}
