/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GET /metrics: is it the text exposition format 0.0.4, by a parser that takes nothing else; and what may a gateway say
 * of its totals? */
#include "tests/unit/control/gateway_control_far.h"

#include "gateway/control/control_metrics.h"
#include "gateway/keeper/keeper.h"
#include "tests/unit/gateway/gateway_roles.h"

#include <ctype.h>

#define FAMILIES_MAX 64
#define SAMPLES_MAX 256

/* -- a strict reader of the format --------------------------------------------------------------------------------- */

struct family {
	char name[128], type[16];
	bool has_help, has_type, closed; /* closed: another family began */
	size_t samples;
};

struct exposition {
	struct family families[FAMILIES_MAX];
	size_t count;
	char samples[SAMPLES_MAX][256]; /* name and labels, as they stand there */
	double values[SAMPLES_MAX];
	size_t sample_count;
};

/* [a-zA-Z_:][a-zA-Z0-9_:]*; labels have no colon. Returns behind it; NULL: there is none. */
static const char *
read_name(const char *at, bool colon)
{
	if (!isalpha((unsigned char)*at) && *at != '_' && !(colon && *at == ':'))
		return NULL;
	while (isalnum((unsigned char)*at) || *at == '_' || (colon && *at == ':'))
		at++;
	return at;
}

/* Within quotes: no raw line feed, and of escapes the three that there are. */
static const char *
read_value(const char *at)
{
	if (*at++ != '"')
		return NULL;
	while (*at != '"') {
		if (*at == '\0' || *at == '\n')
			return NULL;
		if (*at == '\\' && strchr("\\\"n", at[1]) == NULL)
			return NULL;
		at += *at == '\\' ? 2 : 1;
	}
	return at + 1;
}

static const char *
read_labels(const char *at)
{
	if (*at != '{')
		return at;
	do {
		at = read_name(at + 1, false);
		if (at == NULL || *at++ != '=')
			return NULL;
		at = read_value(at);
	} while (at != NULL && *at == ',');
	return at != NULL && *at == '}' ? at + 1 : NULL;
}

static struct family *
find_family(struct exposition *ret, const char *name, size_t len)
{
	for (size_t i = 0; i < ret->count; i++)
		if (strlen(ret->families[i].name) == len && memcmp(ret->families[i].name, name, len) == 0)
			return &ret->families[i];
	if (ret->count == FAMILIES_MAX || len >= sizeof(ret->families[0].name))
		return NULL;
	if (ret->count > 0)
		ret->families[ret->count - 1].closed = true;
	memcpy(ret->families[ret->count].name, name, len);
	return &ret->families[ret->count++];
}

/* "# HELP name text", "# TYPE name type": each once, and before the first sample. */
static bool
read_comment(struct exposition *ret, const char *line)
{
	static const char *const types[] = {"counter", "gauge", "histogram", "summary", "untyped"};
	bool help = strncmp(line, "# HELP ", 7) == 0;
	const char *end = read_name(line + 7, true);
	struct family *family;
	bool known = false;

	if ((!help && strncmp(line, "# TYPE ", 7) != 0) || end == NULL || *end != ' ' || end[1] == '\0')
		return false;
	family = find_family(ret, line + 7, (size_t)(end - line - 7));
	if (family == NULL || family->closed || family->samples > 0 || (help ? family->has_help : family->has_type))
		return false;
	if (help) {
		for (const char *at = end + 1; *at != '\0'; at++)
			if (*at == '\\' && *++at != '\\' && *at != 'n')
				return false;
		family->has_help = true;
		return true;
	}
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		known = known || strcmp(types[i], end + 1) == 0;
	snprintf(family->type, sizeof(family->type), "%s", end + 1);
	family->has_type = true;
	return known;
}

/* 'name{label="value",...} number': of the family that was announced last, each series once. */
static bool
read_sample(struct exposition *ret, const char *line)
{
	const char *end = read_name(line, true), *behind;
	struct family *family = end == NULL ? NULL : find_family(ret, line, (size_t)(end - line));
	size_t len;
	char *number_end;
	double value;

	if (family == NULL || family->closed || !family->has_help || !family->has_type)
		return false;
	behind = read_labels(end);
	if (behind == NULL || *behind != ' ' || !isdigit((unsigned char)behind[1]) || ret->sample_count == SAMPLES_MAX)
		return false;
	value = strtod(behind + 1, &number_end);
	len = (size_t)(behind - line);
	if (*number_end != '\0' || len >= sizeof(ret->samples[0]))
		return false;
	memcpy(ret->samples[ret->sample_count], line, len);
	ret->samples[ret->sample_count][len] = '\0';
	for (size_t i = 0; i < ret->sample_count; i++)
		if (strcmp(ret->samples[i], ret->samples[ret->sample_count]) == 0)
			return false;
	family->samples++;
	ret->values[ret->sample_count++] = value;
	/* By convention, which is ours too. */
	return (strcmp(family->type, "counter") == 0) ==
	    (strlen(family->name) > 6 && strcmp(family->name + strlen(family->name) - 6, "_total") == 0);
}

