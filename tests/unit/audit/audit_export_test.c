/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is taken away: exact lines of each format, every kind of row through tests/lab/check_export.py, and hostile
 * bytes in every place of it (CASES F-28, F-29, F-30). */
#include "audit/show/export.h"
#include "audit_fixture.h"

#include <jansson.h>
#include <time.h>

static const char *const formats[] = {"csv", "zeek", "zeek-dns", "zeek-ssl", "zeek-http", "ocsf", "ecs"};
#define FORMATS (sizeof(formats) / sizeof(formats[0]))

static char *output;

static struct query_text
text(const char *bytes)
{
	return (struct query_text){.bytes = bytes, .len = strlen(bytes)};
}

static struct query_number
number(int64_t value)
{
	return (struct query_number){.set = true, .value = value};
}

/* Rows in a format, with what stands around them, to output. */
static void
write_rows(const char *word, enum export_ocsf ocsf, const struct query_row *rows, size_t count)
{
	const struct export_format *format = export_find(word);
	struct export_options options = {.ocsf = ocsf};
	size_t size;
	FILE *out;

	free(output);
	output = NULL;
	out = open_memstream(&output, &size);
	assert_non_null(format);
	assert_non_null(out);
	if (format->begin != NULL)
		format->begin(out);
	for (size_t i = 0; i < count; i++)
		if ((rows[i].kind & format->kinds) != 0)
			assert_int_equal(format->row(out, &options, &rows[i]), 0);
	if (format->end != NULL)
		format->end(out);
	fclose(out);
}

/* Does the checker, which knows the schema, accept the output? */
static void
check_output(const char *word, const char *version)
{
	char command[128];
	FILE *checker;

	snprintf(command, sizeof(command), "tests/lab/check_export.py %.4s %s >&2",
	    strncmp(word, "zeek", 4) == 0 ? "zeek" : word, version);
	checker = popen(command, "w");
	assert_non_null(checker);
	fwrite(output, 1, strlen(output), checker);
	if (pclose(checker) != 0)
		fail_msg("%s %s is not valid", word, version);
}

/* In every format, in every version. */
static void
check_rows(const struct query_row *rows, size_t count)
{
	static const char *const versions[] = {"1.1", "1.3", "1.5", "1.8"};

	for (size_t i = 0; i < FORMATS; i++) {
		bool ocsf = strcmp(formats[i], "ocsf") == 0;

		for (unsigned int k = 0; k < (ocsf ? EXPORT_OCSF_MAX : 1); k++) {
			write_rows(formats[i], (enum export_ocsf)k, rows, count);
			check_output(formats[i], ocsf ? versions[k] : "");
		}
	}
}

static struct query_row
connection(void)
{
	return (struct query_row){.kind = QUERY_CONNECTION,
	    .id = 0x32a9f88000000001,
	    .seq = 9,
	    .ts_us = FIXTURE_TS,
	    .sandbox = text("task1"),
	    .sandbox_id = 7,
	    .labels = text("{\"task\":\"4711\",\"org.team/x\":\"a b\"}"),
	    .count = 1,
	    .proto = 6,
	    .src = text("172.16.0.2"),
	    .dst = text("140.82.121.4"),
	    .sport = 40000,
	    .dport = 443,
	    .name = text("github.com"),
	    .name_source = NAME_SOURCE_SNI,
	    .rule = text("allow *.github.com (a.yaml:7)"),
	    .generation = 3,
	    .alpn = text("h2,http/1.1"),
	    .flags = RECORD_FLAG_ECH,
	    .bytes_out = number(1234),
	    .bytes_in = number(5678901),
	    .packets_out = number(12),
	    .packets_in = number(400),
	    .duration_us = number(1203456),
	    .closed_us = number(FIXTURE_TS + 1203456),
	    .end = END_FIN,
	    .tls_version = number(0x0304),
	    .ja4 = text("t13d1516h2_8daaf6152771_b186095e22b6"),
	    .country = text("US"),
	    .asn = number(36459),
	    .as_org = text("GITHUB"),
	    .dns_us = number(12500),
	    .hello_us = number(900),
	    .connect_us = number(20000),
	    .first_byte_us = number(45000),
	    .community_id = text("1:0Pdn4bQ/Tp9tIDrHxVxMtMOcLdY="),
	    .up_src = text("203.0.114.9"),
	    .up_sport = number(51000),
	    .up_community_id = text("1:iDrHxVxMtMOcLdY0Pdn4bQ/Tp9t=")};
}

