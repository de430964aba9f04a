/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A row becomes one OCSF event: a connection or a refusal Network Activity (4001), a query DNS
 * Activity (4003), the rest by audit/export_ocsf_event.c. The schema grew from version to version; each member is put
 * where the version asked for has a place for it, else under its name in "unmapped", which every version has. So no
 * version loses anything, and none shows a collector a member that it does not know.
 *
 * postern is a firewall that is a proxy: verdict and rule are the profile security_control, its own connection to the
 * origin the profile network_proxy, the sandbox the profile container. */
#include "audit/export_ocsf.h"

#include "audit/export_formats.h"
#include "audit/export_json.h"
#include "audit/export_text.h"
#include "audit/record.h"
#include "audit/render.h"
#include "audit/render_text.h"
#include "audit/schema.h"
#include "policy/reason.h"

#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#define OCSF_DIRECTION_OUTBOUND 2
#define OCSF_CLASS_INTERNET 1
/* TLS extensions (RFC 7301; encrypted_client_hello is not among OCSF's). */
#define OCSF_TLS_ALPN 16
#define OCSF_OTHER 99

static const char *const ocsf_versions[] = {"1.1.0", "1.3.0", "1.5.0", "1.8.0"};
static_assert(sizeof(ocsf_versions) / sizeof(ocsf_versions[0]) == EXPORT_OCSF_MAX, "a number for each version");

static const struct ocsf_class ocsf_network = {4001, 4, "Network Activity", "Network Activity"};
static const struct ocsf_class ocsf_dns = {4003, 4, "DNS Activity", "Network Activity"};

void
ocsf_put_class(
    struct ocsf *ocsf, const struct ocsf_class *class, struct ocsf_activity activity, enum ocsf_severity severity)
{
	static const char *const severities[] = {
	    "Unknown", "Informational", "Low", "Medium", "High"}; /* as enum ocsf_severity */
	char type[128];

	snprintf(type, sizeof(type), "%s: %s", class->name, activity.name);
	export_put_integer(ocsf->event, "category_uid", class->category_uid);
	export_put_text(ocsf->event, "category_name", class->category);
	export_put_integer(ocsf->event, "class_uid", class->uid);
	export_put_text(ocsf->event, "class_name", class->name);
	export_put_integer(ocsf->event, "activity_id", activity.id);
	export_put_text(ocsf->event, "activity_name", activity.name);
	export_put_integer(ocsf->event, "type_uid", class->uid * 100 + activity.id);
	export_put_text(ocsf->event, "type_name", type);
	export_put_integer(ocsf->event, "severity_id", severity);
	export_put_text(ocsf->event, "severity", severities[severity]);
}

void
ocsf_put_status(struct ocsf *ocsf, int status)
{
	static const char *const words[] = {"Unknown", "Success", "Failure"};

	export_put_integer(ocsf->event, "status_id", status);
	export_put_text(ocsf->event, "status", words[status]);
}

static bool
ocsf_has(const struct ocsf *ocsf, enum export_ocsf since)
{
	return ocsf->version >= since;
}

/* Where a member goes that came with a version. */
static json_t *
ocsf_place(const struct ocsf *ocsf, enum export_ocsf since, json_t *object)
{
	return ocsf_has(ocsf, since) ? object : ocsf->unmapped;
}

void
ocsf_put_profile(struct ocsf *ocsf, const char *profile)
{
	json_array_append_new(ocsf->profiles, json_string(profile));
}

static int64_t
ocsf_ms(int64_t us)
{
	return us / 1000;
}

/* When it happened: for a connection that has ended, its end. */
static int64_t
ocsf_time_us(const struct query_row *row)
{
	if (row->closed_us.set)
		return row->closed_us.value;
	return row->last_us.set ? row->last_us.value : row->ts_us;
}