/* The line that is wrong, or NULL: all is well. */
static const char *
read_exposition(struct exposition *ret, const char *text)
{
	static char line[1024];

	memset(ret, 0, sizeof(*ret));
	while (*text != '\0') {
		const char *end = strchr(text, '\n');

		if (end == NULL || end == text || (size_t)(end - text) >= sizeof(line))
			return "a line that does not end, is empty or is too long";
		memcpy(line, text, (size_t)(end - text));
		line[end - text] = '\0';
		if (line[0] == '#' ? !read_comment(ret, line) : !read_sample(ret, line))
			return line;
		text = end + 1;
	}
	for (size_t i = 0; i < ret->count; i++)
		if (!ret->families[i].has_help || !ret->families[i].has_type || ret->families[i].samples == 0)
			return ret->families[i].name;
	return NULL;
}

static double
value_of(const struct exposition *exposition, const char *sample)
{
	for (size_t i = 0; i < exposition->sample_count; i++)
		if (strcmp(exposition->samples[i], sample) == 0)
			return exposition->values[i];
	print_message("no sample %s\n", sample);
	fail();
	return 0;
}

static void
the_reader_takes_nothing_else(void **state)
{
	static struct exposition exposition;
	static const char *const bad[] = {"a_total 1\n", "# HELP a x\n# TYPE a gauge\n",
	    "# HELP a x\n# TYPE a gauge\na 1", "# HELP a x\n# TYPE a gauge\na 1\na 1\n",
	    "# HELP a x\n# TYPE a gauge\na{b=\"1} 1\n", "# HELP a x\n# TYPE a gauge\na{b=\"\\t\"} 1\n",
	    "# HELP a x\n# TYPE a gauge\na{0=\"\"} 1\n", "# HELP a x\n# TYPE a gauge\na{} \n",
	    "# HELP a x\n# TYPE a gauge\na x\n",
	    "# HELP a x\n# TYPE a gauge\na 1\n# HELP b x\n# TYPE b gauge\nb 1\na{c=\"\"} 1\n",
	    "# HELP a x\n# TYPE a gage\na 1\n", "# HELP a x\n# TYPE a counter\na 1\n", "# TYPE a gauge\na 1\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_non_null(read_exposition(&exposition, bad[i]));
	assert_null(read_exposition(&exposition, "# HELP a x\n# TYPE a gauge\na{b=\"\\\"}\\\\\\n\",c=\"\"} 1.5\n"));
}

/* -- the text ------------------------------------------------------------------------------------------------------ */

static void
every_metric_is_named_typed_and_explained(void **state)
{
	static struct exposition exposition;
	static uint64_t events[EVENT_KIND_MAX] = {[EVENT_ATTACH] = 3, [EVENT_POLICY] = 8};
	struct msg_status status = {.gateway_count = 2,
	    .audit_ok = 1,
	    .host_chain = 1,
	    .tampered = 4,
	    .started_us = 1790000000000001,
	    .keeper = {.pid = 1},
	    .gateways = {{.pid = 7, .restarts = 9}}};
	struct control_metrics metrics = {.version = "1.0\"\\\nx",
	    .status = &status,
	    .events = events,
	    .sandboxes = {[CONTROL_METRICS_ATTACHED] = 4000, [CONTROL_METRICS_BROKEN] = 2},
	    .writable = true};
	char *text;

	(void)state;
	status.totals.recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED] = MSG_TOTAL_MAX;
	status.totals.recorded[RECORD_ATTEMPT_REFUSED][VERDICT_DENIED] = 17;
	status.totals.upload = 5;
	status.log = (struct msg_log_state){.changes = 100, .unsealed = 3, .sealed_us = 1790000000500000};
	text = control_metrics_text(&metrics);
	assert_non_null(text);
	assert_null(read_exposition(&exposition, text));
	assert_non_null(strstr(text, "\npostern_build_info{version=\"1.0\\\"\\\\\\nx\"} 1\n"));
	assert_non_null(strstr(text, "\npostern_start_time_seconds 1790000000.000001\n"));
	assert_true(value_of(&exposition, "postern_role_up{role=\"gateway\",index=\"0\"}") == 1);
	assert_true(value_of(&exposition, "postern_role_up{role=\"gateway\",index=\"1\"}") == 0);
	assert_true(value_of(&exposition, "postern_role_up{role=\"auditor\",index=\"0\"}") == 0);
	assert_true(value_of(&exposition, "postern_role_restarts_total{role=\"gateway\",index=\"0\"}") == 9);
	assert_true(value_of(&exposition, "postern_sandboxes{state=\"attached\"}") == 4000);
	assert_true(value_of(&exposition, "postern_events_total{event=\"policy\"}") == 8);
	assert_true(value_of(&exposition, "postern_attempts_total{kind=\"refused\",verdict=\"denied\"}") == 17);
	assert_true(value_of(&exposition, "postern_attempts_total{kind=\"connection\",verdict=\"allowed\"}") ==
	    (double)MSG_TOTAL_MAX);
	assert_true(value_of(&exposition, "postern_bytes_total{direction=\"upload\"}") == 5);
	assert_true(value_of(&exposition, "postern_audit_ok") == 1);
	assert_true(value_of(&exposition, "postern_audit_unsealed_changes") == 3);
	free(text);
	metrics.writable = false; /* control cannot record: nor can others */
	text = control_metrics_text(&metrics);
	assert_null(read_exposition(&exposition, text));
	assert_true(value_of(&exposition, "postern_audit_ok") == 0);
	free(text);
}

