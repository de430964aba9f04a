/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. The reply is put together as an ldns packet from our own data and written in one go. The builder
 * carries a sticky error: after the first failed step the rest does nothing, and a packet with an error is never
 * written. A message over the client's limit is built a second time without records and with TC set, so that the client
 * comes back over TCP. */
#include "gateway/path/dns/dns_reply.h"

#include <errno.h>
#include <ldns/ldns.h>
#include <string.h>

/* What our negative SOA record names; RFC 6761 keeps "invalid" free of meaning. */
static const uint8_t reply_mname[] = "\7postern\7invalid";
static const uint8_t reply_rname[] = "\6nobody\7invalid";
/* RFC 8482 section 4.2: CPU is "RFC8482", OS is empty. */
static const uint8_t reply_hinfo[] = "\7RFC8482";

struct reply_builder {
	ldns_pkt *packet;
	bool failed;
};

/* Hand the record's next piece of rdata over to it. */
static void
rr_put(struct reply_builder *b, ldns_rr *rr, ldns_rdf_type kind, const void *bytes, size_t len)
{
	ldns_rdf *rdf = rr == NULL ? NULL : ldns_rdf_new_frm_data(kind, len, bytes);

	if (rdf == NULL || !ldns_rr_push_rdf(rr, rdf)) {
		ldns_rdf_deep_free(rdf);
		b->failed = true;
	}
}

/* Appends a 32-bit field to a record. */
static void
rr_put_u32(struct reply_builder *b, ldns_rr *rr, uint32_t value)
{
	const uint8_t bytes[4] = {
	    (uint8_t)(value >> 24), (uint8_t)(value >> 16), (uint8_t)(value >> 8), (uint8_t)value};

	rr_put(b, rr, LDNS_RDF_TYPE_INT32, bytes, sizeof(bytes));
}

/* A record without rdata; NULL (and the builder failed) without memory. */
static ldns_rr *
rr_make(struct reply_builder *b, const uint8_t *owner, size_t owner_len, uint16_t type, uint32_t ttl_s)
{
	ldns_rr *rr = ldns_rr_new();
	ldns_rdf *name = ldns_rdf_new_frm_data(LDNS_RDF_TYPE_DNAME, owner_len, owner);

	if (rr == NULL || name == NULL) {
		ldns_rr_free(rr);
		ldns_rdf_deep_free(name);
		b->failed = true;
		return NULL;
	}
	ldns_rr_set_owner(rr, name);
	ldns_rr_set_type(rr, (ldns_rr_type)type);
	ldns_rr_set_class(rr, LDNS_RR_CLASS_IN);
	ldns_rr_set_ttl(rr, ttl_s);
	return rr;
}

/* Adds a record to a section; takes it, also on failure. NULL: it could not be made. */
static void
push_own(struct reply_builder *b, ldns_pkt_section section, ldns_rr *rr)
{
	if (rr == NULL)
		return;
	if (b->failed || !ldns_pkt_push_rr(b->packet, section, rr)) {
		ldns_rr_free(rr);
		b->failed = true;
	}
}

/* Repeats the question byte for byte. */
static void
put_question(struct reply_builder *b, const struct dns_question *question)
{
	ldns_rr *rr;

	if (!question->has_question)
		return;
	rr = rr_make(b, question->wire, question->name_wire_len, question->type, 0);
	if (rr == NULL)
		return;
	ldns_rr_set_class(rr, (ldns_rr_class)question->class);
	ldns_rr_set_question(rr, true);
	push_own(b, LDNS_SECTION_QUESTION, rr);
}

/* One record of the answer section with its rdata as it stands on the wire. */
static void
put_answer(struct reply_builder *b, const struct dns_reply *reply, const uint8_t *owner, size_t owner_len,
    uint16_t type, ldns_rdf_type kind, const void *rdata, size_t rdata_len)
{
	ldns_rr *rr = rr_make(b, owner, owner_len, type, reply->ttl_s);

	rr_put(b, rr, kind, rdata, rdata_len);
	push_own(b, LDNS_SECTION_ANSWER, rr);
}

/* The chain from the question's own spelling on, then the data at its end. */
static void
put_answers(struct reply_builder *b, const struct dns_reply *reply)
{
	uint8_t owner[DNS_NAME_WIRE_MAX], target[DNS_NAME_WIRE_MAX];
	size_t owner_len = reply->question->name_wire_len;

	memcpy(owner, reply->question->wire, owner_len);
	for (size_t i = 0; i < reply->chain_count; i++) {
		size_t target_len = dns_message_write_name(&reply->chain[i], target);

		put_answer(b, reply, owner, owner_len, DNS_TYPE_CNAME, LDNS_RDF_TYPE_DNAME, target, target_len);
		memcpy(owner, target, target_len);
		owner_len = target_len;
	}
	for (size_t i = 0; i < reply->addr_count; i++) {
		bool four = reply->addrs[i].family == 4;

		put_answer(b, reply, owner, owner_len, four ? DNS_TYPE_A : DNS_TYPE_AAAA,
		    four ? LDNS_RDF_TYPE_A : LDNS_RDF_TYPE_AAAA, reply->addrs[i].bytes, four ? 4 : 16);
	}
	for (size_t i = 0; i < reply->service_count; i++)
		put_answer(b, reply, owner, owner_len, reply->question->type, LDNS_RDF_TYPE_UNKNOWN,
		    reply->services[i].bytes, reply->services[i].len);
	if (reply->hinfo)
		put_answer(b, reply, owner, owner_len, DNS_TYPE_HINFO, LDNS_RDF_TYPE_UNKNOWN, reply_hinfo,
		    sizeof(reply_hinfo));
}