/* An address, or in "unmapped" what is none. */
static void
ocsf_put_ip(struct ocsf *ocsf, json_t *object, const char *unmapped_key, struct query_text text)
{
	char address[64];

	if (export_address(text, address)[0] != '\0')
		export_put_text(object, "ip", address);
	else
		export_put_bytes(ocsf->unmapped, unmapped_key, text);
}

static void
ocsf_put_port(json_t *object, int64_t port)
{
	if (port > 0 && port <= UINT16_MAX)
		export_put_integer(object, "port", port);
}

static const char *
ocsf_sandbox_uid(const struct query_row *row, char ret_text[24])
{
	snprintf(ret_text, 24, "%" PRId64, row->sandbox_id);
	return ret_text;
}

static void
ocsf_put_src(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	json_t *endpoint = json_object(), *container = json_object();
	char uid[24];

	ocsf_put_ip(ocsf, endpoint, "src", row->src);
	ocsf_put_port(endpoint, row->sport);
	export_put_bytes(endpoint, "name", row->sandbox);
	export_put_text(endpoint, "uid", ocsf_sandbox_uid(row, uid));
	export_put_bytes(container, "name", row->sandbox);
	export_put_text(container, "uid", uid);
	export_put_own(endpoint, "container", container);
	export_put_own(ocsf->event, "src_endpoint", endpoint);
	ocsf_put_profile(ocsf, "container");
}

static void
ocsf_put_dst(struct ocsf *ocsf, const char *host)
{
	const struct query_row *row = ocsf->row;
	json_t *endpoint = json_object(), *as = json_object(), *location = json_object();

	ocsf_put_ip(ocsf, endpoint, "dst", row->dst);
	ocsf_put_port(endpoint, row->dport);
	export_put_text(endpoint, "hostname", host);
	export_put_number(as, "number", row->asn);
	export_put_bytes(as, "name", row->as_org);
	export_put_own(ocsf_place(ocsf, EXPORT_OCSF_1_3, endpoint), "autonomous_system", as);
	export_put_bytes(location, "country", row->country);
	export_put_own(endpoint, "location", location);
	/* Required up to 1.3, and packets that were only counted have none. */
	if (json_object_size(endpoint) == 0)
		export_put_text(endpoint, "name", "unknown");
	export_put_own(ocsf->event, "dst_endpoint", endpoint);
}

/* Protocol and direction; side: the guest's connection, or ours to the origin. */
static json_t *
ocsf_connection_info(const struct ocsf *ocsf, const char *unmapped_key, struct query_text community_id)
{
	const struct query_row *row = ocsf->row;
	json_t *info = json_object();
	char word[32];

	export_put_integer(info, "direction_id", OCSF_DIRECTION_OUTBOUND);
	export_put_text(info, "direction", "Outbound");
	export_put_integer(info, "protocol_num", row->proto);
	export_put_text(info, "protocol_name", render_proto(row->proto, word));
	if (row->dst.len > 0)
		export_put_integer(info, "protocol_ver_id", memchr(row->dst.bytes, ':', row->dst.len) == NULL ? 4 : 6);
	if (ocsf_has(ocsf, EXPORT_OCSF_1_5))
		export_put_bytes(info, "community_uid", community_id);
	else
		export_put_bytes(ocsf->unmapped, unmapped_key, community_id);
	return info;
}

static void
ocsf_put_connection_info(struct ocsf *ocsf)
{
	json_t *info = ocsf_connection_info(ocsf, "community_uid", ocsf->row->community_id);
	char id[24];

	export_put_text(info, "uid", export_id(ocsf->row, id));
	export_put_own(ocsf->event, "connection_info", info);
}

/* Our own connection to the origin. */
static void
ocsf_put_proxy(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	json_t *endpoint = json_object();

	if (row->up_src.len == 0)
		return;
	ocsf_put_profile(ocsf, "network_proxy");
	ocsf_put_ip(ocsf, endpoint, "up_src", row->up_src);
	ocsf_put_port(endpoint, row->up_sport.value);
	export_put_text(endpoint, "name", "postern");
	export_put_own(ocsf->event, "proxy_endpoint", endpoint);
	export_put_own(ocsf->event, "proxy_connection_info",
	    ocsf_connection_info(ocsf, "proxy_community_uid", row->up_community_id));
}

