/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Connections as OCSF: Network Activity (4001). */
#include "audit/show/export_ocsf.h"

#include "audit/show/export_row.h"
#include "audit/show/json_line.h"
#include "audit/record.h"
#include "audit/show/render.h"
#include "policy/reason.h"

#include <inttypes.h>
#include <string.h>

/* TLS extensions (RFC 7301; encrypted_client_hello is not among OCSF's). */
#define OCSF_TLS_ALPN 16

static const struct ocsf_class ocsf_network = {4001, 4, "Network Activity", "Network Activity"};

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

	json_line_put_number(traffic, "bytes_out", row->bytes_out);
	json_line_put_number(traffic, "bytes_in", row->bytes_in);
	export_row_put_sum(traffic, "bytes", row->bytes_out, row->bytes_in);
	json_line_put_number(traffic, "packets_out", row->packets_out);
	json_line_put_number(traffic, "packets_in", row->packets_in);
	export_row_put_sum(traffic, "packets", row->packets_out, row->packets_in);
	if (row->end != END_OPEN)
		json_line_put_own(ocsf->event, "traffic", traffic);
	else
		json_line_put_own(export_ocsf_place(ocsf, EXPORT_OCSF_1_8, ocsf->event), "cumulative_traffic", traffic);
}

/* "h2,http/1.1" as an array. */
static json_t *
ocsf_alpn(struct query_text alpn)
{
	json_t *protocols = json_array();
	char text[JSON_LINE_TEXT_MAX], *rest = text, *item;

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

static void
ocsf_put_tls(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	const char *version = export_row_tls_version(row);
	json_t *tls, *ja4;
	char name[JSON_LINE_TEXT_MAX];

	if (!export_row_is_tls(row))
		return;
	tls = json_object();
	json_line_put_text(tls, "version", version == NULL ? "unknown" : version);
	if (export_row_has_server_name(row))
		json_line_put_text(tls, "sni", render_name(row, name, sizeof(name)));
	json_line_put_own(tls, "extension_list", ocsf_tls_extensions(row));
	json_line_put_own(ocsf->event, "tls", tls);
	if (row->ja4.len == 0)
		return;
	ja4 = json_pack("{s:i, s:s}", "type_id", 1, "type", "JA4");
	json_line_put_bytes(ja4, "value", row->ja4);
	json_line_put_own(
	    export_ocsf_place(ocsf, EXPORT_OCSF_1_3, ocsf->event), "ja4_fingerprint_list", json_pack("[o]", ja4));
}

/* The schema has a closed list of methods; others are legal in HTTP. */
static bool
ocsf_method_known(const struct ocsf *ocsf, struct query_text method)
{
	static const char *const methods[] = {"CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "POST", "PUT", "TRACE"};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if (render_is(method, methods[i]))
			return true;
	return render_is(method, "PATCH") && export_ocsf_has(ocsf, EXPORT_OCSF_1_8);
}

/* The method goes to the origin as the guest sent it, where there was a connection to the origin. */
static void
ocsf_put_request(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	json_t *request = json_object();

	json_line_put_bytes(
	    ocsf_method_known(ocsf, row->http_method) ? request : ocsf->unmapped, "http_method", row->http_method);
	json_line_put_own(row->up_src.len > 0 ? ocsf->event : ocsf->unmapped, "proxy_http_request", request);
}

/* The host of a request; postern keeps no path. */
static void
ocsf_put_url(struct ocsf *ocsf, const char *host)
{
	const struct query_row *row = ocsf->row;
	json_t *url;
	char text[JSON_LINE_TEXT_MAX];

	if (!export_row_is_http(row) || host[0] == '\0')
		return;
	url = json_object();
	snprintf(text, sizeof(text), "http://%.255s:%" PRId64, host, row->dport);
	json_line_put_text(url, "url_string", text);
	json_line_put_text(url, "scheme", "http");
	json_line_put_text(url, "hostname", host);
	export_row_put_port(url, row->dport);
	json_line_put_own(ocsf->event, "url", url);
}

/* IANA's service names; only what was read from the connection, not what its port suggests. */
static void
ocsf_put_protocol(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	const char *word = NULL;

	if (export_row_is_http(row))
		word = "http";
	else if (export_row_is_tls(row) && row->dport == 443)
		word = "https";
	json_line_put_text(export_ocsf_place(ocsf, EXPORT_OCSF_1_8, ocsf->event), "app_protocol_name", word);
}

static void
ocsf_put_times(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;

	json_line_put_integer(ocsf->event, "start_time", row->ts_us / 1000);
	if (row->closed_us.set)
		json_line_put_integer(ocsf->event, "end_time", row->closed_us.value / 1000);
	else if (row->last_us.set)
		json_line_put_integer(ocsf->event, "end_time", row->last_us.value / 1000);
	if (row->duration_us.set)
		json_line_put_integer(ocsf->event, "duration", row->duration_us.value / 1000);
	json_line_put_integer(ocsf->event, "count", row->count);
}

/* The name as it was said where it is no host name, and how long each step took. */
static void
ocsf_put_connection_rest(struct ocsf *ocsf, const char *host)
{
	const struct query_row *row = ocsf->row;
	char name[JSON_LINE_TEXT_MAX];

	if (host[0] == '\0')
		json_line_put_text(ocsf->unmapped, "name", render_name(row, name, sizeof(name)));
	json_line_put_text(ocsf->unmapped, "name_source", record_name_source_text(render_index(row->name_source)));
	json_line_put_text(ocsf->unmapped, "end", record_end_text(render_index(row->end)));
	if ((row->flags & RECORD_FLAG_TUNNEL) != 0)
		json_object_set_new(ocsf->unmapped, "tunnel", json_true());
	export_row_put_steps(ocsf->unmapped, row);
}

/* Our own connection to the origin. */
static void
ocsf_put_proxy(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	json_t *endpoint;

	if (row->up_src.len == 0)
		return;
	endpoint = json_object();
	export_ocsf_put_profile(ocsf, "network_proxy");
	export_row_put_ip(endpoint, ocsf->unmapped, "up_src", row->up_src);
	export_row_put_port(endpoint, row->up_sport.value);
	json_line_put_text(endpoint, "name", "postern");
	json_line_put_own(ocsf->event, "proxy_endpoint", endpoint);
	json_line_put_own(ocsf->event, "proxy_connection_info",
	    export_ocsf_connection_info(ocsf, "proxy_community_uid", row->up_community_id));
}

void
export_ocsf_connection(struct ocsf *ocsf)
{
	const struct query_row *row = ocsf->row;
	struct ocsf_activity activity = ocsf_activity(row);
	char host[JSON_LINE_TEXT_MAX], word[32];
	bool failed = activity.id == 4 || activity.id == 5;

	export_row_host(row, host, sizeof(host));
	export_ocsf_put_class(ocsf, &ocsf_network, activity, export_ocsf_severity(row));
	export_ocsf_put_status(ocsf, activity.id == 0 ? 0 : failed ? 2 : 1);
	export_ocsf_put_message(ocsf, render_proto(row->proto, word));
	ocsf_put_times(ocsf);
	export_ocsf_put_verdict(ocsf);
	export_ocsf_put_src(ocsf);
	export_ocsf_put_dst(ocsf, host);
	export_ocsf_put_connection_info(ocsf);
	ocsf_put_proxy(ocsf);
	ocsf_put_traffic(ocsf);
	ocsf_put_tls(ocsf);
	ocsf_put_request(ocsf);
	ocsf_put_url(ocsf, host);
	ocsf_put_protocol(ocsf);
	ocsf_put_connection_rest(ocsf, host);
}
