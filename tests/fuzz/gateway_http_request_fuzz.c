/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A guest's bytes on an HTTP port, whole and in pieces: the same heads, the same bytes passed, the same refusal. */
#include "gateway/path/tcp/http_request.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

struct outcome {
	size_t heads, passed;
	enum http_request_event last;
	enum reason reason;
	uint64_t hosts; /* a sum over what the heads named */
};

static void
head_check(const struct http_head *head, struct outcome *out)
{
	struct name again;

	if (head->host.name.len > 0) {
		if (name_canonical(head->host.name.text, head->host.name.len, &again) != NAME_OK ||
		    !name_equal(&again, &head->host.name))
			abort();
	} else if (head->host.literal.family == 0) {
		abort();
	}
	out->heads++;
	for (size_t i = 0; i < head->host.name.len; i++)
		out->hosts = out->hosts * 31 + (uint8_t)head->host.name.text[i];
}

static void
drain(struct http_request *request, const uint8_t *bytes, size_t len, struct outcome *out)
{
	for (;;) {
		size_t used;

		out->last = http_request_next(request, bytes + out->passed, len - out->passed, &used);
		if (out->last == HTTP_REQUEST_HELD) {
			http_request_upgraded(request, out->heads % 2 == 0);
			continue;
		}
		if (out->last == HTTP_REQUEST_HEAD) {
			head_check(&request->head, out);
			http_request_accept(request);
		} else if (out->last != HTTP_REQUEST_BODY) {
			break;
		}
		if (used == 0 || used > len - out->passed)
			abort();
		out->passed += used;
	}
	if (out->last == HTTP_REQUEST_REJECTED && request->head.detail == NULL)
		abort();
	/* The caller's buffer must be able to hold what is not decided. */
	if (out->last == HTTP_REQUEST_MORE && len - out->passed > HTTP_REQUEST_HEAD_MAX)
		abort();
	out->reason = out->last == HTTP_REQUEST_REJECTED ? request->head.reason : REASON_ALLOWED;
}

static struct outcome
feed(const uint8_t *bytes, size_t len, size_t step)
{
	static const uint8_t four[4] = {93, 184, 216, 34};
	struct addr destination = addr_from_ipv4(four);
	struct http_request request;
	struct outcome out = {0};

	http_request_init(&request, &destination, 80);
	for (size_t at = 0; at < len && out.last != HTTP_REQUEST_REJECTED;) {
		at = at + step < len ? at + step : len;
		drain(&request, bytes, at, &out);
	}
	return out;
}

/* The first byte says how the rest is cut. */
int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct outcome whole, cut;

	if (len < 2)
		return 0;
	whole = feed(bytes + 1, len - 1, len);
	cut = feed(bytes + 1, len - 1, (size_t)bytes[0] + 1);
	if (whole.heads != cut.heads || whole.passed != cut.passed || whole.last != cut.last ||
	    whole.reason != cut.reason || whole.hosts != cut.hosts)
		abort();
	return 0;
}