struct ocsf_verdict {
	int action_id;
	const char *action;
	int disposition_id;
	const char *disposition;
};

static struct ocsf_verdict
ocsf_verdict(const struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	unsigned int verdict = render_index(row->verdict);

	if (verdict >= VERDICT_MAX)
		return (struct ocsf_verdict){0, "Unknown", 0, "Unknown"};
	switch ((enum verdict)verdict) {
	case VERDICT_DENIED:
	case VERDICT_LIMITED:
		return (struct ocsf_verdict){2, "Denied", 2, "Blocked"};
	case VERDICT_FAILED: /* permitted, but nothing came of it */
		return (struct ocsf_verdict){1, "Allowed", 27, "Error"};
	case VERDICT_ALLOWED:
	case VERDICT_MAX:
		break;
	}
	if (row->kind == QUERY_CONNECTION && row->end == END_POLICY)
		return (struct ocsf_verdict){1, "Allowed", 21, "Reset"};
	if (export_learned(row) && ocsf_has(ocsf, EXPORT_OCSF_1_5))
		return (struct ocsf_verdict){3, "Observed", 17, "Logged"};
	if (export_learned(row))
		return (struct ocsf_verdict){1, "Allowed", 17, "Logged"};
	return (struct ocsf_verdict){1, "Allowed", 1, "Allowed"};
}

/* The policy of a sandbox has its name. */
static void
ocsf_put_policy(struct ocsf *ocsf)
{
	json_t *policy = json_object();
	char text[24];

	if (ocsf->row->sandbox.len == 0)
		return;
	export_put_bytes(policy, "name", ocsf->row->sandbox);
	snprintf(text, sizeof(text), "%" PRId64, ocsf->row->generation);
	export_put_text(policy, "version", text);
	export_put_own(ocsf_place(ocsf, EXPORT_OCSF_1_5, ocsf->event), "policy", policy);
}

static void
ocsf_put_verdict(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	struct ocsf_verdict verdict = ocsf_verdict(ocsf);
	json_t *rule = json_object();

	ocsf_put_profile(ocsf, "security_control");
	export_put_integer(ocsf->event, "action_id", verdict.action_id);
	export_put_text(ocsf->event, "action", verdict.action);
	export_put_integer(ocsf->event, "disposition_id", verdict.disposition_id);
	export_put_text(ocsf->event, "disposition", verdict.disposition);
	export_put_bytes(rule, "name", row->rule);
	export_put_own(ocsf->event, "firewall_rule", rule);
	ocsf_put_policy(ocsf);
	export_put_text(ocsf->event, "status_code", export_reason(row));
	export_put_text(ocsf->event, "status_detail", reason_sentence(render_index(row->reason)));
	export_put_bytes(ocsf->unmapped, "detail", row->detail);
	if (export_learned(row))
		json_object_set_new(ocsf->unmapped, "learned", json_true());
}

/* What nobody stumbles upon is graver than a name that no rule allows. */
static enum ocsf_severity
ocsf_severity(const struct query_row *row)
{
	if (row->verdict == VERDICT_ALLOWED)
		return OCSF_SEVERITY_INFORMATIONAL;
	switch (row->reason) {
	case REASON_AUDIT_UNAVAILABLE:
	case REASON_INTERNAL_ERROR:
		return OCSF_SEVERITY_HIGH;
	case REASON_NEVER_ADDRESS:
	case REASON_NEVER_NAME:
	case REASON_DNS_REBIND:
	case REASON_SPOOFED_SOURCE:
	case REASON_SNI_MISMATCH:
	case REASON_HOST_MISMATCH:
		return OCSF_SEVERITY_MEDIUM;
	case REASON_UPSTREAM_ERROR:
		return OCSF_SEVERITY_INFORMATIONAL;
	default:
		return OCSF_SEVERITY_LOW;
	}
}

