/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a flow on an inspected TLS port does with the hello. */
#include "gateway/path/tcp/flow.h"

#include "gateway/path/judge.h"

/* READING, FLOW_TLS: the hello did not come whole, or is none. */
static void
flow_tls_refuse(struct flow *flow, enum reason reason, const char *detail)
{
	struct judgement verdict = verdict_plain(VERDICT_DENIED, reason, detail);
	struct flow_said said = {.claim = flow->hello->claim,
	    .claim_len = flow->hello->claim_len,
	    .hello = flow->hello,
	    .flags = flow->hello->ech ? RECORD_FLAG_ECH : 0};

	flow_refuse(flow, &verdict, &said);
}

/* READING, FLOW_TLS: a sound hello is there. */
static void
flow_tls_judge(struct flow *flow)
{
	const struct tls_hello *hello = flow->hello;
	struct flow_said said = {.claim = hello->claim,
	    .claim_len = hello->claim_len,
	    .hello = hello,
	    .hello_us = flow_since_us(flow->began_us),
	    .flags = hello->ech ? RECORD_FLAG_ECH : 0};
	struct judge_claim claim = {.naming = hello->sni == TLS_HELLO_SNI_NAME ? VERDICT_SAID : VERDICT_SILENT,
	    .source = NAME_SOURCE_SNI,
	    .name = hello->sni == TLS_HELLO_SNI_NAME ? &hello->name : NULL,
	    .ech = hello->ech};
	struct judgement verdict;

	if (hello->sni == TLS_HELLO_SNI_NOT_NAME) {
		verdict = verdict_plain(VERDICT_DENIED, REASON_SNI_MISMATCH, "the server name is no host name");
		flow_refuse(flow, &verdict, &said);
		return;
	}
	verdict = judge_attempt(flow->sandbox, &flow->ends.dst, IPPROTO_TCP, flow->ends.dport, &claim);
	if (verdict.verdict == VERDICT_ALLOWED && !flow_retry_expect(flow))
		verdict = verdict_plain(VERDICT_FAILED, REASON_INTERNAL_ERROR, "out of memory");
	if (verdict.verdict == VERDICT_ALLOWED)
		flow_open(flow, &verdict, &said);
	else
		flow_refuse(flow, &verdict, &said);
}

void
flow_tls_read(struct flow *flow)
{
	switch (tls_hello_read(flow->hello, flow->in.bytes, flow->in.len)) {
	case TLS_HELLO_MORE:
		if (flow->in.len == TLS_HELLO_BUFFER_MAX)
			flow_tls_refuse(flow, REASON_TLS_MALFORMED, "hello in too many records");
		break;
	case TLS_HELLO_DONE:
		flow_tls_judge(flow);
		break;
	case TLS_HELLO_NOT_TLS:
		flow_tls_refuse(flow, REASON_NOT_TLS, flow->hello->detail);
		break;
	case TLS_HELLO_MALFORMED:
		flow_tls_refuse(flow, REASON_TLS_MALFORMED, flow->hello->detail);
		break;
	}
}

void
flow_tls_incomplete(struct flow *flow, const char *detail)
{
	flow_tls_refuse(flow, flow->in.len == 0 ? REASON_NOT_TLS : REASON_TLS_MALFORMED, detail);
}
