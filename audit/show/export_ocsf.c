/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A row becomes one OCSF event: a connection or a refusal Network Activity (4001), a query DNS
 * Activity (4003), the rest by audit/show/export_ocsf_event.c. The schema grew from version to version; each member
 * goes where the version asked for has a place for it, else under its name to "unmapped", which every version has. So
 * no version loses anything, and none shows a collector a member that it does not know.
 *
 * postern is a firewall that is a proxy: verdict and rule are the profile security_control, its own connection to the
 * origin the profile network_proxy, the sandbox the profile container. */
#include "audit/show/export_ocsf.h"

#include "audit/show/export_formats.h"
#include "audit/show/export_row.h"
#include "audit/show/json_line.h"
#include "audit/record.h"
#include "audit/show/render.h"
#include "audit/store/schema.h"
#include "policy/reason.h"

#include <assert.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>

#define OCSF_DIRECTION_OUTBOUND 2

static const char *const ocsf_versions[] = {"1.1.0", "1.3.0", "1.5.0", "1.8.0"};
static_assert(sizeof(ocsf_versions) / sizeof(ocsf_versions[0]) == EXPORT_OCSF_MAX, "a number for each version");

static const struct ocsf_class ocsf_dns = {4003, 4, "DNS Activity", "Network Activity"};

void
export_ocsf_put_class(
    struct ocsf *ocsf, const struct ocsf_class *class, struct ocsf_activity activity, enum ocsf_severity severity)
{
	static const char *const severities[] = {
	    "Unknown", "Informational", "Low", "Medium", "High"}; /* as enum ocsf_severity */
	char type[128];

	snprintf(type, sizeof(type), "%s: %s", class->name, activity.name);
	json_line_put_integer(ocsf->event, "category_uid", class->category_uid);
	json_line_put_text(ocsf->event, "category_name", class->category);
	json_line_put_integer(ocsf->event, "class_uid", class->uid);
	json_line_put_text(ocsf->event, "class_name", class->name);
	json_line_put_integer(ocsf->event, "activity_id", activity.id);
	json_line_put_text(ocsf->event, "activity_name", activity.name);
	json_line_put_integer(ocsf->event, "type_uid", class->uid * 100 + activity.id);
	json_line_put_text(ocsf->event, "type_name", type);
	json_line_put_integer(ocsf->event, "severity_id", severity);
	json_line_put_text(ocsf->event, "severity", severities[severity]);
}

void
export_ocsf_put_status(struct ocsf *ocsf, int status)
{
	static const char *const words[] = {"Unknown", "Success", "Failure"};

	json_line_put_integer(ocsf->event, "status_id", status);
	json_line_put_text(ocsf->event, "status", words[status]);
}

bool
export_ocsf_has(const struct ocsf *ocsf, enum export_ocsf since)
{
	return ocsf->version >= since;
}

/* Where a member goes that came with a version. */
json_t *
export_ocsf_place(const struct ocsf *ocsf, enum export_ocsf since, json_t *object)
{
	return export_ocsf_has(ocsf, since) ? object : ocsf->unmapped;
}

void
export_ocsf_put_profile(struct ocsf *ocsf, const char *profile)
{
	json_array_append_new(ocsf->profiles, json_string(profile));
}

void
export_ocsf_put_src(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	json_t *endpoint = json_object(), *container = json_object();

	export_row_put_ip(endpoint, ocsf->unmapped, "src", row->src);
	export_row_put_port(endpoint, row->sport);
	json_line_put_bytes(endpoint, "name", row->sandbox);
	json_line_put_decimal(endpoint, "uid", row->sandbox_id);
	json_line_put_bytes(container, "name", row->sandbox);
	json_line_put_decimal(container, "uid", row->sandbox_id);
	json_line_put_own(endpoint, "container", container);
	json_line_put_own(ocsf->event, "src_endpoint", endpoint);
	export_ocsf_put_profile(ocsf, "container");
}

void
export_ocsf_put_dst(struct ocsf *ocsf, const char *host)
{
	const struct query_row *row = ocsf->row;
	json_t *endpoint = json_object(), *as = json_object(), *location = json_object();

	export_row_put_ip(endpoint, ocsf->unmapped, "dst", row->dst);
	export_row_put_port(endpoint, row->dport);
	json_line_put_text(endpoint, "hostname", host);
	json_line_put_number(as, "number", row->asn);
	json_line_put_bytes(as, "name", row->as_org);
	json_line_put_own(export_ocsf_place(ocsf, EXPORT_OCSF_1_3, endpoint), "autonomous_system", as);
	json_line_put_bytes(location, "country", row->country);
	json_line_put_own(endpoint, "location", location);
	/* Required up to 1.3, and packets that were only counted have none. */
	if (json_object_size(endpoint) == 0)
		json_line_put_text(endpoint, "name", "unknown");
	json_line_put_own(ocsf->event, "dst_endpoint", endpoint);
}

