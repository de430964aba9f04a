/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern log: options, output, exit status, following across a replaced database. */
#include "tests/unit/audit/audit_fixture.h"

#include "base/clock.h"
#include "cli/commands.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define ARGS_MAX 12

static char output_path[96], error_path[96];

static int
setup(void **state)
{
	struct store *store;
	struct record record;

	if (fixture_setup(state) < 0)
		return -1;
	snprintf(output_path, sizeof(output_path), "%s/out", fixture_dir);
	snprintf(error_path, sizeof(error_path), "%s/err", fixture_dir);
	store = fixture_open(NULL);
	record = fixture_sandbox(FIXTURE_SANDBOX, "task1");
	fixture_add(store, &record);
	record = fixture_flow(1, "github.com");
	fixture_add(store, &record);
	record = fixture_denied(2, "\x1b]0;x\x07\xe2\x80\xae", 9);
	fixture_add(store, &record);
	record = fixture_dns(3, "api.github.com", 14);
	fixture_add(store, &record);
	record = fixture_event(4, EVENT_DAEMON_START, "{}");
	fixture_add(store, &record);
	for (uint64_t i = 5; i <= 300; i++) {
		record = fixture_flow(i, "many.example");
		fixture_add(store, &record);
	}
	fixture_commit(store);
	store_close(store);
	return 0;
}

/* Run it in a child, output to files. Returns the child. */
static pid_t
start(const char *const *args)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		char *argv[ARGS_MAX + 4] = {strdup("postern"), strdup("log")};
		int argc = 2, status;

		for (; args[argc - 2] != NULL && argc < ARGS_MAX; argc++)
			argv[argc] = strdup(args[argc - 2]);
		if (freopen(output_path, "w", stdout) == NULL || freopen(error_path, "w", stderr) == NULL)
			_exit(99);
		setenv("TZ", "UTC", 1);
		status = commands_main(argc, argv);
		fflush(stdout);
		fflush(stderr);
		_exit(status);
	}
	return pid;
}