/* A connection that was let through, by how it ended. */
static struct ocsf_activity
ocsf_activity_of_end(const struct query_row *row)
{
	switch (row->end < 0 || row->end >= END_MAX ? END_MAX : (enum end_reason)row->end) {
	case END_OPEN:
		return row->bytes_out.set ? (struct ocsf_activity){6, "Traffic"} : (struct ocsf_activity){1, "Open"};
	case END_FIN:
	case END_TIMEOUT:
	case END_NEXT_HOST:
		return (struct ocsf_activity){2, "Close"};
	case END_RST_GUEST:
	case END_RST_ORIGIN:
	case END_POLICY:
	case END_DETACHED:
	case END_SHUTDOWN:
	case END_GATEWAY_CRASH:
	case END_DAEMON_CRASH:
	case END_ERROR:
		return (struct ocsf_activity){3, "Reset"};
	case END_CONNECT_FAILED:
		return (struct ocsf_activity){4, "Fail"};
	case END_REFUSED:
		return (struct ocsf_activity){5, "Refuse"};
	case END_MAX:
		break;
	}
	return (struct ocsf_activity){0, "Unknown"};
}

static struct ocsf_activity
ocsf_activity(const struct query_row *row)
{
	if (row->verdict == VERDICT_ALLOWED)
		return ocsf_activity_of_end(row);
	if (row->verdict == VERDICT_FAILED)
		return (struct ocsf_activity){4, "Fail"};
	if (row->verdict == VERDICT_DENIED || row->verdict == VERDICT_LIMITED)
		return (struct ocsf_activity){5, "Refuse"};
	return (struct ocsf_activity){0, "Unknown"};
}

/* Bytes and packets. Of a connection that is still open they are a sum so far, which must not be added up with that of
 * its end. */
static void
ocsf_put_traffic(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	json_t *traffic = json_object();

	export_put_number(traffic, "bytes_out", row->bytes_out);
	export_put_number(traffic, "bytes_in", row->bytes_in);
	if (row->bytes_out.set && row->bytes_in.set)
		export_put_integer(
		    traffic, "bytes", (int64_t)((uint64_t)row->bytes_out.value + (uint64_t)row->bytes_in.value));
	export_put_number(traffic, "packets_out", row->packets_out);
	export_put_number(traffic, "packets_in", row->packets_in);
	if (row->packets_out.set && row->packets_in.set)
		export_put_integer(
		    traffic, "packets", (int64_t)((uint64_t)row->packets_out.value + (uint64_t)row->packets_in.value));
	if (row->end != END_OPEN)
		export_put_own(ocsf->event, "traffic", traffic);
	else
		export_put_own(ocsf_place(ocsf, EXPORT_OCSF_1_8, ocsf->event), "cumulative_traffic", traffic);
}

/* "h2,http/1.1" as an array. */
static json_t *
ocsf_alpn(struct query_text alpn)
{
	json_t *protocols = json_array();
	char text[EXPORT_TEXT_MAX], *rest = text, *item;

	render_escape(alpn, text, sizeof(text));
	while ((item = strsep(&rest, ",")) != NULL)
		if (item[0] != '\0')
			json_array_append_new(protocols, json_string(item));
	return protocols;
}

static json_t *
ocsf_tls_extensions(const struct query_row *row)
{
	json_t *extensions = json_array();

	if (row->alpn.len > 0)
		json_array_append_new(extensions,
		    json_pack("{s:i, s:s, s:{s:o}}", "type_id", OCSF_TLS_ALPN, "type",
			"application_layer_protocol_negotiation", "data", "protocols", ocsf_alpn(row->alpn)));
	if ((row->flags & RECORD_FLAG_ECH) != 0)
		json_array_append_new(
		    extensions, json_pack("{s:i, s:s}", "type_id", OCSF_OTHER, "type", "encrypted_client_hello"));
	return extensions;
}

