/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Short and JSON lines: exact words, and hostile bytes in every place (CASES F-28). */
#include "audit/show/render.h"
#include "audit_fixture.h"

#include <jansson.h>
#include <time.h>

static char *short_line, *wide_line, *json_line;

static void
render(const struct query_row *row, bool colour)
{
	size_t size;
	FILE *out;

	free(short_line);
	free(wide_line);
	free(json_line);
	out = open_memstream(&wide_line, &size);
	assert_non_null(out);
	render_line_wide(out, row, colour);
	fclose(out);
	out = open_memstream(&short_line, &size);
	assert_non_null(out);
	render_line_short(out, row, colour);
	fclose(out);
	out = open_memstream(&json_line, &size);
	assert_non_null(out);
	assert_int_equal(render_json(out, row), 0);
	fclose(out);
}

static struct query_text
text(const char *bytes)
{
	return (struct query_text){.bytes = bytes, .len = strlen(bytes)};
}

static struct query_row
connection(void)
{
	return (struct query_row){.kind = QUERY_CONNECTION,
	    .id = 0x32a9f88000000001,
	    .ts_us = FIXTURE_TS,
	    .sandbox = text("task1"),
	    .sandbox_id = 7,
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
	    .alpn = text("h2"),
	    .flags = RECORD_FLAG_ECH,
	    .bytes_out = {true, 1234},
	    .bytes_in = {true, 5678901},
	    .duration_us = {true, 1203456},
	    .closed_us = {true, FIXTURE_TS + 1203456},
	    .end = END_FIN};
}

static void
test_a_connection(void **state)
{
	struct query_row row = connection();

	(void)state;
	render(&row, false);
	assert_string_equal(short_line,
	    "2023-11-14 22:13:20.123  task1         allowed  tcp   github.com:443 (140.82.121.4)  "
	    "allow *.github.com (a.yaml:7)  out 1.2K in 5.4M  1.203s  fin\n");
	assert_string_equal(json_line,
	    "{\"v\":1,\"ts\":\"2023-11-14T22:13:20.123456Z\",\"id\":\"32a9f88000000001\",\"kind\":\"flow\","
	    "\"sandbox\":\"task1\",\"sandbox_id\":7,\"verdict\":\"allowed\",\"reason\":\"allowed\","
	    "\"rule\":\"allow *.github.com (a.yaml:7)\",\"policy_rev\":3,\"src\":\"172.16.0.2\",\"sport\":40000,"
	    "\"dst\":\"140.82.121.4\",\"dport\":443,\"proto\":\"tcp\",\"name\":\"github.com\",\"name_source\":\"sni\","
	    "\"alpn\":\"h2\",\"ech\":true,\"tunnel\":false,\"bytes_out\":1234,\"bytes_in\":5678901,\"dur_ms\":1203.456,"
	    "\"end\":\"fin\",\"closed\":\"2023-11-14T22:13:21.326912Z\",\"count\":1}\n");
	render(&row, true);
	assert_non_null(strstr(short_line, "\x1b[32mallowed\x1b[0m  tcp"));
}

