/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/export_row.h"
#include "audit/show/render.h"

#include "audit/record.h"
#include "policy/reason.h"

#include <arpa/inet.h>
#include <assert.h>
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

static const char *const export_row_events[] = {
    [0] = "an event of another kind",
    [EVENT_DAEMON_START] = "posternd started",
    [EVENT_DAEMON_STOP] = "posternd stopped",
    [EVENT_ATTACH] = "a sandbox was attached",
    [EVENT_DETACH] = "a sandbox was detached",
    [EVENT_POLICY] = "a sandbox's policy was changed",
    [EVENT_ROLE_CRASH] = "a process of posternd ended unexpectedly",
    [EVENT_TAMPERED] = "somebody else changed the packet filter rules, and they were put back",
    [EVENT_AUDIT_RESUMED] = "records could not be written for a while, and now can",
    [EVENT_RESTORED] = "a sandbox was taken over again after a restart",
    [EVENT_AUDIT_REPLACED] = "the audit database could not be trusted, and a new one took its place",
    [EVENT_GRANT_EXPIRED] = "a rule passed its deadline",
    [EVENT_GRANT_USED_UP] = "the last use of a rule was made",
    [EVENT_LIMIT_SOFT] = "a sandbox reached a soft limit",
    [EVENT_MARK] = "a step of the agent",
    [EVENT_AUDIT_ALARM] = "the audit log needs attention",
    [EVENT_PRUNED] = "records past their retention were dropped",
    [EVENT_RECORDS_LOST] = "records were lost before they were written",
};
static_assert(sizeof(export_row_events) / sizeof(export_row_events[0]) == EVENT_KIND_MAX, "a sentence for each event");

const char *
export_row_event_message(unsigned int event)
{
	return export_row_events[event < EVENT_KIND_MAX ? event : 0];
}

bool
export_row_has_server_name(const struct query_row *row)
{
	return row->name_source == NAME_SOURCE_SNI || row->name_source == NAME_SOURCE_CLAIM;
}

int64_t
export_row_time_us(const struct query_row *row)
{
	if (row->closed_us.set)
		return row->closed_us.value;
	return row->last_us.set ? row->last_us.value : row->ts_us;
}

const char *
export_row_version_id(const struct query_row *row, char ret_text[48])
{
	snprintf(ret_text, 48, "%016" PRIx64 "-%" PRId64, row->id, row->seq);
	return ret_text;
}

void
export_row_put_ip(json_t *object, json_t *other, const char *other_key, struct query_text text)
{
	char address[64];

	if (export_row_address(text, address)[0] != '\0')
		json_line_put_text(object, "ip", address);
	else
		json_line_put_bytes(other, other_key, text);
}

void
export_row_put_port(json_t *object, int64_t port)
{
	if (port > 0 && port <= UINT16_MAX)
		json_line_put_integer(object, "port", port);
}

void
export_row_put_sum(json_t *object, const char *key, struct query_number a, struct query_number b)
{
	if (a.set && b.set)
		json_line_put_integer(object, key, (int64_t)((uint64_t)a.value + (uint64_t)b.value));
}

void
export_row_put_steps(json_t *object, const struct query_row *row)
{
	json_line_put_number(object, "dns_us", row->dns_us);
	json_line_put_number(object, "hello_us", row->hello_us);
	json_line_put_number(object, "connect_us", row->connect_us);
	json_line_put_number(object, "first_byte_us", row->first_byte_us);
}

json_t *
export_row_process(const json_t *detail, const char *command_key)
{
	json_int_t pid = json_integer_value(json_object_get(detail, "pid"));
	json_t *process = json_object();

	if (pid > 0) {
		json_line_put_integer(process, "pid", pid);
		json_line_put_member(process, "name", detail, "comm");
		json_line_put_member(process, command_key, detail, "command");
	}
	return process;
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