/* Whatever a keeper says: also one that is as broken as none is. */
static void
any_status_makes_a_valid_text(void **state)
{
	static struct exposition exposition;
	static uint64_t events[EVENT_KIND_MAX];
	struct msg_status status;
	struct control_metrics metrics = {.version = "1", .status = &status, .events = events};

	(void)state;
	for (int fill = 0; fill < 256; fill += 51) {
		char *text;

		memset(&status, fill, sizeof(status));
		memset(events, fill, sizeof(events));
		text = control_metrics_text(&metrics);
		assert_null(read_exposition(&exposition, text));
		free(text);
	}
}

/* -- what a gateway may say ---------------------------------------------------------------------------------------- */

static void
totals_never_fall_and_have_an_end(void **state)
{
	struct msg_totals before = {.upload = 5, .open = 9}, now;

	(void)state;
	before.recorded[RECORD_ATTEMPT_DNS][VERDICT_DENIED] = 7;
	now = before;
	now.open = 0;
	assert_true(msg_totals_follow(&now, &before));
	now.recorded[RECORD_ATTEMPT_DNS][VERDICT_DENIED]--;
	assert_false(msg_totals_follow(&now, &before));
	now = before;
	now.upload = 4;
	assert_false(msg_totals_follow(&now, &before));
	now = before;
	now.download = MSG_TOTAL_MAX + 1;
	assert_false(msg_totals_follow(&now, &before));
	now = before;
	now.open = UINT64_MAX;
	assert_false(msg_totals_follow(&now, &before));
	now = before;
	now.waiting = UINT64_MAX;
	assert_false(msg_totals_follow(&now, &before));
}

static const struct options two_gateways = {.gateways = 2};
static struct keeper keeper;

static void
a_gateway_that_is_gone_stays_in_the_sum(void **state)
{
	struct keeper_role *gateway;
	struct msg_totals said = {.upload = 10, .download = 20, .open = 3, .waiting = 4}, sum;

	(void)state;
	keeper_init(&keeper, test_roles, &two_gateways, NULL);
	gateway = &keeper.gateways[1];
	said.recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED] = 5;
	assert_true(keeper_totals_take(&keeper.gateways[0], &(struct ipc_message){.body = &said}));
	assert_true(keeper_totals_take(gateway, &(struct ipc_message){.body = &said}));
	sum = keeper_totals_sum(&keeper);
	assert_int_equal(sum.upload, 20);
	assert_int_equal(sum.open, 6);
	assert_int_equal(sum.recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED], 10);
	keeper_totals_gateway_gone(gateway);
	sum = keeper_totals_sum(&keeper);
	assert_int_equal(sum.upload, 20);
	assert_int_equal(sum.open, 3);
	assert_int_equal(sum.waiting, 4);
	assert_int_equal(sum.recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED], 13);
	/* The next one begins at zero. */
	memset(&said, 0, sizeof(said));
	said.upload = 1;
	assert_true(keeper_totals_take(gateway, &(struct ipc_message){.body = &said}));
	assert_int_equal(keeper_totals_sum(&keeper).upload, 21);
	said.upload = 0;
	assert_false(keeper_totals_take(gateway, &(struct ipc_message){.body = &said}));
	assert_int_equal(keeper_totals_sum(&keeper).upload, 21);
}