/* Everything that a row may hold, with its unit. */
static void
test_a_rich_connection(void **state)
{
	struct query_row row = connection();

	(void)state;
	row.tls_version = (struct query_number){true, 0x0304};
	row.ja4 = text("t13d1516h2_8daaf6152771_e5627efa2ab1");
	row.http_method = text("GET");
	row.country = text("US");
	row.asn = (struct query_number){true, 36459};
	row.as_org = text("GITHUB");
	row.dns_us = (struct query_number){true, 12500};
	row.hello_us = (struct query_number){true, 800};
	row.connect_us = (struct query_number){true, 20001};
	row.first_byte_us = (struct query_number){true, 1041000};
	row.packets_out = (struct query_number){true, 12};
	row.packets_in = (struct query_number){true, 34};
	row.community_id = text("1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
	row.up_src = text("2001:db8::5");
	row.up_sport = (struct query_number){true, 50000};
	row.up_community_id = text("1:d/FP5EW3wiY1vCndhwleRRKHowQ=");
	render(&row, false);
	assert_non_null(strstr(json_line,
	    "\"alpn\":\"h2\",\"tls_version\":\"TLSv1.3\",\"ja4\":\"t13d1516h2_8daaf6152771_e5627efa2ab1\","
	    "\"http_method\":\"GET\",\"ech\":true,\"tunnel\":false,\"country\":\"US\",\"asn\":36459,"
	    "\"as_org\":\"GITHUB\",\"dns_us\":12500,\"hello_us\":800,\"connect_us\":20001,\"first_byte_us\":1041000,"
	    "\"bytes_out\":1234,\"bytes_in\":5678901,\"packets_out\":12,\"packets_in\":34,\"dur_ms\":1203.456,"));
	assert_non_null(strstr(json_line,
	    "\"community_id\":\"1:LQU9qZlK+B5F3KDmev6m5PMibrg=\",\"up_src\":\"2001:db8::5\",\"up_sport\":50000,"
	    "\"up_community_id\":\"1:d/FP5EW3wiY1vCndhwleRRKHowQ=\",\"count\":1}"));
	/* The wide line is the short one and more. */
	assert_memory_equal(wide_line, short_line, strlen(short_line) - 1);
	assert_string_equal(wide_line + strlen(short_line) - 1,
	    "  src=172.16.0.2:40000  up=[2001:db8::5]:50000  proof=sni  tls=TLSv1.3  "
	    "ja4=t13d1516h2_8daaf6152771_e5627efa2ab1  alpn=h2  method=GET  country=US  asn=36459  as=GITHUB  "
	    "dns=12.500ms  hello=0.800ms  connect=20.001ms  first=1041.000ms  packets=12/34  "
	    "id=1:LQU9qZlK+B5F3KDmev6m5PMibrg=  up_id=1:d/FP5EW3wiY1vCndhwleRRKHowQ=\n");
	row.tls_version.value = 0x7f1c;
	render(&row, false);
	assert_non_null(strstr(json_line, "\"tls_version\":\"0x7f1c\""));
}

static void
test_refused_packets(void **state)
{
	struct query_row row = {.kind = QUERY_CONNECTION,
	    .id = 1,
	    .ts_us = FIXTURE_TS,
	    .sandbox = text("task1"),
	    .count = 40,
	    .proto = 17,
	    .src = text("172.16.0.2"),
	    .dst = text("2600::1"),
	    .dport = 53,
	    .verdict = VERDICT_DENIED,
	    .reason = REASON_NEVER_ADDRESS,
	    .detail = text("private"),
	    .end = END_REFUSED};

	(void)state;
	render(&row, false);
	assert_string_equal(short_line,
	    "2023-11-14 22:13:20.123  task1         denied   udp   [2600::1]:53  "
	    "never_address  private  x40\n");
	assert_non_null(strstr(json_line, "\"kind\":\"deny\""));
	assert_non_null(strstr(json_line, "\"count\":40"));
	assert_null(strstr(json_line, "\"bytes_out\""));
	row.dport = 0;
	row.proto = 58;
	row.dst = text("2600::1");
	render(&row, false);
	assert_non_null(strstr(short_line, "icmp6 2600::1  never_address"));
	/* Counted, not logged one by one. */
	row.dst = (struct query_text){NULL, 0};
	render(&row, false);
	assert_non_null(strstr(short_line, "icmp6 -  never_address"));
	assert_null(strstr(json_line, "\"dst\""));
}

static void
test_dns(void **state)
{
	struct query_row row = {.kind = QUERY_DNS,
	    .id = 2,
	    .ts_us = FIXTURE_TS,
	    .sandbox = text("task1"),
	    .count = 1,
	    .proto = 17,
	    .src = text("172.16.0.2"),
	    .dst = text("8.8.8.8"),
	    .dport = 53,
	    .name = text("github.com"),
	    .qtype = 1,
	    .ttl_s = 60,
	    .upstream_us = 12500,
	    .rule = text("allow github.com"),
	    .answers = text("[\"CNAME x.example\",\"A 140.82.121.4\"]")};

	(void)state;
	render(&row, false);
	assert_string_equal(short_line,
	    "2023-11-14 22:13:20.123  task1         allowed  dns   github.com A -> "
	    "CNAME x.example, A 140.82.121.4  allow github.com  ttl 60\n");
	assert_non_null(strstr(json_line,
	    "\"qname\":\"github.com\",\"qtype\":\"A\",\"rcode\":\"NOERROR\","
	    "\"answers\":[\"CNAME x.example\",\"A 140.82.121.4\"],\"ttl\":60,\"rtt_ms\":12.5"));
	assert_null(strstr(json_line, "\"entropy\""));
	row.leases = (struct query_number){true, 1};
	row.domain = text("github.com");
	row.entropy = (struct query_number){true, 105};
	render(&row, false);
	assert_non_null(
	    strstr(json_line, "\"rtt_ms\":12.5,\"leases\":1,\"domain\":\"github.com\",\"entropy\":1.05,\"count\":1}"));
	assert_non_null(strstr(wide_line,
	    "  ttl 60  src=172.16.0.2:0  server=8.8.8.8:53  proto=udp  upstream=12.500ms  leases=1  "
	    "domain=github.com  entropy=1.05\n"));
	row.verdict = VERDICT_DENIED;
	row.reason = REASON_NO_RULE;
	row.rcode = 3;
	row.qtype = 1234;
	row.ede = (struct query_number){true, 15};
	row.answers = (struct query_text){NULL, 0};
	row.rule = (struct query_text){NULL, 0};
	row.count = 3;
	render(&row, false);
	assert_string_equal(short_line,
	    "2023-11-14 22:13:20.123  task1         denied   dns   github.com TYPE1234 -> "
	    "NXDOMAIN  no_rule  x3\n");
	assert_non_null(strstr(json_line, "\"ede\":15"));
	assert_null(strstr(json_line, "answers"));
}

static void
test_an_event(void **state)
{
	struct query_row row = {.kind = QUERY_EVENT,
	    .id = 3,
	    .ts_us = FIXTURE_TS,
	    .count = 1,
	    .event = EVENT_POLICY,
	    .uid = {true, 1000},
	    .detail = text("{\"from\":1}")};

	(void)state;
	render(&row, false);
	assert_string_equal(
	    short_line, "2023-11-14 22:13:20.123  -             event    policy  by uid 1000  {\"from\":1}\n");
	assert_string_equal(json_line,
	    "{\"v\":1,\"ts\":\"2023-11-14T22:13:20.123456Z\",\"id\":\"0000000000000003\","
	    "\"kind\":\"event\",\"event\":\"policy\",\"uid\":1000,\"detail\":{\"from\":1}}\n");
	row.detail = text("not json");
	render(&row, false);
	assert_non_null(strstr(json_line, "\"detail\":\"not json\""));
}

/* One line of printable ASCII; the JSON one parses. */
static void
check_lines(void)
{
	char *const lines[] = {short_line, wide_line, json_line};
	json_t *object;

	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(lines[i]);

		assert_true(len > 0 && lines[i][len - 1] == '\n');
		for (size_t k = 0; k + 1 < len; k++)
			if (lines[i][k] < 0x20 || lines[i][k] > 0x7e)
				fail_msg("byte 0x%02x in: %s", (unsigned char)lines[i][k], lines[i]);
	}
	object = json_loads(json_line, JSON_REJECT_DUPLICATES, NULL);
	assert_true(json_is_object(object));
	json_decref(object);
}