static struct query_row
request(void)
{
	struct query_row row = connection();

	row.dport = 80;
	row.name_source = NAME_SOURCE_HOST;
	row.http_method = text("GET");
	row.tls_version.set = false;
	row.ja4 = row.alpn = (struct query_text){NULL, 0};
	row.flags = 0;
	return row;
}

static struct query_row
refused(void)
{
	return (struct query_row){.kind = QUERY_CONNECTION,
	    .id = 1,
	    .ts_us = FIXTURE_TS,
	    .last_us = number(FIXTURE_TS + 5000000),
	    .sandbox = text("task1"),
	    .sandbox_id = 7,
	    .count = 40,
	    .proto = 6,
	    .src = text("172.16.0.2"),
	    .sport = 40001,
	    .dst = text("169.254.169.254"),
	    .dport = 80,
	    .verdict = VERDICT_DENIED,
	    .reason = REASON_NEVER_ADDRESS,
	    .detail = text("cloud metadata"),
	    .end = END_REFUSED};
}

static struct query_row
question(void)
{
	return (struct query_row){.kind = QUERY_DNS,
	    .id = 2,
	    .ts_us = FIXTURE_TS,
	    .sandbox = text("task1"),
	    .sandbox_id = 7,
	    .count = 1,
	    .proto = 17,
	    .src = text("172.16.0.2"),
	    .sport = 5353,
	    .dst = text("8.8.8.8"),
	    .dport = 53,
	    .name = text("www.github.com"),
	    .qtype = 1,
	    .ttl_s = 60,
	    .upstream_us = 12500,
	    .rule = text("allow *.github.com (a.yaml:7)"),
	    .generation = 3,
	    .leases = number(1),
	    .entropy = number(312),
	    .domain = text("github.com"),
	    .answers = text("[\"CNAME github.com\",\"A 140.82.121.4\"]")};
}

static struct query_row
event(enum event_kind kind, const char *detail)
{
	return (struct query_row){.kind = QUERY_EVENT,
	    .id = 3,
	    .ts_us = FIXTURE_TS,
	    .sandbox = text("task1"),
	    .sandbox_id = 7,
	    .count = 1,
	    .event = kind,
	    .uid = number(1000),
	    .detail = text(detail)};
}

static void
test_csv(void **state)
{
	struct query_row rows[] = {refused(), event(EVENT_POLICY, "{\"from\":1}")};

	(void)state;
	write_rows("csv", 0, rows, 2);
	check_output("csv", "");
	assert_non_null(strstr(output,
	    "\r\n\"connection\",\"2023-11-14T22:13:20.123456Z\",\"0000000000000001\",\"0\",\"task1\",\"7\","
	    "\"denied\",\"never_address\",\"\",\"cloud metadata\",\"0\",\"0\",\"40\",\"tcp\","
	    "\"172.16.0.2\",\"40001\",\"169.254.169.254\",\"80\",\"\",\"none\","));
	assert_non_null(strstr(output,
	    "\r\n\"event\",\"2023-11-14T22:13:20.123456Z\",\"0000000000000003\",\"0\",\"task1\",\"7\","
	    "\"\",\"\",\"\",\"{\"\"from\"\":1}\",\"\","));
	assert_non_null(strstr(output, ",\"policy\",\"1000\",\"\"\r\n"));
}

/* Tools of spreadsheets start with a formula's first character, whatever follows. */
static void
case_F_29_a_cell_is_no_formula(void **state)
{
	static const char *const formulas[] = {
	    "=cmd|' /C calc'!A0", "-1+1", "+1", "@SUM(1+1)", "=\"a\",\"b\"", "\t=1", "\r=1"};
	static const char *const want[] = {"\"'=cmd|' /C calc'!A0\"", "\"'-1+1\"", "\"'+1\"", "\"'@SUM(1+1)\"",
	    "\"'=\"\"a\"\",\"\"b\"\"\"", "\"\\x09=1\"", "\"\\x0d=1\""};

	(void)state;
	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++) {
		struct query_row row = refused();

		row.rule = row.detail = row.name_raw = text(formulas[i]);
		write_rows("csv", 0, &row, 1);
		check_output("csv", "");
		assert_non_null(strstr(output, want[i]));
	}
}