static void
the_log_has_no_more_unsealed_than_there_is(void **state)
{
	struct msg_log_state log = {.changes = 5, .unsealed = 5, .sealed_us = 1};

	(void)state;
	keeper_init(&keeper, test_roles, &two_gateways, NULL);
	assert_true(keeper_totals_log(keeper.auditor, &(struct ipc_message){.body = &log}));
	log.unsealed = 6;
	assert_false(keeper_totals_log(keeper.auditor, &(struct ipc_message){.body = &log}));
	log = (struct msg_log_state){.sealed_us = -1};
	assert_false(keeper_totals_log(keeper.auditor, &(struct ipc_message){.body = &log}));
	assert_int_equal(keeper.log.changes, 5);
}

/* Each child has its closed list: these messages come from those who know, of one size, and when they are ready. */
static bool
keeper_takes(enum msg_role kind, bool ready, uint16_t type, const void *body, uint32_t size)
{
	struct keeper_role role = {.keeper = &keeper,
	    .row = &(struct role){.kind = kind},
	    .ready = ready,
	    .index = 1,
	    .ipc = {.self = MSG_ROLE_KEEPER, .peer = (uint8_t)kind, .message_handler = keeper_message_handler}};
	struct ipc_message message = {.header = {.type = type, .size = size}, .body = body};

	return ipc_take(&role.ipc, &message);
}

static void
others_totals_are_no_message(void **state)
{
	static const struct msg_totals totals, broken = {.upload = UINT64_MAX};
	static const struct msg_log_state log;

	(void)state;
	assert_true(keeper_takes(MSG_ROLE_GATEWAY, true, MSG_TOTALS, &totals, sizeof(totals)));
	assert_false(keeper_takes(MSG_ROLE_GATEWAY, true, MSG_TOTALS, &broken, sizeof(broken)));
	assert_false(keeper_takes(MSG_ROLE_GATEWAY, false, MSG_TOTALS, &totals, sizeof(totals)));
	assert_false(keeper_takes(MSG_ROLE_GATEWAY, true, MSG_TOTALS, &totals, sizeof(totals) - 1));
	assert_false(keeper_takes(MSG_ROLE_AUDITOR, true, MSG_TOTALS, &totals, sizeof(totals)));
	assert_false(keeper_takes(MSG_ROLE_CONTROL, true, MSG_TOTALS, &totals, sizeof(totals)));
	assert_true(keeper_takes(MSG_ROLE_AUDITOR, true, MSG_LOG_STATE, &log, sizeof(log)));
	assert_false(keeper_takes(MSG_ROLE_AUDITOR, true, MSG_LOG_STATE, &log, sizeof(log) + 8));
	assert_false(keeper_takes(MSG_ROLE_GATEWAY, true, MSG_LOG_STATE, &log, sizeof(log)));
	assert_false(keeper_takes(MSG_ROLE_CONTROL, true, MSG_LOG_STATE, &log, sizeof(log)));
}

/* -- over HTTP ----------------------------------------------------------------------------------------------------- */

static void
the_answer_is_text_as_prometheus_reads_it(void **state)
{
	static struct exposition exposition;
	static char text[FAR_ANSWER_MAX];
	struct far *far = *state;
	json_t *status;

	json_decref(far_http(far, "POST", "/v1/sandboxes", "{\"name\":\"vm1\",\"kind\":\"tap\"}", 201));
	far_receive_text(far, far_send(far, "GET", "/metrics?nothing=here", NULL), text);
	assert_non_null(strstr(text, "HTTP/1.1 200 "));
	assert_non_null(strstr(text, "\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
	assert_null(read_exposition(&exposition, strstr(text, "\r\n\r\n") + 4));
	assert_true(value_of(&exposition, "postern_sandboxes{state=\"attached\"}") == 1);
	assert_true(value_of(&exposition, "postern_events_total{event=\"attach\"}") == 1);
	assert_true(value_of(&exposition, "postern_audit_ok") == 1);
	status = far_http(far, "GET", "/v1/status", NULL, 200);
	assert_int_equal(json_object_size(json_object_get(json_object_get(status, "totals"), "attempts")), 3);
	assert_true(json_is_null(json_object_get(json_object_get(status, "log"), "sealed")));
	json_decref(status);
	far_expect(far, "POST", "/metrics", "{}", 405, "message", "GET");
	far_expect(far, "GET", "/metrics/vm1", NULL, 404, "error", "not_found");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(the_reader_takes_nothing_else),
	    cmocka_unit_test(every_metric_is_named_typed_and_explained),
	    cmocka_unit_test(any_status_makes_a_valid_text),
	    cmocka_unit_test(totals_never_fall_and_have_an_end),
	    cmocka_unit_test(a_gateway_that_is_gone_stays_in_the_sum),
	    cmocka_unit_test(others_totals_are_no_message),
	    cmocka_unit_test(the_log_has_no_more_unsealed_than_there_is),
	    cmocka_unit_test_setup_teardown(the_answer_is_text_as_prometheus_reads_it, far_setup, far_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
