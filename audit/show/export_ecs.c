/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows as documents of the Elastic Common Schema, nested, one a line. ECS says of a firewall that did its work that the
 * outcome is "success": a refused connection is "denied" by its event.type. What ECS has no field for is below
 * "postern", as ECS asks of custom fields. */
#include "audit/show/export_formats.h"
#include "audit/show/export_row.h"
#include "audit/show/json_line.h"
#include "audit/record.h"
#include "audit/show/render.h"
#include "policy/reason.h"

#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#define ECS_VERSION "9.4.0"
/* The end of the year 9999. */
#define ECS_TIME_MAX_US INT64_C(253402300799999999)

struct ecs {
	const struct query_row *row;
	json_t *document, *event, *postern;
};

/* event.kind, event.category, event.type and event.outcome of an event; types must be ones that ECS expects of the
 * category. */
struct ecs_event {
	const char *kind, *category, *type, *outcome;
};

static const struct ecs_event ecs_events[] = {
    [0] = {"event", "host", "info", NULL},
    [EVENT_DAEMON_START] = {"event", "process", "start", "success"},
    [EVENT_DAEMON_STOP] = {"event", "process", "end", "success"},
    [EVENT_ATTACH] = {"event", "host", "start", "success"},
    [EVENT_DETACH] = {"event", "host", "end", "success"},
    [EVENT_POLICY] = {"event", "configuration", "change", "success"},
    [EVENT_ROLE_CRASH] = {"event", "process", "end", "failure"},
    [EVENT_TAMPERED] = {"alert", "configuration", "change", NULL},
    [EVENT_AUDIT_RESUMED] = {"alert", "database", "info", NULL},
    [EVENT_RESTORED] = {"event", "host", "change", "success"},
    [EVENT_AUDIT_REPLACED] = {"alert", "database", "change", NULL},
    [EVENT_GRANT_EXPIRED] = {"event", "configuration", "change", "success"},
    [EVENT_GRANT_USED_UP] = {"event", "configuration", "change", "success"},
    [EVENT_LIMIT_SOFT] = {"alert", "network", "info", NULL},
    [EVENT_MARK] = {"event", "process", "info", NULL},
    [EVENT_AUDIT_ALARM] = {"alert", "database", "error", NULL},
    [EVENT_PRUNED] = {"event", "database", "change", "success"},
    [EVENT_RECORDS_LOST] = {"alert", "database", "error", "failure"},
};
static_assert(sizeof(ecs_events) / sizeof(ecs_events[0]) == EVENT_KIND_MAX, "a row for each event");

static void
ecs_put_time(json_t *object, const char *key, int64_t us)
{
	char text[40];

	/* A damaged file's; Elasticsearch would refuse the document. */
	if (us < 0 || us > ECS_TIME_MAX_US)
		us = 0;
	json_line_put_text(object, key, render_time_utc(us, text));
}

/* A dot in a key would make an object of it, which labels must not hold. */
static json_t *
ecs_labels(const struct query_row *row)
{
	json_t *object = json_line_load_object(row->labels), *labels = json_object(), *value;
	char name[JSON_LINE_TEXT_MAX];
	const char *key;

	json_object_foreach(object, key, value)
	{
		if (!json_is_string(value))
			continue;
		snprintf(name, sizeof(name), "%.255s", key);
		for (char *dot = name; (dot = strchr(dot, '.')) != NULL;)
			*dot = '_';
		json_object_set(labels, name, value);
	}
	json_decref(object);
	return labels;
}

static void
ecs_put_sandbox(struct ecs *ecs)
{
	json_t *container = json_object();

	if (ecs->row->sandbox_id != 0)
		json_line_put_decimal(container, "id", ecs->row->sandbox_id);
	json_line_put_bytes(container, "name", ecs->row->sandbox);
	json_line_put_own(ecs->document, "container", container);
	json_line_put_own(ecs->document, "labels", ecs_labels(ecs->row));
}