/* Protocol and direction; side: the guest's connection, or ours to the origin. */
json_t *
export_ocsf_connection_info(const struct ocsf *ocsf, const char *unmapped_key, struct query_text community_id)
{
	const struct query_row *row = ocsf->row;
	json_t *info = json_object();
	char word[32];

	json_line_put_integer(info, "direction_id", OCSF_DIRECTION_OUTBOUND);
	json_line_put_text(info, "direction", "Outbound");
	json_line_put_integer(info, "protocol_num", row->proto);
	json_line_put_text(info, "protocol_name", render_proto(row->proto, word));
	if (row->dst.len > 0)
		json_line_put_integer(
		    info, "protocol_ver_id", memchr(row->dst.bytes, ':', row->dst.len) == NULL ? 4 : 6);
	if (export_ocsf_has(ocsf, EXPORT_OCSF_1_5))
		json_line_put_bytes(info, "community_uid", community_id);
	else
		json_line_put_bytes(ocsf->unmapped, unmapped_key, community_id);
	return info;
}

void
export_ocsf_put_connection_info(struct ocsf *ocsf)
{
	json_t *info = export_ocsf_connection_info(ocsf, "community_uid", ocsf->row->community_id);
	char id[24];

	json_line_put_text(info, "uid", export_row_id(ocsf->row, id));
	json_line_put_own(ocsf->event, "connection_info", info);
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
	if (export_row_learned(row) && export_ocsf_has(ocsf, EXPORT_OCSF_1_5))
		return (struct ocsf_verdict){3, "Observed", 17, "Logged"};
	if (export_row_learned(row))
		return (struct ocsf_verdict){1, "Allowed", 17, "Logged"};
	return (struct ocsf_verdict){1, "Allowed", 1, "Allowed"};
}

/* The policy of a sandbox has its name. */
static void
ocsf_put_policy(struct ocsf *ocsf)
{
	json_t *policy;

	if (ocsf->row->sandbox.len == 0)
		return;
	policy = json_object();
	json_line_put_bytes(policy, "name", ocsf->row->sandbox);
	json_line_put_decimal(policy, "version", ocsf->row->generation);
	json_line_put_own(export_ocsf_place(ocsf, EXPORT_OCSF_1_5, ocsf->event), "policy", policy);
}

void
export_ocsf_put_verdict(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	struct ocsf_verdict verdict = ocsf_verdict(ocsf);
	json_t *rule = json_object();

	export_ocsf_put_profile(ocsf, "security_control");
	json_line_put_integer(ocsf->event, "action_id", verdict.action_id);
	json_line_put_text(ocsf->event, "action", verdict.action);
	json_line_put_integer(ocsf->event, "disposition_id", verdict.disposition_id);
	json_line_put_text(ocsf->event, "disposition", verdict.disposition);
	json_line_put_bytes(rule, "name", row->rule);
	json_line_put_own(ocsf->event, "firewall_rule", rule);
	ocsf_put_policy(ocsf);
	json_line_put_text(ocsf->event, "status_code", render_reason(row));
	json_line_put_text(ocsf->event, "status_detail", reason_sentence(render_index(row->reason)));
	json_line_put_bytes(ocsf->unmapped, "detail", row->detail);
	if (export_row_learned(row))
		json_object_set_new(ocsf->unmapped, "learned", json_true());
}

/* What nobody stumbles upon is graver than a name that no rule allows. */
enum ocsf_severity
export_ocsf_severity(const struct query_row *row)
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

/* "denied tcp example.com port 443: no_rule": what people read in a list. */
void
export_ocsf_put_message(struct ocsf *ocsf, const char *what)
{
	const struct query_row *row = ocsf->row;
	char name[JSON_LINE_TEXT_MAX], port[32] = "", message[JSON_LINE_TEXT_MAX + 128];
	bool allowed = row->reason == REASON_ALLOWED;

	render_name(row, name, sizeof(name));
	if (name[0] == '\0' && row->kind == QUERY_CONNECTION)
		render_escape(row->dst, name, sizeof(name));
	if (row->kind == QUERY_CONNECTION && row->dport > 0)
		snprintf(port, sizeof(port), " port %" PRId64, row->dport);
	snprintf(message, sizeof(message), "%s %s %s%s%s%s", render_verdict(row), what, name[0] == '\0' ? "." : name,
	    port, allowed ? "" : ": ", allowed ? "" : render_reason(row));
	json_line_put_text(ocsf->event, "message", message);
}