/* RFC 2308: how long a negative answer may be kept is the smaller of the SOA record's TTL and its last number. */
static void
put_negative(struct reply_builder *b, const struct dns_question *question)
{
	ldns_rr *rr = rr_make(b, question->wire, question->name_wire_len, DNS_TYPE_SOA, DNS_NEGATIVE_TTL_S);

	rr_put(b, rr, LDNS_RDF_TYPE_DNAME, reply_mname, sizeof(reply_mname));
	rr_put(b, rr, LDNS_RDF_TYPE_DNAME, reply_rname, sizeof(reply_rname));
	rr_put_u32(b, rr, 1);    /* serial */
	rr_put_u32(b, rr, 3600); /* refresh, retry, expire: there is no secondary to use them */
	rr_put_u32(b, rr, 600);
	rr_put_u32(b, rr, 86400);
	rr_put_u32(b, rr, DNS_NEGATIVE_TTL_S);
	push_own(b, LDNS_SECTION_AUTHORITY, rr);
}

/* Adds the Extended DNS Error with its text. */
static void
put_ede(struct reply_builder *b, const struct dns_reply *reply)
{
	uint8_t data[2 + DNS_EDE_TEXT_MAX];
	size_t text_len = reply->ede_text == NULL ? 0 : strnlen(reply->ede_text, DNS_EDE_TEXT_MAX);
	ldns_edns_option_list *list = ldns_edns_option_list_new();
	ldns_edns_option *option;

	data[0] = (uint8_t)(reply->ede >> 8);
	data[1] = (uint8_t)reply->ede;
	if (text_len > 0)
		memcpy(data + 2, reply->ede_text, text_len);
	option = ldns_edns_new_from_data(LDNS_EDNS_EDE, 2 + text_len, data);
	if (list == NULL || option == NULL || !ldns_edns_option_list_push(list, option)) {
		ldns_edns_deep_free(option);
		ldns_edns_option_list_deep_free(list);
		b->failed = true;
		return;
	}
	ldns_pkt_set_edns_option_list(b->packet, list);
}

/* Sets id, flags and code. */
static void
put_header(ldns_pkt *packet, const struct dns_reply *reply, bool truncated)
{
	ldns_pkt_set_id(packet, reply->question->id);
	ldns_pkt_set_opcode(packet, (ldns_pkt_opcode)reply->question->opcode);
	ldns_pkt_set_qr(packet, true);
	ldns_pkt_set_rd(packet, reply->question->rd);
	ldns_pkt_set_ra(packet, true);
	ldns_pkt_set_tc(packet, truncated);
	ldns_pkt_set_rcode(packet, (uint8_t)(reply->rcode & 0xf));
}

/* Build and write one packet. 0 or -errno. */
static int
reply_write(const struct dns_reply *reply, bool truncated, uint8_t **ret_bytes, size_t *ret_len)
{
	struct reply_builder b = {.packet = ldns_pkt_new()};
	int rc = -ENOMEM;

	if (b.packet == NULL)
		return -ENOMEM;
	put_header(b.packet, reply, truncated);
	put_question(&b, reply->question);
	if (!truncated && reply->question->has_question) {
		put_answers(&b, reply);
		if (reply->negative)
			put_negative(&b, reply->question);
	}
	if (reply->question->has_edns) {
		ldns_pkt_set_edns_udp_size(b.packet, DNS_UDP_MAX);
		ldns_pkt_set_edns_extended_rcode(b.packet, (uint8_t)(reply->rcode >> 4));
		if (reply->ede != DNS_EDE_NONE && !truncated)
			put_ede(&b, reply);
	}
	if (!b.failed && ldns_pkt2wire(ret_bytes, b.packet, ret_len) == LDNS_STATUS_OK)
		rc = 0;
	ldns_pkt_free(b.packet);
	return rc;
}

int
dns_reply_build(const struct dns_reply *reply, uint8_t **ret_bytes, size_t *ret_len)
{
	uint8_t *bytes = NULL;
	size_t len = 0;
	int rc = reply_write(reply, false, &bytes, &len);

	if (rc == 0 && len > reply->size_max) {
		free(bytes);
		rc = reply_write(reply, true, &bytes, &len);
	}
	if (rc < 0)
		return rc;
	*ret_bytes = bytes;
	*ret_len = len;
	return 0;
}