static bool
ocsf_is_tls(const struct query_row *row)
{
	return row->tls_version.set || row->ja4.len > 0 || row->name_source == NAME_SOURCE_SNI;
}

static void
ocsf_put_tls(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	const char *version = export_tls_version(row);
	json_t *tls, *ja4;
	char name[EXPORT_TEXT_MAX];

	if (!ocsf_is_tls(row))
		return;
	tls = json_object();
	export_put_text(tls, "version", version == NULL ? "unknown" : version);
	if (row->name_source == NAME_SOURCE_SNI || row->name_source == NAME_SOURCE_CLAIM)
		export_put_text(tls, "sni", render_name(row, name, sizeof(name)));
	export_put_own(tls, "extension_list", ocsf_tls_extensions(row));
	export_put_own(ocsf->event, "tls", tls);
	if (row->ja4.len == 0)
		return;
	ja4 = json_pack("{s:i, s:s}", "type_id", 1, "type", "JA4");
	export_put_bytes(ja4, "value", row->ja4);
	export_put_own(ocsf_place(ocsf, EXPORT_OCSF_1_3, ocsf->event), "ja4_fingerprint_list", json_pack("[o]", ja4));
}

/* The schema has a closed list of methods; others are legal in HTTP. */
static bool
ocsf_method_known(const struct ocsf *ocsf, struct query_text method)
{
	static const char *const methods[] = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE"};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (export_is(method, methods[i]))
			return true;
	return export_is(method, "PATCH") && ocsf_has(ocsf, EXPORT_OCSF_1_8);
}

/* Host and method of a request; postern keeps no path. */
static void
ocsf_put_http(struct ocsf *ocsf, const char *host)
{
	const struct query_row *row = ocsf->row;
	json_t *url, *request = json_object();
	char text[EXPORT_TEXT_MAX];

	if (row->http_method.len > 0) {
		export_put_bytes(ocsf_method_known(ocsf, row->http_method) ? request : ocsf->unmapped, "http_method",
		    row->http_method);
		if (row->up_src.len > 0)
			export_put_own(ocsf->event, "proxy_http_request", request);
		else
			export_put_own(ocsf->unmapped, "proxy_http_request", request);
	} else {
		json_decref(request);
	}
	if ((row->http_method.len == 0 && row->name_source != NAME_SOURCE_HOST) || host[0] == '\0')
		return;
	url = json_object();
	snprintf(text, sizeof(text), "http://%.255s:%" PRId64, host, row->dport);
	export_put_text(url, "url_string", text);
	export_put_text(url, "scheme", "http");
	export_put_text(url, "hostname", host);
	ocsf_put_port(url, row->dport);
	export_put_own(ocsf->event, "url", url);
}

/* IANA's service names; only what was read from the connection, not what its port suggests. */
static void
ocsf_put_protocol(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	const char *word = NULL;

	if (row->http_method.len > 0 || row->name_source == NAME_SOURCE_HOST)
		word = "http";
	else if (ocsf_is_tls(row) && row->dport == 443)
		word = "https";
	export_put_text(ocsf_place(ocsf, EXPORT_OCSF_1_8, ocsf->event), "app_protocol_name", word);
}

/* "allowed tcp example.com:443": what people read in a list. */
static void
ocsf_put_message(struct ocsf *ocsf, const char *what)
{
	const struct query_row *row = ocsf->row;
	char name[EXPORT_TEXT_MAX], message[EXPORT_TEXT_MAX + 128];

	render_name(row, name, sizeof(name));
	if (name[0] == '\0')
		render_escape(row->kind == QUERY_DNS ? (struct query_text){.bytes = ".", .len = 1} : row->dst, name,
		    sizeof(name));
	if (row->kind == QUERY_CONNECTION && row->dport > 0)
		snprintf(message, sizeof(message), "%s %s %s port %" PRId64 ": %s", export_verdict(row), what, name,
		    row->dport, export_reason(row));
	else
		snprintf(message, sizeof(message), "%s %s %s: %s", export_verdict(row), what, name, export_reason(row));
	export_put_text(ocsf->event, "message", message);
}