static void
ecs_put_network(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	json_t *network = json_object();
	char word[32];

	if (row->dst.len > 0)
		json_line_put_text(
		    network, "type", memchr(row->dst.bytes, ':', row->dst.len) == NULL ? "ipv4" : "ipv6");
	json_line_put_text(network, "transport",
	    row->proto == IPPROTO_ICMPV6 ? "ipv6-icmp" : render_proto(row->proto, word)); /* IANA's word */
	json_line_put_decimal(network, "iana_number", row->proto);
	json_line_put_text(network, "direction", "outbound");
	if (row->kind == QUERY_DNS)
		json_line_put_text(network, "protocol", "dns");
	else if (export_row_is_tls(row))
		json_line_put_text(network, "protocol", "tls");
	else if (export_row_is_http(row))
		json_line_put_text(network, "protocol", "http");
	json_line_put_bytes(network, "community_id", row->community_id);
	export_row_put_sum(network, "bytes", row->bytes_out, row->bytes_in);
	export_row_put_sum(network, "packets", row->packets_out, row->packets_in);
	json_line_put_own(ecs->document, "network", network);
}

static void
ecs_put_source(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	json_t *source = json_object(), *nat = json_object();

	export_row_put_ip(source, ecs->postern, "src", row->src);
	export_row_put_port(source, row->sport);
	json_line_put_number(source, "bytes", row->bytes_out);
	json_line_put_number(source, "packets", row->packets_out);
	if (row->up_src.len > 0) {
		export_row_put_ip(nat, ecs->postern, "up_src", row->up_src);
		export_row_put_port(nat, row->up_sport.value);
	}
	json_line_put_own(source, "nat", nat);
	json_line_put_own(ecs->document, "source", source);
}

static void
ecs_put_destination(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	json_t *destination = json_object(), *as = json_object(), *geo = json_object(), *organization = json_object();
	char host[JSON_LINE_TEXT_MAX];

	export_row_put_ip(destination, ecs->postern, "dst", row->dst);
	export_row_put_port(destination, row->dport);
	if (row->kind == QUERY_CONNECTION)
		json_line_put_text(destination, "domain", export_row_host(row, host, sizeof(host)));
	json_line_put_number(destination, "bytes", row->bytes_in);
	json_line_put_number(destination, "packets", row->packets_in);
	json_line_put_number(as, "number", row->asn);
	json_line_put_bytes(organization, "name", row->as_org);
	json_line_put_own(as, "organization", organization);
	json_line_put_own(destination, "as", as);
	json_line_put_bytes(geo, "country_iso_code", row->country);
	json_line_put_own(destination, "geo", geo);
	json_line_put_own(ecs->document, "destination", destination);
}

/* Verdict, reason and rule. */
static void
ecs_put_verdict(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	json_t *rule = json_object();

	json_line_put_bytes(rule, "name", row->rule);
	json_line_put_bytes(rule, "ruleset", row->sandbox);
	json_line_put_decimal(rule, "version", row->generation);
	json_line_put_own(ecs->document, "rule", rule);
	json_line_put_text(ecs->event, "reason", reason_sentence(render_index(row->reason)));
	json_line_put_text(ecs->event, "code", render_reason(row));
	json_line_put_text(ecs->postern, "verdict", render_verdict(row));
	json_line_put_text(ecs->postern, "reason", render_reason(row));
	json_line_put_bytes(ecs->postern, "detail", row->detail);
	json_line_put_integer(ecs->postern, "count", row->count);
	if (export_row_learned(row))
		json_object_set_new(ecs->postern, "learned", json_true());
}

/* event.type of an attempt: first says what kind of attempt, NULL ones are left out. */
static void
ecs_put_attempt(struct ecs *ecs, const char *first, const char *phase)
{
	const struct query_row *row = ecs->row;
	bool known = row->verdict >= 0 && row->verdict < VERDICT_MAX;
	bool let_through = row->verdict == VERDICT_ALLOWED || row->verdict == VERDICT_FAILED;
	json_t *types = json_pack("[s]", first);

	if (known)
		json_array_append_new(types, json_string(let_through ? "allowed" : "denied"));
	if (phase != NULL)
		json_array_append_new(types, json_string(phase));
	json_line_put_text(ecs->event, "kind", "event");
	json_line_put_own(ecs->event, "category", json_pack("[s]", "network"));
	json_line_put_own(ecs->event, "type", types);
	if (!known)
		json_line_put_text(ecs->event, "outcome", "unknown");
	else
		json_line_put_text(ecs->event, "outcome", row->verdict == VERDICT_FAILED ? "failure" : "success");
}

