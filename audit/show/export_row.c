/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/export_row.h"
#include "audit/show/render.h"

#include "audit/record.h"
#include "policy/reason.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *
export_row_host(const struct query_row *row, char *ret_text, size_t size)
{
	struct name name;
	bool plain = row->name.len > 0 && name_canonical(row->name.bytes, row->name.len, &name) == NAME_OK;

	return render_escape(plain ? row->name : (struct query_text){.bytes = NULL}, ret_text, size);
}

const char *
export_row_address(struct query_text text, char ret_text[64])
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

const char *
export_row_id(const struct query_row *row, char ret_text[24])
{
	snprintf(ret_text, 24, "%016" PRIx64, row->id);
	return ret_text;
}

const char *
export_row_tls_version(const struct query_row *row)
{
	static const char *const versions[] = {"1.0", "1.1", "1.2", "1.3"};

	/* 0x0301 is TLS 1.0 (RFC 8446, 4.2.1). */
	if (!row->tls_version.set || row->tls_version.value < 0x0301 || row->tls_version.value > 0x0304)
		return NULL;
	return versions[row->tls_version.value - 0x0301];
}

bool
export_row_learned(const struct query_row *row)
{
	return (row->flags & RECORD_FLAG_LEARN) != 0 || render_is(row->rule, RECORD_RULE_LEARN);
}

bool
export_row_is_tls(const struct query_row *row)
{
	return row->tls_version.set || row->ja4.len > 0 || row->name_source == NAME_SOURCE_SNI;
}

bool
export_row_is_http(const struct query_row *row)
{
	return row->http_method.len > 0 || row->name_source == NAME_SOURCE_HOST;
}

const char *
export_row_sandbox_id(const struct query_row *row, char ret_text[24])
{
	snprintf(ret_text, 24, "%" PRId64, row->sandbox_id);
	return ret_text;
}

json_t *
export_row_answers(const struct query_row *row, const char *data_key)
{
	json_t *stored = json_line_load_array(row->answers), *answers = json_array(), *item;
	char text[JSON_LINE_TEXT_MAX];
	size_t i;

	json_array_foreach(stored, i, item)
	{
		struct query_text raw = {.bytes = json_string_value(item), .len = json_string_length(item)};
		char *data = text, *type;
		json_t *answer = json_pack("{s:s}", "class", "IN");

		render_escape(raw, text, sizeof(text));
		type = strchr(text, ' ') == NULL ? NULL : strsep(&data, " ");
		json_line_put_text(answer, "type", type);
		json_object_set_new(answer, data_key, json_string(data));
		if (row->ttl_s >= 0 && row->ttl_s <= INT32_MAX)
			json_line_put_integer(answer, "ttl", row->ttl_s);
		json_array_append_new(answers, answer);
	}
	json_decref(stored);
	return answers;
}