static void
ocsf_put_dns_query(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	char name[JSON_LINE_TEXT_MAX], word[32];
	bool known = row->rcode >= 0 && row->rcode <= 5;

	render_name(row, name, sizeof(name));
	json_line_put_own(ocsf->event, "query",
	    json_pack("{s:s, s:s, s:s, s:i}", "hostname", name[0] == '\0' ? "." : name, "type",
		render_qtype(row->qtype, word), "class", "IN", "opcode_id", 0));
	json_line_put_own(ocsf->event, "answers", export_row_answers(row, "rdata"));
	json_line_put_integer(ocsf->event, "rcode_id", known ? row->rcode : OCSF_OTHER);
	json_line_put_text(ocsf->event, "rcode", render_rcode(row->rcode, word));
	json_line_put_integer(ocsf->event, "query_time", row->ts_us / 1000);
	if (row->upstream_us > 0 && row->upstream_us < INT64_MAX / 2 && row->ts_us < INT64_MAX / 2)
		json_line_put_integer(ocsf->event, "response_time", (row->ts_us + row->upstream_us) / 1000);
}

static void
ocsf_put_dns(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;

	export_ocsf_put_class(ocsf, &ocsf_dns, (struct ocsf_activity){6, "Traffic"}, export_ocsf_severity(row));
	export_ocsf_put_status(ocsf, row->verdict == VERDICT_ALLOWED ? 1 : 2);
	export_ocsf_put_message(ocsf, "dns");
	json_line_put_integer(ocsf->event, "count", row->count);
	export_ocsf_put_verdict(ocsf);
	export_ocsf_put_src(ocsf);
	export_ocsf_put_dst(ocsf, "");
	export_ocsf_put_connection_info(ocsf);
	ocsf_put_dns_query(ocsf);
	json_line_put_number(ocsf->unmapped, "ede", row->ede);
	json_line_put_number(ocsf->unmapped, "leases", row->leases);
	json_line_put_bytes(ocsf->unmapped, "domain", row->domain);
	json_line_put_number(ocsf->unmapped, "entropy", row->entropy);
}

/* KEY=VALUE, of the sandbox. */
static json_t *
ocsf_labels(const struct query_row *row)
{
	json_t *object = json_line_load_object(row->labels), *labels = json_array(), *value;
	const char *key;

	json_object_foreach(object, key, value) if (json_is_string(value))
	    json_array_append_new(labels, json_sprintf("%s=%s", key, json_string_value(value)));
	json_decref(object);
	return labels;
}

static json_t *
ocsf_metadata(const struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	json_t *metadata = json_object();
	char text[48];

	json_line_put_text(metadata, "version", ocsf_versions[ocsf->version]);
	json_line_put_own(metadata, "product",
	    json_pack("{s:s, s:s, s:s}", "name", "postern", "vendor_name", "postern", "version", POSTERN_VERSION));
	json_line_put_text(metadata, "log_name", "postern audit");
	json_line_put_text(metadata, "log_provider", "posternd");
	json_line_put_decimal(metadata, "log_version", SCHEMA_VERSION);
	json_line_put_text(metadata, "uid", export_row_version_id(row, text));
	json_line_put_integer(metadata, "sequence", row->seq);
	json_line_put_text(metadata, "original_time", render_time_utc(row->ts_us, text));
	if (row->kind == QUERY_EVENT)
		json_line_put_text(metadata, "event_code", record_event_text(render_index(row->event)));
	json_line_put_own(metadata, "labels", ocsf_labels(row));
	json_incref(ocsf->profiles);
	json_line_put_own(metadata, "profiles", ocsf->profiles);
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

	json_line_put_integer(ocsf.event, "time", export_row_time_us(row) / 1000);
	if (row->kind == QUERY_CONNECTION)
		export_ocsf_connection(&ocsf);
	else if (row->kind == QUERY_DNS)
		ocsf_put_dns(&ocsf);
	else
		export_ocsf_event(&ocsf);
	json_line_put_own(ocsf.event, "metadata", ocsf_metadata(&ocsf));
	json_line_put_text(ocsf.unmapped, "cursor", row->cursor);
	json_line_put_own(ocsf.event, "unmapped", ocsf.unmapped);
	json_decref(ocsf.profiles);
	return json_line_print_own(out, ocsf.event);
}