static void
ecs_put_tls(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	json_t *tls, *client;
	char name[JSON_LINE_TEXT_MAX];

	if (!export_row_is_tls(row))
		return;
	tls = json_object();
	client = json_object();
	if (export_row_has_server_name(row))
		json_line_put_text(client, "server_name", render_name(row, name, sizeof(name)));
	json_line_put_own(tls, "client", client);
	json_line_put_own(ecs->document, "tls", tls);
	/* What was offered, not what came of it: tls.version and tls.next_protocol are the server's choice. */
	json_line_put_text(ecs->postern, "tls_version_offered", export_row_tls_version(row));
	json_line_put_bytes(ecs->postern, "alpn_offered", row->alpn);
	json_line_put_bytes(ecs->postern, "ja4", row->ja4);
	json_object_set_new(ecs->postern, "ech", json_boolean((row->flags & RECORD_FLAG_ECH) != 0));
}

static void
ecs_put_http(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	json_t *http = json_object(), *request = json_object(), *url = json_object();
	char host[JSON_LINE_TEXT_MAX];

	if (export_row_is_http(row)) {
		json_line_put_bytes(request, "method", row->http_method);
		json_line_put_text(url, "scheme", "http");
		json_line_put_text(url, "domain", export_row_host(row, host, sizeof(host)));
		export_row_put_port(url, row->dport);
	}
	json_line_put_own(http, "request", request);
	json_line_put_own(ecs->document, "http", http);
	json_line_put_own(ecs->document, "url", url);
}

static void
ecs_put_connection_custom(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	char name[JSON_LINE_TEXT_MAX];

	json_line_put_text(ecs->postern, "name", render_name(row, name, sizeof(name)));
	json_line_put_text(ecs->postern, "name_source", record_name_source_text(render_index(row->name_source)));
	if ((row->flags & RECORD_FLAG_TUNNEL) != 0)
		json_object_set_new(ecs->postern, "tunnel", json_true());
	json_line_put_bytes(ecs->postern, "up_community_id", row->up_community_id);
	export_row_put_steps(ecs->postern, row);
}

static void
ecs_put_connection(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	const char *phase = row->end == END_OPEN ? (row->bytes_out.set ? "info" : "start") : "end";

	ecs_put_attempt(ecs, "connection", row->verdict == VERDICT_ALLOWED ? phase : NULL);
	json_line_put_text(ecs->event, "action", record_end_text(render_index(row->end)));
	ecs_put_time(ecs->event, "start", row->ts_us);
	if (row->closed_us.set)
		ecs_put_time(ecs->event, "end", row->closed_us.value);
	/* Nanoseconds. */
	if (row->duration_us.set && row->duration_us.value >= 0 && row->duration_us.value < INT64_MAX / 1000)
		json_line_put_integer(ecs->event, "duration", row->duration_us.value * 1000);
	ecs_put_verdict(ecs);
	ecs_put_network(ecs);
	ecs_put_source(ecs);
	ecs_put_destination(ecs);
	ecs_put_tls(ecs);
	ecs_put_http(ecs);
	ecs_put_connection_custom(ecs);
}

/* Addresses among the answers. */
static json_t *
ecs_resolved(json_t *answers)
{
	json_t *resolved = json_array(), *answer;
	char address[64];
	size_t i;

	json_array_foreach(answers, i, answer)
	{
		json_t *data = json_object_get(answer, "data");
		struct query_text text = {.bytes = json_string_value(data), .len = json_string_length(data)};

		if (export_row_address(text, address)[0] != '\0')
			json_array_append(resolved, data);
	}
	return resolved;
}