static void
case_F_28_hostile_bytes_in_every_text(void **state)
{
	static const char *const hostile[] = {"\x1b]0;owned\x07", "a\r\nb",
	    "\xe2\x80\xae"
	    "gnp.exe",
	    "\x9b"
	    "2J",
	    "\x7f", "\xff\xfe", "\"}\n{\"x\":\"", "\\x1b\\", "%s%n", "'); DROP TABLE", "[\"\x1b[2J\"]",
	    "[\"\\u001b[2J\",\"\\u007f\",\"\x7f\"]", "{\"a\":\"\\u202e\"}", "[1,null,{}]", "[", ""};
	static const size_t places[] = {offsetof(struct query_row, sandbox), offsetof(struct query_row, src),
	    offsetof(struct query_row, dst), offsetof(struct query_row, name), offsetof(struct query_row, name_raw),
	    offsetof(struct query_row, rule), offsetof(struct query_row, detail), offsetof(struct query_row, alpn),
	    offsetof(struct query_row, ja4), offsetof(struct query_row, http_method),
	    offsetof(struct query_row, country), offsetof(struct query_row, as_org),
	    offsetof(struct query_row, community_id), offsetof(struct query_row, up_src),
	    offsetof(struct query_row, up_community_id), offsetof(struct query_row, domain),
	    offsetof(struct query_row, answers)};

	(void)state;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(hostile[0]); i++) {
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			for (unsigned int kind = 1; kind <= 4; kind *= 2) {
				struct query_row row = connection();

				row.kind = kind;
				row.name = (struct query_text){NULL, 0};
				*(struct query_text *)(void *)((char *)&row + places[k]) = text(hostile[i]);
				render(&row, false);
				check_lines();
			}
		}
	}
}