static void
test_zeek_conn(void **state)
{
	struct query_row rows[] = {connection(), refused()};

	(void)state;
	write_rows("zeek", 0, rows, 2);
	check_output("zeek", "");
	assert_non_null(strstr(output,
	    "\n1700000000.123456\tC32a9f88000000001\t172.16.0.2\t40000\t140.82.121.4\t443\ttcp\tssl\t1."
	    "203456\t1234\t5678901\t"
	    "SF\tT\tF\t0\t-\t12\t-\t400\t-\t-\t6\t1:0Pdn4bQ/"
	    "Tp9tIDrHxVxMtMOcLdY=\tUS\tgithub.com\ttask1\tallowed\tallowed\t"
	    "allow *.github.com (a.yaml:7)\t-\tfin\t36459\n"));
	assert_non_null(strstr(output,
	    "\n1700000000.123456\tC0000000000000001\t172.16.0.2\t40001\t169.254.169.254\t80\ttcp\t-\t-\t-\t-"
	    "\tREJ\tT\tF\t0\t-\t"
	    "40\t-\t-\t-\t-\t6\t-\t-\t-\ttask1\tdenied\tnever_address\t-\tcloud metadata\trefused\t-\n"));
}

static void
test_zeek_states(void **state)
{
	static const char *const want[] = {
	    "S1", "SF", "RSTO", "RSTR", "S1", "REJ", "REJ", "RSTR", "OTH", "RSTR", "OTH", "OTH", "OTH", "OTH"};

	(void)state;
	for (int64_t end = 0; end < END_MAX; end++) {
		struct query_row row = connection();
		char field[16];

		row.end = end;
		write_rows("zeek", 0, &row, 1);
		snprintf(field, sizeof(field), "\t%s\tT\tF\t", want[end]);
		assert_non_null(strstr(output, field));
	}
}

/* A follower gets a connection once, at its end. */
static void
test_zeek_waits_for_the_end(void **state)
{
	struct export_options options = {.following = true};
	const struct export_format *format = export_find("zeek");
	struct query_row row = connection();
	size_t size;
	FILE *out;

	(void)state;
	free(output);
	output = NULL;
	out = open_memstream(&output, &size);
	row.end = END_OPEN;
	assert_int_equal(format->row(out, &options, &row), 0);
	fflush(out);
	assert_string_equal(output, "");
	row.end = END_FIN;
	assert_int_equal(format->row(out, &options, &row), 0);
	fclose(out);
	assert_non_null(strstr(output, "\tSF\t"));
}

static void
test_zeek_others(void **state)
{
	struct query_row rows[] = {connection(), request(), question()};

	(void)state;
	write_rows("zeek-dns", 0, rows, 3);
	assert_non_null(strstr(output,
	    "\n1700000000.123456\tC0000000000000002\t172.16.0.2\t5353\t8.8.8.8\t53\tudp\t-\t0.012500\twww.github."
	    "com\t1\t"
	    "C_INTERNET\t1\tA\t0\tNOERROR\t-\t-\t-\t-\t-\tgithub.com,140.82.121.4\t60.000000,60."
	    "000000\tF\ttask1\tallowed\t"
	    "allowed\tallow *.github.com (a.yaml:7)\t-\t-\n#close"));
	write_rows("zeek-ssl", 0, rows, 3);
	assert_non_null(strstr(output,
	    "\t443\t-\t-\t-\tgithub.com\t-\t-\t-\t-\t-\t-\t-\t-\tt13d1516h2_8daaf6152771_b186095e22b6\tTLSv13\t"
	    "h2,http/1.1\tT\ttask1\tallowed\tallowed\tallow *.github.com (a.yaml:7)\t-\n#close"));
	assert_null(strstr(output, "\t80\t"));
	write_rows("zeek-http", 0, rows, 3);
	assert_non_null(strstr(output, "\t80\t-\tGET\tgithub.com\t-\t"));
	assert_null(strstr(output, "\t443\t"));
}