static void
ocsf_put_times(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;

	export_put_integer(ocsf->event, "start_time", ocsf_ms(row->ts_us));
	if (row->closed_us.set)
		export_put_integer(ocsf->event, "end_time", ocsf_ms(row->closed_us.value));
	else if (row->last_us.set)
		export_put_integer(ocsf->event, "end_time", ocsf_ms(row->last_us.value));
	if (row->duration_us.set)
		export_put_integer(ocsf->event, "duration", ocsf_ms(row->duration_us.value));
	export_put_integer(ocsf->event, "count", row->count);
}

/* The name as it was said where it is no host name, and how long each step took. */
static void
ocsf_put_connection_rest(struct ocsf *ocsf, const char *host)
{
	const struct query_row *row = ocsf->row;
	char name[EXPORT_TEXT_MAX];

	if (host[0] == '\0')
		export_put_text(ocsf->unmapped, "name", render_name(row, name, sizeof(name)));
	export_put_text(ocsf->unmapped, "name_source", name_source_text(render_index(row->name_source)));
	export_put_text(ocsf->unmapped, "end", end_reason_text(render_index(row->end)));
	if ((row->flags & RECORD_FLAG_TUNNEL) != 0)
		json_object_set_new(ocsf->unmapped, "tunnel", json_true());
	export_put_number(ocsf->unmapped, "dns_us", row->dns_us);
	export_put_number(ocsf->unmapped, "hello_us", row->hello_us);
	export_put_number(ocsf->unmapped, "connect_us", row->connect_us);
	export_put_number(ocsf->unmapped, "first_byte_us", row->first_byte_us);
}

static void
ocsf_put_connection(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	struct ocsf_activity activity = ocsf_activity(row);
	char host[EXPORT_TEXT_MAX], word[32];
	bool failed = activity.id == 4 || activity.id == 5;

	export_host(row, host, sizeof(host));
	ocsf_put_class(ocsf, &ocsf_network, activity, ocsf_severity(row));
	ocsf_put_status(ocsf, activity.id == 0 ? 0 : failed ? 2 : 1);
	ocsf_put_message(ocsf, render_proto(row->proto, word));
	ocsf_put_times(ocsf);
	ocsf_put_verdict(ocsf);
	ocsf_put_src(ocsf);
	ocsf_put_dst(ocsf, host);
	ocsf_put_connection_info(ocsf);
	ocsf_put_proxy(ocsf);
	ocsf_put_traffic(ocsf);
	ocsf_put_tls(ocsf);
	ocsf_put_http(ocsf, host);
	ocsf_put_protocol(ocsf);
	ocsf_put_connection_rest(ocsf, host);
}

/* "A 192.0.2.1" as {type, rdata, ttl}. */
static json_t *
ocsf_answers(const struct query_row *row)
{
	json_t *stored = export_load_array(row->answers), *answers = json_array(), *item;
	char text[EXPORT_TEXT_MAX];
	size_t i;

	json_array_foreach(stored, i, item)
	{
		struct query_text raw = {.bytes = json_string_value(item), .len = json_string_length(item)};
		char *data = text, *type;
		json_t *answer;

		render_escape(raw, text, sizeof(text));
		type = strchr(text, ' ') == NULL ? NULL : strsep(&data, " ");
		answer = json_pack("{s:s, s:s}", "rdata", data, "class", "IN");
		export_put_text(answer, "type", type);
		if (row->ttl_s >= 0 && row->ttl_s <= INT32_MAX)
			export_put_integer(answer, "ttl", row->ttl_s);
		json_array_append_new(answers, answer);
	}
	json_decref(stored);
	return answers;
}

