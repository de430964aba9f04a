/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What comes back from upstream: only canonical names and counted addresses come out, and the rebuilt reply reads back.
 *
 * The first byte chooses the type asked for; with its top bit the rest is the whole answer. Without it the rest is the
 * header from the flags on (10 bytes) and what follows the question, so that a search does not have to guess our id. */
#include "gateway/path/dns/dns_reply.h"
#include "gateway/path/dns/dns_service.h"

#include <ldns/ldns.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define MESSAGE_MAX 65535
#define HEADER_REST 10

static const struct name asked = {.len = 15, .text = "www.example.com"};

static size_t
make_message(const uint8_t *bytes, size_t len, const uint8_t *query, size_t query_len, uint8_t *ret_message)
{
	size_t question_len = query_len - DNS_HEADER_SIZE - DNS_OPT_SIZE;

	if (len < HEADER_REST || len + 2 + question_len > MESSAGE_MAX)
		return 0;
	memcpy(ret_message, query, 2);
	memcpy(ret_message + 2, bytes, HEADER_REST);
	memcpy(ret_message + DNS_HEADER_SIZE, query + DNS_HEADER_SIZE, question_len);
	memcpy(ret_message + DNS_HEADER_SIZE + question_len, bytes + HEADER_REST, len - HEADER_REST);
	return 2 + len + question_len;
}

static void
check_chain(const struct dns_chain *chain)
{
	if (chain->count > DNS_CHAIN_MAX)
		abort();
	for (size_t i = 0; i < chain->count; i++) {
		struct name again;

		if (name_canonical(chain->names[i].text, chain->names[i].len, &again) != NAME_OK ||
		    !name_equal(&again, &chain->names[i]) || name_equal(&again, &asked))
			abort();
		for (size_t j = 0; j < i; j++)
			if (name_equal(&chain->names[i], &chain->names[j]))
				abort();
	}
}

/* Records that pass are written, read again, and must be the same. Returns how many were written. */
static size_t
check_services(const struct dns_answer *answer, const struct name *owner, struct dns_rdata *ret_records)
{
	size_t count = 0;

	for (size_t i = 0; i < answer->service_count; i++) {
		struct dns_service service, again;
		struct dns_rdata *record = &ret_records[count];

		if (dns_service_read(answer->services[i].bytes, answer->services[i].len, owner, &service) != NULL)
			continue;
		record->len = dns_service_write(&service, record->bytes);
		if (record->len == 0)
			continue;
		if (record->len > DNS_SERVICE_RDATA_MAX ||
		    dns_service_read(record->bytes, record->len, owner, &again) != NULL ||
		    memcmp(&service, &again, sizeof(service)) != 0)
			abort();
		count++;
	}
	return count;
}

static void
check_reply(const struct dns_chain *chain, const struct dns_answer *answer, uint16_t type)
{
	static struct dns_rdata records[DNS_SERVICES_MAX];
	const struct name *owner = chain->count == 0 ? &asked : &chain->names[chain->count - 1];
	struct dns_question question;
	uint8_t query[DNS_QUERY_MAX], *bytes;
	size_t query_len = dns_message_write_query(&asked, type, 1, 0, query), len;
	struct dns_reply reply = {.question = &question,
	    .ttl_s = chain->ttl_s,
	    .chain = chain->names,
	    .chain_count = chain->count,
	    .addrs = answer->addrs,
	    .addr_count = answer->addr_count < 64 ? answer->addr_count : 64,
	    .services = records,
	    .ede = DNS_EDE_NONE,
	    .size_max = MESSAGE_MAX};
	ldns_pkt *packet = NULL;
	uint16_t rcode;

	if (dns_message_read_question(query, query_len, &question, &rcode) != DNS_READ_OK)
		abort();
	reply.service_count = check_services(answer, owner, records);
	if (dns_reply_build(&reply, &bytes, &len) < 0 || ldns_wire2pkt(&packet, bytes, len) != LDNS_STATUS_OK)
		abort();
	if (ldns_pkt_ancount(packet) != reply.chain_count + reply.addr_count + reply.service_count)
		abort();
	ldns_pkt_free(packet);
	free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const uint16_t types[] = {DNS_TYPE_A, DNS_TYPE_AAAA, DNS_TYPE_CNAME, DNS_TYPE_HTTPS, DNS_TYPE_SVCB};
	static uint8_t message[MESSAGE_MAX];
	static struct dns_answer answer;
	struct dns_chain chain = {.ttl_s = UINT32_MAX};
	uint8_t query[DNS_QUERY_MAX];
	size_t query_len;
	uint16_t type;

	if (len == 0 || len > MESSAGE_MAX)
		return 0;
	type = types[(bytes[0] & 0x7f) % (sizeof(types) / sizeof(types[0]))];
	query_len = dns_message_write_query(&asked, type, 0xbeef, 0, query);
	if ((bytes[0] & 0x80) != 0) {
		dns_message_read_answer(bytes + 1, len - 1, query, query_len, &asked, &chain, &answer);
	} else {
		len = make_message(bytes + 1, len - 1, query, query_len, message);
		dns_message_read_answer(message, len, query, query_len, &asked, &chain, &answer);
	}
	check_chain(&chain);
	if (answer.addr_count > DNS_ADDRS_MAX || answer.service_count > DNS_SERVICES_MAX)
		abort();
	if (answer.kind == DNS_ANSWER_DATA)
		check_reply(&chain, &answer, type);
	return 0;
}