/* Zeek's words for no value, said by a guest, are not read as such; nor is the separator of a vector. */
static void
test_zeek_words(void **state)
{
	struct query_row row = refused();

	(void)state;
	row.name_raw = text("-");
	row.detail = text("(empty)");
	write_rows("zeek", 0, &row, 1);
	assert_non_null(strstr(output, "\t\\x2d\ttask1\t"));
	assert_non_null(strstr(output, "\t\\x28empty)\t"));
	row = question();
	row.answers = text("[\"TXT a,b\",\"A 1.2.3.4\"]");
	write_rows("zeek-dns", 0, &row, 1);
	check_output("zeek", "");
	assert_non_null(strstr(output, "\ta\\x2cb,1.2.3.4\t60.000000,60.000000\t"));
}

/* A path of keys into the only object of output. */
static json_t *
at(const char *path)
{
	static json_t *object;
	char copy[128], *rest = copy, *key;
	json_t *value;

	json_decref(object);
	object = json_loads(output, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(object);
	snprintf(copy, sizeof(copy), "%s", path);
	value = object;
	while ((key = strsep(&rest, ".")) != NULL)
		value = json_is_array(value) ? json_array_get(value, (size_t)atoi(key)) : json_object_get(value, key);
	return value;
}

static void
assert_at(const char *path, const char *want)
{
	json_t *value = at(path);
	char *got = value == NULL ? NULL : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);

	if (strcmp(got == NULL ? "" : got, want) != 0)
		fail_msg("%s: %s, not %s", path, got == NULL ? "nothing" : got, want);
	free(got);
}

static void
test_ocsf_connection(void **state)
{
	struct query_row row = connection();

	(void)state;
	write_rows("ocsf", EXPORT_OCSF_1_8, &row, 1);
	assert_at("class_uid", "4001");
	assert_at("type_uid", "400102");
	assert_at("activity_name", "\"Close\"");
	assert_at("time", "1700000001326");
	assert_at("start_time", "1700000000123");
	assert_at("duration", "1203");
	assert_at("action_id", "1");
	assert_at("disposition_id", "1");
	assert_at("status_id", "1");
	assert_at("severity_id", "1");
	assert_at("firewall_rule.name", "\"allow *.github.com (a.yaml:7)\"");
	assert_at("policy", "{\"name\":\"task1\",\"version\":\"3\"}");
	assert_at("src_endpoint",
	    "{\"container\":{\"name\":\"task1\",\"uid\":\"7\"},\"ip\":\"172.16.0.2\",\"name\":\"task1\",\"port\":40000,"
	    "\"uid\":\"7\"}");
	assert_at("dst_endpoint",
	    "{\"autonomous_system\":{\"name\":\"GITHUB\",\"number\":36459},\"hostname\":\"github.com\","
	    "\"ip\":\"140.82.121.4\",\"location\":{\"country\":\"US\"},\"port\":443}");
	assert_at("connection_info.community_uid", "\"1:0Pdn4bQ/Tp9tIDrHxVxMtMOcLdY=\"");
	assert_at("proxy_endpoint", "{\"ip\":\"203.0.114.9\",\"name\":\"postern\",\"port\":51000}");
	assert_at("traffic",
	    "{\"bytes\":5680135,\"bytes_in\":5678901,\"bytes_out\":1234,\"packets\":412,\"packets_in\":400,\"packets_"
	    "out\":12}");
	assert_at("tls.version", "\"1.3\"");
	assert_at("tls.sni", "\"github.com\"");
	assert_at("tls.extension_list.0.data.protocols", "[\"h2\",\"http/1.1\"]");
	assert_at("ja4_fingerprint_list",
	    "[{\"type\":\"JA4\",\"type_id\":1,\"value\":\"t13d1516h2_8daaf6152771_b186095e22b6\"}]");
	assert_at("metadata.profiles", "[\"security_control\",\"container\",\"network_proxy\"]");
	assert_at("metadata.version", "\"1.8.0\"");
	assert_at("metadata.labels", "[\"task=4711\",\"org.team/x=a b\"]");
	assert_at("metadata.uid", "\"32a9f88000000001-9\"");
	/* What 1.1 does not know is not lost. */
	write_rows("ocsf", EXPORT_OCSF_1_1, &row, 1);
	assert_at("metadata.version", "\"1.1.0\"");
	assert_at("ja4_fingerprint_list", "");
	assert_at("unmapped.ja4_fingerprint_list.0.value", "\"t13d1516h2_8daaf6152771_b186095e22b6\"");
	assert_at("unmapped.autonomous_system.number", "36459");
	assert_at("unmapped.community_uid", "\"1:0Pdn4bQ/Tp9tIDrHxVxMtMOcLdY=\"");
	assert_at("unmapped.policy.version", "\"3\"");
}