static void
ocsf_put_dns_query(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	char name[EXPORT_TEXT_MAX], word[32];
	bool known = row->rcode >= 0 && row->rcode <= 5;

	render_name(row, name, sizeof(name));
	export_put_own(ocsf->event, "query",
	    json_pack("{s:s, s:s, s:s, s:i}", "hostname", name[0] == '\0' ? "." : name, "type",
		render_qtype(row->qtype, word), "class", "IN", "opcode_id", 0));
	export_put_own(ocsf->event, "answers", ocsf_answers(row));
	export_put_integer(ocsf->event, "rcode_id", known ? row->rcode : OCSF_OTHER);
	export_put_text(ocsf->event, "rcode", render_rcode(row->rcode, word));
	export_put_integer(ocsf->event, "query_time", ocsf_ms(row->ts_us));
	if (row->upstream_us > 0 && row->upstream_us < INT64_MAX / 2 && row->ts_us < INT64_MAX / 2)
		export_put_integer(ocsf->event, "response_time", ocsf_ms(row->ts_us + row->upstream_us));
}

static void
ocsf_put_dns(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;

	ocsf_put_class(ocsf, &ocsf_dns, (struct ocsf_activity){6, "Traffic"}, ocsf_severity(row));
	ocsf_put_status(ocsf, row->verdict == VERDICT_ALLOWED ? 1 : 2);
	ocsf_put_message(ocsf, "dns");
	export_put_integer(ocsf->event, "count", row->count);
	ocsf_put_verdict(ocsf);
	ocsf_put_src(ocsf);
	ocsf_put_dst(ocsf, "");
	ocsf_put_connection_info(ocsf);
	ocsf_put_dns_query(ocsf);
	export_put_number(ocsf->unmapped, "ede", row->ede);
	export_put_number(ocsf->unmapped, "leases", row->leases);
	export_put_bytes(ocsf->unmapped, "domain", row->domain);
	export_put_number(ocsf->unmapped, "entropy", row->entropy);
}

/* One event may be written at its begin and at its end: the id alone would not tell them apart. */
static json_t *
ocsf_metadata(const struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	json_t *metadata = json_object();
	char text[48], id[24];

	export_put_text(metadata, "version", ocsf_versions[ocsf->version]);
	export_put_own(metadata, "product",
	    json_pack("{s:s, s:s, s:s}", "name", "postern", "vendor_name", "postern", "version", POSTERN_VERSION));
	export_put_text(metadata, "log_name", "postern audit");
	export_put_text(metadata, "log_provider", "posternd");
	snprintf(text, sizeof(text), "%d", SCHEMA_VERSION);
	export_put_text(metadata, "log_version", text);
	snprintf(text, sizeof(text), "%s-%" PRId64, export_id(row, id), row->seq);
	export_put_text(metadata, "uid", text);
	export_put_integer(metadata, "sequence", row->seq);
	export_put_text(metadata, "original_time", render_time_utc(row->ts_us, text));
	if (row->kind == QUERY_EVENT)
		export_put_text(metadata, "event_code", event_kind_text(render_index(row->event)));
	json_incref(ocsf->profiles);
	export_put_own(metadata, "profiles", ocsf->profiles);
	return metadata;
}

int
export_ocsf_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	struct ocsf ocsf = {.row = row,
	    .version = options->ocsf,
	    .event = json_object(),
	    .profiles = json_array(),
	    .unmapped = json_object()};

	export_put_integer(ocsf.event, "time", ocsf_ms(ocsf_time_us(row)));
	if (row->kind == QUERY_CONNECTION)
		ocsf_put_connection(&ocsf);
	else if (row->kind == QUERY_DNS)
		ocsf_put_dns(&ocsf);
	else
		ocsf_put_event(&ocsf);
	export_put_own(ocsf.event, "metadata", ocsf_metadata(&ocsf));
	export_put_text(ocsf.unmapped, "cursor", row->cursor);
	export_put_own(ocsf.event, "unmapped", ocsf.unmapped);
	json_decref(ocsf.profiles);
	return export_print_own(out, ocsf.event);
}