static void
ecs_put_dns(struct ecs *ecs)
{
	const struct query_row *row = ecs->row;
	json_t *dns = json_object(), *question = json_object(), *answers;
	char name[JSON_LINE_TEXT_MAX], word[32];

	ecs_put_attempt(ecs, "protocol", NULL);
	json_line_put_text(ecs->event, "action", "dns_query");
	ecs_put_verdict(ecs);
	ecs_put_network(ecs);
	ecs_put_source(ecs);
	ecs_put_destination(ecs);
	render_name(row, name, sizeof(name));
	json_line_put_text(question, "name", name[0] == '\0' ? "." : name);
	json_line_put_text(question, "type", render_qtype(row->qtype, word));
	json_line_put_text(question, "class", "IN");
	json_line_put_bytes(question, "registered_domain", row->domain);
	json_line_put_text(dns, "type", "answer");
	json_line_put_text(dns, "op_code", "QUERY");
	json_line_put_own(dns, "question", question);
	answers = export_row_answers(row, "data");
	json_line_put_own(dns, "resolved_ip", ecs_resolved(answers));
	json_line_put_own(dns, "answers", answers);
	json_line_put_text(dns, "response_code", render_rcode(row->rcode, word));
	json_line_put_own(ecs->document, "dns", dns);
	json_line_put_number(ecs->postern, "ede", row->ede);
	json_line_put_number(ecs->postern, "leases", row->leases);
	json_line_put_number(ecs->postern, "entropy", row->entropy);
	if (row->upstream_us > 0 && row->upstream_us < INT64_MAX / 1000)
		json_line_put_integer(ecs->event, "duration", row->upstream_us * 1000);
}

static void
ecs_put_event(struct ecs *ecs)
{
	unsigned int kind = render_index(ecs->row->event);
	const struct ecs_event *event = &ecs_events[kind < EVENT_KIND_MAX ? kind : 0];
	json_t *detail = json_line_load_object(ecs->row->detail), *user = json_object();

	json_line_put_text(ecs->event, "kind", event->kind);
	json_line_put_own(ecs->event, "category", json_pack("[s]", event->category));
	json_line_put_own(ecs->event, "type", json_pack("[s]", event->type));
	json_line_put_text(ecs->event, "outcome", event->outcome);
	json_line_put_text(ecs->event, "action", record_event_text(kind));
	json_line_put_text(ecs->document, "message", export_row_event_message(kind));
	json_line_put_member(ecs->document, "message", detail, "text");
	if (ecs->row->uid.set)
		json_line_put_decimal(user, "id", ecs->row->uid.value);
	json_line_put_own(ecs->document, "user", user);
	json_line_put_own(ecs->document, "process", export_row_process(detail, "command_line"));
	/* As text: Elasticsearch would make a field of each member. */
	json_line_put_bytes(ecs->postern, "detail", ecs->row->detail);
	json_decref(detail);
}

int
export_ecs_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	struct ecs ecs = {.row = row, .document = json_object(), .event = json_object(), .postern = json_object()};
	char text[48], id[24];

	(void)options;
	ecs_put_time(ecs.document, "@timestamp", export_row_time_us(row));
	json_line_put_own(ecs.document, "ecs", json_pack("{s:s}", "version", ECS_VERSION));
	if (row->kind == QUERY_CONNECTION)
		ecs_put_connection(&ecs);
	else if (row->kind == QUERY_DNS)
		ecs_put_dns(&ecs);
	else
		ecs_put_event(&ecs);
	json_line_put_text(ecs.event, "id", export_row_version_id(row, text));
	json_line_put_integer(ecs.event, "sequence", row->seq);
	json_line_put_text(ecs.event, "module", "postern");
	json_line_put_text(ecs.event, "dataset", "postern.audit");
	json_line_put_text(ecs.event, "provider", "posternd");
	json_line_put_text(ecs.postern, "id", export_row_id(row, id));
	json_line_put_text(ecs.postern, "cursor", row->cursor);
	ecs_put_sandbox(&ecs);
	json_line_put_own(ecs.document, "observer",
	    json_pack("{s:s, s:s, s:s, s:s}", "type", "firewall", "vendor", "postern", "product", "postern", "version",
		POSTERN_VERSION));
	json_line_put_own(ecs.document, "event", ecs.event);
	json_line_put_own(ecs.document, "postern", ecs.postern);
	return json_line_print_own(out, ecs.document);
}