static void
test_ocsf_activities(void **state)
{
	static const struct {
		int64_t verdict, end, reason;
		bool bytes;
		const char *type, *action, *disposition, *status;
	} cases[] = {
	    {VERDICT_ALLOWED, END_OPEN, REASON_ALLOWED, false, "400101", "1", "1", "1"},
	    {VERDICT_ALLOWED, END_OPEN, REASON_ALLOWED, true, "400106", "1", "1", "1"},
	    {VERDICT_ALLOWED, END_FIN, REASON_ALLOWED, true, "400102", "1", "1", "1"},
	    {VERDICT_ALLOWED, END_RST_ORIGIN, REASON_ALLOWED, true, "400103", "1", "1", "1"},
	    {VERDICT_ALLOWED, END_POLICY, REASON_REVOKED, true, "400103", "1", "21", "1"},
	    {VERDICT_FAILED, END_CONNECT_FAILED, REASON_UPSTREAM_ERROR, false, "400104", "1", "27", "2"},
	    {VERDICT_DENIED, END_REFUSED, REASON_NO_RULE, false, "400105", "2", "2", "2"},
	    {VERDICT_LIMITED, END_REFUSED, REASON_LIMIT_RATE, false, "400105", "2", "2", "2"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct query_row row = connection();

		row.verdict = cases[i].verdict;
		row.end = cases[i].end;
		row.reason = cases[i].reason;
		row.bytes_out.set = row.bytes_in.set = cases[i].bytes;
		write_rows("ocsf", EXPORT_OCSF_1_8, &row, 1);
		assert_at("type_uid", cases[i].type);
		assert_at("action_id", cases[i].action);
		assert_at("disposition_id", cases[i].disposition);
		assert_at("status_id", cases[i].status);
	}
}

static void
test_ocsf_learned(void **state)
{
	struct query_row row = connection();

	(void)state;
	row.flags = RECORD_FLAG_LEARN;
	row.rule = text(RECORD_RULE_LEARN);
	write_rows("ocsf", EXPORT_OCSF_1_5, &row, 1);
	assert_at("action_id", "3");
	assert_at("disposition_id", "17");
	write_rows("ocsf", EXPORT_OCSF_1_3, &row, 1);
	assert_at("action_id", "1");
	assert_at("disposition_id", "17");
	assert_at("unmapped.learned", "true");
}

static void
test_ocsf_dns(void **state)
{
	struct query_row row = question();

	(void)state;
	write_rows("ocsf", EXPORT_OCSF_1_8, &row, 1);
	assert_at("type_uid", "400306");
	assert_at("query", "{\"class\":\"IN\",\"hostname\":\"www.github.com\",\"opcode_id\":0,\"type\":\"A\"}");
	assert_at("answers.1", "{\"class\":\"IN\",\"rdata\":\"140.82.121.4\",\"ttl\":60,\"type\":\"A\"}");
	assert_at("rcode_id", "0");
	row.verdict = VERDICT_DENIED;
	row.rcode = 17;
	row.name = (struct query_text){NULL, 0};
	write_rows("ocsf", EXPORT_OCSF_1_8, &row, 1);
	assert_at("query.hostname", "\".\"");
	assert_at("rcode_id", "99");
	assert_at("action_id", "2");
}

static void
test_ocsf_events(void **state)
{
	struct query_row row = event(EVENT_POLICY,
	    "{\"from\":1,\"to\":2,\"change\":[\"+allow a.org\",\"-deny b.org\"],\"pid\":77,\"comm\":\"postern\","
	    "\"command\":\"postern allow task1 a.org\"}");

	(void)state;
	write_rows("ocsf", EXPORT_OCSF_1_8, &row, 1);
	assert_at("type_uid", "300403");
	assert_at("entity", "{\"name\":\"task1\",\"type\":\"Policy\",\"type_id\":5,\"uid\":\"7\",\"version\":\"1\"}");
	assert_at("entity_result.version", "\"2\"");
	assert_at("actor",
	    "{\"process\":{\"cmd_line\":\"postern allow task1 a.org\",\"name\":\"postern\",\"pid\":77},"
	    "\"user\":{\"uid\":\"1000\"}}");
	assert_at("comment", "\"+allow a.org, -deny b.org\"");
	row = event(EVENT_TAMPERED, "{\"repaired\":true}");
	write_rows("ocsf", EXPORT_OCSF_1_8, &row, 1);
	assert_at("type_uid", "200401");
	assert_at("severity_id", "4");
	assert_at("resources.0.name", "\"task1\"");
	row = event(EVENT_MARK, "{\"text\":\"step 37: \\u2713\"}");
	write_rows("ocsf", EXPORT_OCSF_1_8, &row, 1);
	assert_at("type_uid", "99");
	assert_at("message", "\"step 37: \xe2\x9c\x93\"");
	assert_null(strstr(output, "\xe2"));
}

static void
test_ecs(void **state)
{
	struct query_row row = connection();

	(void)state;
	write_rows("ecs", 0, &row, 1);
	assert_at("@timestamp", "\"2023-11-14T22:13:21.326912Z\"");
	assert_at("event.type", "[\"connection\",\"allowed\",\"end\"]");
	assert_at("event.category", "[\"network\"]");
	assert_at("event.outcome", "\"success\"");
	assert_at("event.duration", "1203456000");
	assert_at("network.transport", "\"tcp\"");
	assert_at("network.community_id", "\"1:0Pdn4bQ/Tp9tIDrHxVxMtMOcLdY=\"");
	assert_at("source",
	    "{\"bytes\":1234,\"ip\":\"172.16.0.2\",\"nat\":{\"ip\":\"203.0.114.9\",\"port\":51000},\"packets\":12,"
	    "\"port\":40000}");
	assert_at("destination.as", "{\"number\":36459,\"organization\":{\"name\":\"GITHUB\"}}");
	assert_at("destination.geo.country_iso_code", "\"US\"");
	assert_at("tls.client.server_name", "\"github.com\"");
	assert_at("container", "{\"id\":\"7\",\"name\":\"task1\"}");
	assert_at("labels", "{\"org_team/x\":\"a b\",\"task\":\"4711\"}");
	assert_at("rule.name", "\"allow *.github.com (a.yaml:7)\"");
	row = refused();
	write_rows("ecs", 0, &row, 1);
	assert_at("event.type", "[\"connection\",\"denied\"]");
	assert_at("event.outcome", "\"success\"");
	assert_at("event.code", "\"never_address\"");
	row.verdict = VERDICT_FAILED;
	write_rows("ecs", 0, &row, 1);
	assert_at("event.outcome", "\"failure\"");
	row = question();
	write_rows("ecs", 0, &row, 1);
	assert_at("dns.resolved_ip", "[\"140.82.121.4\"]");
	assert_at("dns.question.registered_domain", "\"github.com\"");
	row = event(EVENT_ATTACH, "{}");
	write_rows("ecs", 0, &row, 1);
	assert_at("event.category", "[\"host\"]");
	assert_at("user.id", "\"1000\"");
}

/* Each verdict with each end, each event: all valid, in each version. */
static void
test_every_word_is_valid(void **state)
{
	struct query_row rows[VERDICT_MAX * END_MAX + EVENT_KIND_MAX + REASON_MAX + 4];
	size_t count = 0;

	(void)state;
	for (int64_t verdict = 0; verdict < VERDICT_MAX; verdict++) {
		for (int64_t end = 0; end < END_MAX; end++) {
			rows[count] = connection();
			rows[count].verdict = verdict;
			rows[count++].end = end;
		}
	}
	for (int64_t reason = 0; reason < REASON_MAX; reason++) {
		rows[count] = question();
		rows[count].verdict = reason == REASON_ALLOWED ? VERDICT_ALLOWED : VERDICT_DENIED;
		rows[count++].reason = reason;
	}
	for (unsigned int kind = 0; kind < EVENT_KIND_MAX; kind++)
		rows[count++] = event((enum event_kind)kind,
		    "{\"from\":1,\"to\":2,\"pid\":3,\"comm\":\"c\",\"command\":\"d\",\"rule\":\"r\",\"version\":"
		    "\"1\"}");
	rows[count++] = request();
	rows[count] = request();
	rows[count++].http_method = text("PATCH");
	rows[count] = request();
	rows[count++].http_method = text("PROPFIND");
	/* Packets that were counted, not looked at. */
	rows[count] = refused();
	rows[count].dst = rows[count].src = (struct query_text){NULL, 0};
	rows[count].sport = rows[count].dport = 0;
	rows[count++].proto = 58;
	check_rows(rows, count);
}

static void
case_F_28_F_29_F_30_hostile_bytes_in_every_text(void **state)
{
	static char every_byte[256], long_name[253];
	struct query_text hostile[] = {text("\x1b]0;owned\x07"), text("a\r\nb"), text("\xe2\x80\xaegnp.exe"),
	    text("\x9b"), text("\x7f"), text("\xff\xfe"), text("\"}\n{\"x\":\""), text("\\x1b\\"), text("%s%n"),
	    text("'); DROP TABLE events;--"), text("[\"\\u001b[2J\",\"\\u007f\",\"\x7f\"]"),
	    text("{\"text\":\"\\u202e\",\"comm\":7}"), text("[1,null,{}]"), text("[\"TXT \",\"\",\"A 1.2.3.4\"]"),
	    text("["), text("=cmd|' /C calc'!A0"), text("<script>alert(1)</script>"), text("<img src=x onerror=y>"),
	    text("a\tb"), text("-"), text("(empty)"), text("a,b"), text("`id`|x"), {.bytes = every_byte, .len = 256},
	    {.bytes = long_name, .len = 253}};
	static const struct {
		size_t member;
		unsigned int kinds; /* that have it */
	} places[] = {{offsetof(struct query_row, sandbox), QUERY_ALL}, {offsetof(struct query_row, detail), QUERY_ALL},
	    {offsetof(struct query_row, labels), QUERY_CONNECTION},
	    {offsetof(struct query_row, src), QUERY_CONNECTION | QUERY_DNS},
	    {offsetof(struct query_row, name), QUERY_CONNECTION | QUERY_DNS},
	    {offsetof(struct query_row, name_raw), QUERY_CONNECTION | QUERY_DNS},
	    {offsetof(struct query_row, rule), QUERY_CONNECTION | QUERY_DNS},
	    {offsetof(struct query_row, answers), QUERY_DNS}, {offsetof(struct query_row, domain), QUERY_DNS},
	    {offsetof(struct query_row, alpn), QUERY_CONNECTION}, {offsetof(struct query_row, ja4), QUERY_CONNECTION},
	    {offsetof(struct query_row, http_method), QUERY_CONNECTION},
	    {offsetof(struct query_row, country), QUERY_CONNECTION},
	    {offsetof(struct query_row, as_org), QUERY_CONNECTION},
	    {offsetof(struct query_row, community_id), QUERY_CONNECTION},
	    {offsetof(struct query_row, up_src), QUERY_CONNECTION}};
	enum { HOSTILE = sizeof(hostile) / sizeof(hostile[0]), PLACES = sizeof(places) / sizeof(places[0]) };
	struct query_row *rows = calloc(HOSTILE * PLACES * 4, sizeof(*rows));
	size_t count = 0;

	(void)state;
	assert_non_null(rows);
	for (size_t i = 0; i < 256; i++)
		every_byte[i] = (char)i;
	memset(long_name, '\xfe', sizeof(long_name));
	for (size_t i = 0; i < HOSTILE; i++) {
		for (size_t k = 0; k < PLACES; k++) {
			struct query_row four[] = {connection(), request(), question(), event(EVENT_MARK, "{}")};

			for (size_t n = 0; n < 4; n++) {
				if ((places[k].kinds & four[n].kind) == 0)
					continue;
				if (places[k].member == offsetof(struct query_row, name_raw))
					four[n].name = (struct query_text){NULL, 0};
				memcpy((char *)&four[n] + places[k].member, &hostile[i], sizeof(hostile[i]));
				rows[count++] = four[n];
			}
		}
	}
	check_rows(rows, count);
	free(rows);
}

/* A damaged file: numbers outside their enums, and texts longer than any buffer. */
static void
case_F_28_damaged_rows_are_valid(void **state)
{
	static const int64_t numbers[] = {-1, 200, INT64_MIN, INT64_MAX};
	static char bytes[70000];
	struct query_row rows[20];
	size_t count = 0;

	(void)state;
	memset(bytes, '\xff', sizeof(bytes));
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		struct query_row four[] = {connection(), request(), question(), event(EVENT_MARK, "{}")};

		for (size_t n = 0; n < 4; n++) {
			struct query_row *row = &rows[count++];

			*row = four[n];
			row->verdict = row->reason = row->end = row->event = row->name_source = row->proto = numbers[i];
			row->qtype = row->rcode = row->count = row->dport = row->sport = row->flags = numbers[i];
			row->ttl_s = row->upstream_us = row->seq = row->sandbox_id = row->generation = numbers[i];
			row->ts_us = row->bytes_out.value = row->duration_us.value = row->closed_us.value = numbers[i];
			row->tls_version.value = row->asn.value = row->up_sport.value = row->packets_in.value =
			    numbers[i];
		}
	}
	rows[count] = connection();
	rows[count].sandbox = rows[count].name_raw = rows[count].rule = rows[count].detail =
	    (struct query_text){.bytes = bytes, .len = sizeof(bytes)};
	rows[count].alpn = rows[count].src = rows[count].answers = rows[count].rule;
	rows[count++].name = (struct query_text){NULL, 0};
	for (size_t i = 0; i < FORMATS; i++) {
		write_rows(formats[i], EXPORT_OCSF_1_8, rows, count);
		for (const char *byte = output; *byte != '\0'; byte++)
			if ((*byte < 0x20 || *byte > 0x7e) && strchr("\t\r\n", *byte) == NULL)
				fail_msg("byte 0x%02x in %s", (unsigned char)*byte, formats[i]);
		if (strcmp(formats[i], "csv") == 0 || strcmp(formats[i], "ecs") == 0)
			check_output(formats[i], "");
		if (strcmp(formats[i], "ocsf") == 0)
			check_output(formats[i], "1.8");
	}
}

