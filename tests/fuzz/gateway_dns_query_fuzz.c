/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A guest's message to port 53: whatever it is, the reply echoes its question, keeps the client's limit, and reads
 * back. */
#include "gateway/path/dns/dns_reply.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
check_question(const struct dns_question *question)
{
	struct name again;

	if (question->wire_len != question->name_wire_len + 4 || question->wire_len > DNS_QUESTION_MAX)
		abort();
	if (!question->name_ok)
		return;
	if (name_canonical(question->name.text, question->name.len, &again) != NAME_OK ||
	    !name_equal(&again, &question->name))
		abort();
}

/* Build a reply and look at it. */
static void
check_reply(const struct dns_reply *reply)
{
	uint8_t *bytes;
	size_t len, question_len = reply->question->has_question ? reply->question->wire_len : 0;

	if (dns_reply_build(reply, &bytes, &len) < 0)
		abort();
	if (len < DNS_HEADER_SIZE + question_len || len > reply->size_max)
		abort();
	if ((bytes[0] << 8 | bytes[1]) != reply->question->id || (bytes[2] & 0x80) == 0)
		abort();
	if ((bytes[4] << 8 | bytes[5]) != reply->question->has_question ||
	    memcmp(bytes + DNS_HEADER_SIZE, reply->question->wire, question_len) != 0)
		abort();
	free(bytes);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct addr addr = {.family = 4, .bytes = {5, 5, 5, 5}};
	struct dns_question question;
	uint16_t rcode = DNS_NOERROR;
	enum dns_read read = dns_message_read_question(bytes, len, &question, &rcode);
	struct dns_reply reply = {
	    .question = &question, .rcode = rcode, .ede = DNS_EDE_NONE, .size_max = DNS_UDP_PLAIN};

	if (read == DNS_READ_DROP)
		return 0;
	if (question.has_question)
		check_question(&question);
	check_reply(&reply);
	reply.rcode = DNS_NXDOMAIN;
	reply.negative = true;
	reply.ede = DNS_EDE_BLOCKED;
	reply.ede_text = "no rule allows this name";
	reply.size_max = question.udp_size < DNS_UDP_MAX ? question.udp_size : DNS_UDP_MAX;
	check_reply(&reply);
	if (read != DNS_READ_OK)
		return 0;
	reply = (struct dns_reply){.question = &question,
	    .addrs = &addr,
	    .addr_count = 1,
	    .ttl_s = 60,
	    .ede = DNS_EDE_NONE,
	    .size_max = DNS_UDP_PLAIN};
	if (question.name_ok) {
		reply.chain = &question.name;
		reply.chain_count = 1;
	}
	check_reply(&reply);
	return 0;
}
