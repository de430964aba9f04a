/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/export_text.h"

#include "audit/record.h"
#include "audit/render_text.h"
#include "policy/reason.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *
export_host(const struct query_row *row, char *ret_text, size_t size)
{
	struct name name;
	bool plain = row->name.len > 0 && name_canonical(row->name.bytes, row->name.len, &name) == NAME_OK;

	return render_escape(plain ? row->name : (struct query_text){.bytes = NULL}, ret_text, size);
}

const char *
export_address(struct query_text text, char ret_text[64])
{
	unsigned char bytes[16];

	ret_text[0] = '\0';
	if (text.len == 0 || text.len >= INET6_ADDRSTRLEN)
		return ret_text;
	memcpy(ret_text, text.bytes, text.len);
	ret_text[text.len] = '\0';
	if (strlen(ret_text) != text.len ||
	    (inet_pton(AF_INET, ret_text, bytes) != 1 && inet_pton(AF_INET6, ret_text, bytes) != 1))
		ret_text[0] = '\0';
	return ret_text;
}

bool
export_is(struct query_text text, const char *word)
{
	return text.len == strlen(word) && memcmp(text.bytes, word, text.len) == 0;
}

const char *
export_id(const struct query_row *row, char ret_text[24])
{
	snprintf(ret_text, 24, "%016" PRIx64, row->id);
	return ret_text;
}

const char *
export_verdict(const struct query_row *row)
{
	return verdict_text(render_index(row->verdict));
}

const char *
export_reason(const struct query_row *row)
{
	return reason_text(render_index(row->reason));
}

const char *
export_tls_version(const struct query_row *row)
{
	static const char *const versions[] = {"1.0", "1.1", "1.2", "1.3"};

	/* 0x0301 is TLS 1.0 (RFC 8446, 4.2.1). */
	if (!row->tls_version.set || row->tls_version.value < 0x0301 || row->tls_version.value > 0x0304)
		return NULL;
	return versions[row->tls_version.value - 0x0301];
}

bool
export_learned(const struct query_row *row)
{
	return (row->flags & RECORD_FLAG_LEARN) != 0 || export_is(row->rule, RECORD_RULE_LEARN);
}