static void
test_words(void **state)
{
	enum export_ocsf version;
	struct error err;

	(void)state;
	assert_null(export_find("xml"));
	assert_null(export_find(""));
	assert_int_equal(export_parse_ocsf("1.3", &version, &err), 0);
	assert_int_equal(version, EXPORT_OCSF_1_3);
	assert_int_equal(export_parse_ocsf("1.2", &version, &err), -1);
	assert_int_equal(err.code, ERROR_USAGE);
}

static int
utc(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_csv),
	    cmocka_unit_test(case_F_29_a_cell_is_no_formula),
	    cmocka_unit_test(test_zeek_conn),
	    cmocka_unit_test(test_zeek_states),
	    cmocka_unit_test(test_zeek_waits_for_the_end),
	    cmocka_unit_test(test_zeek_others),
	    cmocka_unit_test(test_zeek_words),
	    cmocka_unit_test(test_ocsf_connection),
	    cmocka_unit_test(test_ocsf_activities),
	    cmocka_unit_test(test_ocsf_learned),
	    cmocka_unit_test(test_ocsf_dns),
	    cmocka_unit_test(test_ocsf_events),
	    cmocka_unit_test(test_ecs),
	    cmocka_unit_test(test_every_word_is_valid),
	    cmocka_unit_test(case_F_28_F_29_F_30_hostile_bytes_in_every_text),
	    cmocka_unit_test(case_F_28_damaged_rows_are_valid),
	    cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, utc, NULL);
}
