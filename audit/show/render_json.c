/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/render.h"

#include "audit/show/json_line.h"
#include "audit/record.h"

#include <inttypes.h>
#include <jansson.h>
#include <string.h>

/* A JSON column: as it is when it is what it should be, else as one string. */
static void
json_put_json(json_t *object, const char *key, struct query_text text, bool array)
{
	json_t *value = array ? json_line_load_array(text) : json_line_load_object(text);

	if (value == NULL)
		json_line_put_bytes(object, key, text);
	else
		json_object_set_new(object, key, value);
}

static void
json_put_name(json_t *object, const char *key, const struct query_row *row)
{
	char name[JSON_LINE_TEXT_MAX];

	json_line_put_text(object, key, render_name(row, name, sizeof(name)));
}

static void
json_put_tls(json_t *object, const struct query_row *row)
{
	char word[32];

	json_line_put_bytes(object, "alpn", row->alpn);
	if (row->tls_version.set)
		json_line_put_text(object, "tls_version", render_tls_version(row->tls_version.value, word));
	json_line_put_bytes(object, "ja4", row->ja4);
	json_line_put_bytes(object, "http_method", row->http_method);
}

static void
json_put_place(json_t *object, const struct query_row *row)
{
	json_line_put_bytes(object, "country", row->country);
	json_line_put_number(object, "asn", row->asn);
	json_line_put_bytes(object, "as_org", row->as_org);
}

/* What each step took, and what passed. */
static void
json_put_course(json_t *object, const struct query_row *row)
{
	json_line_put_number(object, "dns_us", row->dns_us);
	json_line_put_number(object, "hello_us", row->hello_us);
	json_line_put_number(object, "connect_us", row->connect_us);
	json_line_put_number(object, "first_byte_us", row->first_byte_us);
	json_line_put_number(object, "bytes_out", row->bytes_out);
	json_line_put_number(object, "bytes_in", row->bytes_in);
	json_line_put_number(object, "packets_out", row->packets_out);
	json_line_put_number(object, "packets_in", row->packets_in);
}

/* What other tools call the connection. */
static void
json_put_tuples(json_t *object, const struct query_row *row)
{
	json_line_put_bytes(object, "community_id", row->community_id);
	json_line_put_bytes(object, "up_src", row->up_src);
	json_line_put_number(object, "up_sport", row->up_sport);
	json_line_put_bytes(object, "up_community_id", row->up_community_id);
}

static void
json_put_connection(json_t *object, const struct query_row *row)
{
	char word[40];

	json_line_put_bytes(object, "src", row->src);
	json_line_put_integer(object, "sport", row->sport);
	json_line_put_bytes(object, "dst", row->dst);
	json_line_put_integer(object, "dport", row->dport);
	json_line_put_text(object, "proto", render_proto(row->proto, word));
	json_put_name(object, "name", row);
	json_line_put_text(object, "name_source", name_source_text(render_index(row->name_source)));
	json_put_tls(object, row);
	json_object_set_new(object, "ech", json_boolean((row->flags & RECORD_FLAG_ECH) != 0));
	json_object_set_new(object, "tunnel", json_boolean((row->flags & RECORD_FLAG_TUNNEL) != 0));
	json_put_place(object, row);
	json_put_course(object, row);
	if (row->duration_us.set)
		json_object_set_new(object, "dur_ms", json_real((double)row->duration_us.value / 1000));
	json_line_put_text(object, "end", end_reason_text(render_index(row->end)));
	if (row->closed_us.set)
		json_line_put_text(object, "closed", render_time_utc(row->closed_us.value, word));
	if (row->last_us.set)
		json_line_put_text(object, "last", render_time_utc(row->last_us.value, word));
	json_put_tuples(object, row);
}

static void
json_put_dns(json_t *object, const struct query_row *row)
{
	char word[32];

	json_line_put_bytes(object, "src", row->src);
	json_line_put_integer(object, "sport", row->sport);
	json_line_put_bytes(object, "dst", row->dst);
	json_line_put_integer(object, "dport", row->dport);
	json_line_put_text(object, "proto", render_proto(row->proto, word));
	json_put_name(object, "qname", row);
	json_line_put_text(object, "qtype", render_qtype(row->qtype, word));
	json_line_put_text(object, "rcode", render_rcode(row->rcode, word));
	json_line_put_number(object, "ede", row->ede);
	json_put_json(object, "answers", row->answers, true);
	json_line_put_integer(object, "ttl", row->ttl_s);
	if (row->upstream_us != 0)
		json_object_set_new(object, "rtt_ms", json_real((double)row->upstream_us / 1000));
	json_line_put_number(object, "leases", row->leases);
	json_line_put_bytes(object, "domain", row->domain);
	if (row->entropy.set)
		json_object_set_new(object, "entropy", json_real((double)row->entropy.value / 100));
}

static const char *
render_kind(const struct query_row *row)
{
	if (row->kind == QUERY_DNS)
		return "dns";
	if (row->kind == QUERY_EVENT)
		return "event";
	return row->verdict == VERDICT_ALLOWED ? "flow" : "deny";
}

static json_t *
render_object(const struct query_row *row)
{
	json_t *object = json_object();
	char word[40];

	json_line_put_integer(object, "v", RENDER_JSON_VERSION);
	json_line_put_text(object, "ts", render_time_utc(row->ts_us, word));
	snprintf(word, sizeof(word), "%016" PRIx64, row->id);
	json_line_put_text(object, "id", word);
	json_line_put_text(object, "cursor", row->cursor);
	json_line_put_text(object, "kind", render_kind(row));
	json_line_put_bytes(object, "sandbox", row->sandbox);
	if (row->sandbox_id != 0)
		json_line_put_integer(object, "sandbox_id", row->sandbox_id);
	json_line_put_own(object, "labels", json_line_load_object(row->labels));
	if (row->kind == QUERY_EVENT) {
		json_line_put_text(object, "event", event_kind_text(render_index(row->event)));
		json_line_put_number(object, "uid", row->uid);
		json_put_json(object, "detail", row->detail, false);
		return object;
	}
	json_line_put_text(object, "verdict", render_verdict(row));
	json_line_put_text(object, "reason", render_reason(row));
	json_line_put_bytes(object, "rule", row->rule);
	if (render_is(row->rule, RECORD_RULE_LEARN))
		json_object_set_new(object, "learned", json_true());
	json_line_put_bytes(object, "detail", row->detail);
	json_line_put_integer(object, "policy_rev", row->generation);
	if (row->kind == QUERY_DNS)
		json_put_dns(object, row);
	else
		json_put_connection(object, row);
	json_line_put_integer(object, "count", row->count);
	return object;
}

int
render_json(FILE *out, const struct query_row *row)
{
	return json_line_print_own(out, render_object(row));
}