/* All 256 bytes, NUL too, and every text longer than any buffer. */
static void
case_F_28_every_byte_and_every_length(void **state)
{
	static char bytes[70000];
	struct query_row row = connection();

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)i;
	row.sandbox = row.name_raw = row.rule = row.detail = row.alpn = row.dst = row.answers =
	    (struct query_text){.bytes = bytes, .len = sizeof(bytes)};
	row.name = (struct query_text){NULL, 0};
	for (row.kind = 1; row.kind <= 4; row.kind *= 2) {
		render(&row, false);
		check_lines();
	}
	for (size_t len = 0; len < 300; len++) {
		row.kind = QUERY_CONNECTION;
		row.name_raw.len = len;
		render(&row, false);
		check_lines();
	}
	/* Nothing is lost: the bytes can be had back. */
	row = connection();
	row.name = (struct query_text){NULL, 0};
	row.name_raw = (struct query_text){.bytes = "a\\\x00\x1b", .len = 4};
	render(&row, false);
	assert_non_null(strstr(short_line, "a\\x5c\\x00\\x1b:443"));
}

static void
test_numbers_outside_their_enums(void **state)
{
	static const int64_t numbers[] = {-1, 200, INT64_MIN, INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		for (unsigned int kind = 1; kind <= 4; kind *= 2) {
			struct query_row row = connection();

			row.kind = kind;
			row.ts_us = row.verdict = row.reason = row.end = row.event = row.name_source = row.proto =
			    numbers[i];
			row.qtype = row.rcode = row.count = row.dport = row.flags = numbers[i];
			row.tls_version = row.asn = row.dns_us = row.packets_out = row.packets_in = row.up_sport =
			    row.leases = row.entropy = (struct query_number){true, numbers[i]};
			row.up_src = text("192.0.2.1");
			row.bytes_out.value = row.duration_us.value = row.closed_us.value = numbers[i];
			render(&row, false);
			check_lines();
		}
	}
}

static void
test_bytes_for_people(void **state)
{
	static const struct {
		int64_t bytes;
		const char *want;
	} cases[] = {{0, "0"}, {1023, "1023"}, {1024, "1.0K"}, {10239, "10K"}, {1047552, "1023K"}, {1048064, "1.0M"},
	    {5678901, "5.4M"}, {INT64_MAX, "8.0E"}};
	char out[32];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(render_bytes(cases[i].bytes, out), cases[i].want);
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
	    cmocka_unit_test(test_a_connection),
	    cmocka_unit_test(test_a_rich_connection),
	    cmocka_unit_test(test_refused_packets),
	    cmocka_unit_test(test_dns),
	    cmocka_unit_test(test_an_event),
	    cmocka_unit_test(case_F_28_hostile_bytes_in_every_text),
	    cmocka_unit_test(case_F_28_every_byte_and_every_length),
	    cmocka_unit_test(test_numbers_outside_their_enums),
	    cmocka_unit_test(test_bytes_for_people),
	};

	return cmocka_run_group_tests(tests, utc, NULL);
}