static char *
contents(const char *path)
{
	static char text[200000];
	FILE *file = fopen(path, "r");
	size_t n = 0;

	if (file != NULL) {
		n = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[n] = '\0';
	return text;
}

static int
count_lines(const char *text)
{
	int lines = 0;

	for (; *text != '\0'; text++)
		lines += *text == '\n';
	return lines;
}

static int
run(const char *const *args)
{
	int status;
	pid_t pid = start(args);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
test_options_select(void **state)
{
	static const struct {
		const char *args[ARGS_MAX];
		int lines;
		const char *first; /* in the output; NULL: not asked */
	} cases[] = {
	    {{NULL}, 200, "many.example"},
	    {{"-n", "5"}, 5, NULL},
	    {{"--lines=0"}, 0, NULL},
	    {{"--since", "2000-01-01"}, 300, "2023-11-14 22:13:20.124  task1         allowed  tcp   github.com:443"},
	    {{"--since", "2000-01-01", "-n", "7"}, 7, NULL},
	    {{"--since", "1s"}, 0, NULL},
	    {{"--until", "2023-11-14T22:13:20.126Z"}, 2, NULL},
	    {{"--denied"}, 1, "\\x1b]0;x\\x07\\xe2\\x80\\xae:443 (140.82.121.4)  sni_mismatch"},
	    {{"--host", "GitHub.COM."}, 1, "github.com"},
	    {{"--host", "*.github.com"}, 1, "api.github.com A -> "},
	    {{"--kind", "event"}, 1, "daemon_start  by uid 1000"},
	    {{"--kind", "event", "--kind", "dns"}, 2, NULL},
	    {{"task1", "--kind", "dns"}, 1, NULL},
	    {{"--sandbox", "task1", "--host", "nobody.example"}, 0, NULL},
	    {{"-o", "json", "--host", "github.com"}, 1, "{\"v\":1,\"ts\":\"2023-11-14T22:13:20.124456Z\""},
	};

	(void)state;
	setenv("POSTERN_STATE_DIR", "/nonexistent", 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *args[ARGS_MAX] = {"--db", fixture_db};
		const char *text;

		memcpy(args + 2, cases[i].args, (ARGS_MAX - 2) * sizeof(args[0]));
		if (run(args) != 0)
			fail_msg("case %zu: %s", i, contents(error_path));
		text = contents(output_path);
		if (count_lines(text) != cases[i].lines)
			fail_msg("case %zu: %d lines: %s", i, count_lines(text), text);
		if (cases[i].first != NULL && strstr(text, cases[i].first) == NULL)
			fail_msg("case %zu: %s", i, text);
		for (; *text != '\0'; text++)
			assert_true(*text == '\n' || (*text >= 0x20 && *text <= 0x7e));
	}
}

static void
test_exit_status(void **state)
{
	const struct {
		const char *args[ARGS_MAX];
		int status;
		const char *says;
	} cases[] = {
	    {{"--db", "/nonexistent/audit.db"}, 1, "no audit log at /nonexistent/audit.db"},
	    {{"--since", "soon"}, 2, "not a time"},
	    {{"--host", "a..b"}, 2, "--host"},
	    {{"--kind", "x"}, 2, "one of connection, dns, event"},
	    {{"--reason", "no_rul"}, 2, "one of allowed, no_rule, rule_deny, "},
	    {{"--verdict", "maybe"}, 2, "one of allowed, denied, limited, failed"},
	    {{"--end", "?"}, 2, "one of open, fin, "},
	    {{"--event", "atach"}, 2, "one of daemon_start, "},
	    {{"--ip", "10.0.0.1/8"}, 2, "no bits set behind the length"},
	    {{"--ip", "github.com"}, 2, "not an address"},
	    {{"--port", "70000"}, 2, "not a number up to 65535"},
	    {{"--port", "80-22"}, 2, "not a range"},
	    {{"--proto", "tcpx"}, 2, "neither a known word nor a number up to 255"},
	    {{"--qtype", "AAAAA"}, 2, "neither a known word nor a number up to 65535"},
	    {{"--country", "Germany"}, 2, "two letters"},
	    {{"--asn", "ASX"}, 2, "not a number"},
	    {{"--min-bytes", "5 apples"}, 2, "not a size"},
	    {{"--id", "xyz"}, 2, "16 hexadecimal digits"},
	    {{"--label", "=x"}, 2, "KEY or KEY=VALUE"},
	    {{"--not"}, 2, "--not must stand before a filter"},
	    {{"--not", "-n", "3"}, 2, "--not must stand before a filter"},
	    {{"--not", "--not", "--denied"}, 2, "--not must stand before a filter"},
	    {{"--not", "--since", "1h"}, 2, "--not must stand before a filter"},
	    {{"--since", "1h", "--until", "2h"}, 2, "--until is not after --since"},
	    {{"--qtype", "A", "--end", "fin"}, 2, "no kind of rows has all of this"},
	    {{"--not", "--kind", "dns", "--qtype", "A"}, 2, "no kind of rows has all of this"},
	    {{"--db", fixture_db, "--after", "yesterday"}, 2, "not a cursor"},
	    {{"--after", "begin", "-f", "-n", "3"}, 2, "--follow has no end"},
	    {{"-o", "xml"}, 2, "short, wide, json, csv"},
	    {{"-o", "ocsf", "--ocsf-version", "1.2"}, 2, "1.1, 1.3, 1.5 or 1.8"},
	    {{"-o", "zeek", "--kind", "dns"}, 2, "no place"},
	    {{"-n", "x"}, 2, "not a number"},
	    {{"-n", "-1"}, 2, "not a number"},
	    {{"--nonsense"}, 2, "postern log: unknown option '--nonsense'\npostern log: try 'postern log --help'\n"},
	    {{"-n"}, 2, "option '--lines' needs a value: N"},
	    {{"--s=1h"}, 2, "option '--s' is ambiguous: --sho"},
	    {{"--db", fixture_db, "task1", "b"}, 1, "no sandbox b in this log"},
	    {{"-f", "--until", "1h"}, 2, "contradict"},
	    {{"--denied", "--kind", "event"}, 2, "events"},
	    {{"--db", "/dev/null"}, 1, "not an audit database"},
	    {{"--db", fixture_db, "nobody"}, 1, "no sandbox nobody in this log"},
	};
	const char *const help[] = {"--help", NULL};
	static const char usage[] = "usage: postern log [OPTION]... [SANDBOX]...\n";

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = run(cases[i].args);

		if (status != cases[i].status || strstr(contents(error_path), cases[i].says) == NULL)
			fail_msg("case %zu: %d, %s", i, status, contents(error_path));
		assert_int_equal(count_lines(contents(output_path)), 0);
	}
	assert_int_equal(run(help), 0);
	assert_memory_equal(contents(output_path), usage, strlen(usage));
	assert_non_null(strstr(contents(output_path), "\n      --reason WORD"));
}

/* What people's scripts may say: each spelling of an option, abbreviations included, before and behind operands. */
static void
test_spellings_of_options(void **state)
{
	static const struct {
		const char *args[ARGS_MAX];
		int status, lines;
	} cases[] = {
	    {{"-n", "5"}, 0, 5},
	    {{"-n5"}, 0, 5},
	    {{"--lines", "5"}, 0, 5},
	    {{"--lines=5"}, 0, 5},
	    {{"--li=5"}, 0, 5},
	    {{"--line", "5"}, 0, 5},
	    {{"-n", "7", "-n5"}, 0, 5},
	    {{"task1", "-n", "5"}, 0, 5},
	    {{"-n5", "task1"}, 0, 5},
	    {{"-n5", "--", "task1"}, 0, 5},
	    {{"-n5", "--", "-n4"}, 1, 0},
	    {{"-ojson", "-n5"}, 0, 5},
	    {{"--out=wide", "-n5"}, 0, 5},
	    {{"--deni"}, 0, 1},
	    {{"--not", "--deni", "-n5"}, 0, 5},
	    {{"--sandbox-i", "1", "-n0"}, 0, 0},
	    {{"--sandbox", "task1", "-n5"}, 0, 5},
	    {{"-n5", "-n"}, 2, 0},
	    {{"--lines"}, 2, 0},
	    {{"--lines="}, 2, 0},
	    {{"--denied=1"}, 2, 0},
	    {{"--s", "1h"}, 2, 0},
	    {{"-x"}, 2, 0},
	    {{"--linesx=5"}, 2, 0},
	    {{"-n5h"}, 2, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *args[ARGS_MAX] = {"--db", fixture_db};
		int status;

		memcpy(args + 2, cases[i].args, (ARGS_MAX - 2) * sizeof(args[0]));
		status = run(args);
		if (status != cases[i].status || count_lines(contents(output_path)) != cases[i].lines)
			fail_msg("case %zu: %d: %s", i, status, contents(error_path));
	}
}

static void
test_the_state_directory_is_the_default(void **state)
{
	const char *const args[] = {"-n", "1", NULL};

	(void)state;
	fixture_shell("mkdir -p $DIR/audit && cp $DB $DIR/audit/audit.db");
	setenv("POSTERN_STATE_DIR", fixture_dir, 1);
	assert_int_equal(run(args), 0);
	assert_int_equal(count_lines(contents(output_path)), 1);
}

static void
wait_for_lines(int lines)
{
	int64_t until_ms = clock_mono_ms() + 10000;

	while (count_lines(contents(output_path)) < lines) {
		if (clock_mono_ms() > until_ms)
			fail_msg("no more than: %s", contents(output_path));
		usleep(20000);
	}
	assert_int_equal(count_lines(contents(output_path)), lines);
}

static void
test_follow_across_a_replaced_database(void **state)
{
	const char *const args[] = {"--db", fixture_db, "-f", "-n", "2", "--host", "github.com", NULL};
	struct store_opening opening;
	struct store *store;
	struct record record;
	pid_t pid = start(args);
	int status;

	(void)state;
	wait_for_lines(1);
	store = fixture_open(NULL);
	record = fixture_close(1);
	fixture_add(store, &record);
	record = fixture_flow(1000, "github.com");
	fixture_add(store, &record);
	record = fixture_flow(1001, "other.example");
	fixture_add(store, &record);
	fixture_commit(store);
	wait_for_lines(3);
	assert_non_null(strstr(contents(output_path), "  fin\n"));
	/* Set aside and made anew. */
	store_close(store);
	fixture_shell("mv $DB $DB.gone && rm -f $DB-wal $DB-shm");
	usleep(300000);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	store = fixture_open(&opening);
	record = fixture_flow(2000, "github.com");
	fixture_add(store, &record);
	fixture_commit(store);
	wait_for_lines(4);
	record = fixture_flow(2001, "github.com");
	fixture_add(store, &record);
	fixture_commit(store);
	wait_for_lines(5);
	store_close(store);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void
test_follow_from_now_on(void **state)
{
	const char *const args[] = {"--db", fixture_db, "-f", "-n", "0", NULL};
	struct store *store = fixture_open(NULL);
	struct record record = fixture_flow(1000, "github.com");
	pid_t pid = start(args);
	int status;

	(void)state;
	usleep(300000);
	fixture_add(store, &record);
	fixture_commit(store);
	wait_for_lines(1);
	store_close(store);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
}

#define LOG_TEST(function) cmocka_unit_test_setup_teardown(function, setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    LOG_TEST(test_options_select),
	    LOG_TEST(test_exit_status),
	    LOG_TEST(test_spellings_of_options),
	    LOG_TEST(test_the_state_directory_is_the_default),
	    LOG_TEST(test_follow_across_a_replaced_database),
	    LOG_TEST(test_follow_from_now_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
