/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the store does when the machine does not: killed writers, full disks, damaged, foreign and vanished files. */
#include "audit_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define KILLS 30
#define DAMAGES 60

/* In a child: write for ever, and say through the pipe up to which record all is committed. */
static void
write_until_killed(uint64_t first, int pipe_fd)
{
	struct store_opening opening;
	struct error err;
	struct store *store = store_open(fixture_db, &opening, &err);

	if (store == NULL || store_start_checkpoints(store, &err) < 0)
		_exit(2);
	for (uint64_t i = first;; i++) {
		struct record record = fixture_flow(i, "github.com");

		if (store_add(store, &record, &err) < 0)
			_exit(3);
		if (i % 7 != 0)
			continue;
		if (store_commit(store, &err) < 0 || write(pipe_fd, &i, sizeof(i)) != sizeof(i))
			_exit(4);
	}
}

static void
case_F_25_what_was_acknowledged_survives_kill_9(void **state)
{
	uint64_t acknowledged = 0;

	(void)state;
	for (int round = 0; round < KILLS; round++) {
		uint64_t first = acknowledged + 1;
		int fds[2], status;
		pid_t pid;
		struct store_opening opening;
		struct store *store;

		assert_int_equal(pipe(fds), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			close(fds[0]);
			write_until_killed(first, fds[1]);
		}
		close(fds[1]);
		/* Somewhere inside its work, at a different point each time. */
		assert_int_equal(read(fds[0], &acknowledged, sizeof(acknowledged)), sizeof(acknowledged));
		usleep((useconds_t)(round * 733 % 20000));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		while (read(fds[0], &acknowledged, sizeof(acknowledged)) == sizeof(acknowledged))
			;
		close(fds[0]);

		store = fixture_open(&opening);
		assert_false(opening.replaced);
		store_close(store);
		assert_int_equal(
		    fixture_integer("SELECT count(DISTINCT id) FROM connections WHERE id & 0x7fffffff <= (SELECT "
				    "max(id & 0x7fffffff) FROM connections)"),
		    fixture_integer("SELECT max(id & 0x7fffffff) FROM connections"));
		assert_true(fixture_integer("SELECT max(id & 0x7fffffff) FROM connections") >= (int64_t)acknowledged);
	}
}

/* A small disk of our own: false where that is not allowed. */
static bool
mount_small_disk(void)
{
	if (geteuid() != 0 || unshare(CLONE_NEWNS) < 0)
		return false;
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	return mount("postern-test", fixture_dir, "tmpfs", 0, "size=1m") == 0;
}

/* In a child, because of its mounts: 0 passed, 77 not possible here, else the line of the failure. */
static int
fill_the_disk(void)
{
#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			return __LINE__ % 200 + 10;                                                                    \
	} while (0)
	struct store_opening opening;
	struct error err;
	struct store *store;
	struct stat st;
	uint64_t durable = 0, next = 1;
	char filler[96];
	int fd;

	if (!mount_small_disk())
		return 77;
	store = store_open(fixture_db, &opening, &err);
	CHECK(store != NULL);
	snprintf(filler, sizeof(filler), "%s/filler", fixture_dir);
	fd = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && ftruncate(fd, 0) == 0 && posix_fallocate(fd, 0, 400 << 10) == 0);
	/* Until it is full. A failing batch leaves nothing behind and takes nothing away. */
	for (;;) {
		bool failed = false;

		for (int i = 0; i < 20 && !failed; i++) {
			struct record record = fixture_flow(next + (uint64_t)i, "github.com");

			failed = store_add(store, &record, &err) < 0;
		}
		if (failed || store_commit(store, &err) < 0)
			break;
		next += 20;
		durable = next - 1;
		CHECK(durable < 100000);
	}
	CHECK(durable > 20);
	CHECK(err.code == ERROR_SYSTEM);
	CHECK(!store_has_batch(store));
	CHECK(!store_must_reopen(store));
	CHECK(store_probe(store, &err) < 0);
	CHECK(fixture_integer("SELECT count(*) FROM connections") == (int64_t)durable);
	/* Room again: the same store goes on by itself, and the records that failed go in. */
	CHECK(ftruncate(fd, 0) == 0 && fstat(fd, &st) == 0);
	CHECK(store_probe(store, &err) == 0);
	for (int i = 0; i < 20; i++) {
		struct record record = fixture_flow(next + (uint64_t)i, "github.com");

		CHECK(store_add(store, &record, &err) == 0);
	}
	CHECK(store_commit(store, &err) == 0);
	CHECK(fixture_integer("SELECT count(*) FROM connections") == (int64_t)durable + 20);
	CHECK(fixture_integer("SELECT value IS NULL FROM meta WHERE key = 'probe'") == 1);
	store_close(store);
	return 0;
#undef CHECK
}

static void
case_F_22_disk_full_and_back(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fill_the_disk());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* A database with content in file and log, closed. */
static void
make_database(uint64_t rows)
{
	struct store *store = fixture_open(NULL);

	for (uint64_t i = 1; i <= rows; i++) {
		struct record record = fixture_flow(i, "github.com");

		fixture_add(store, &record);
	}
	fixture_commit(store);
	store_close(store);
}

static void
damage(off_t offset, size_t len)
{
	uint8_t bytes[64];
	int fd = open(fixture_db, O_WRONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(0xa5 ^ (offset * 31 + (off_t)i * 7));
	assert_int_equal(pwrite(fd, bytes, len, offset), len);
	close(fd);
}

/* Whatever is damaged: it is found at once, or the store works on (bytes in a record's text are not structure), or a
 * header that claims a newer version is refused. Never a crash, never a store that cannot be written. */
static void
case_F_24_damage_at_many_offsets(void **state)
{
	int replaced = 0;

	(void)state;
	for (int i = 0; i < DAMAGES; i++) {
		struct store_opening opening;
		struct record record = fixture_flow(9999, "after.example");
		struct error err;
		struct store *store;
		struct stat st;

		make_database(200);
		assert_int_equal(stat(fixture_db, &st), 0);
		/* The header closely, then each page's beginning, then anywhere. */
		damage(i < 20 ? i * 5 : (off_t)(i * 7919) % (st.st_size - 64), i < 20 ? 4 : 64);
		store = store_open(fixture_db, &opening, &err);
		if (store == NULL) {
			if (err.code != ERROR_USAGE)
				fail_msg("damage %d: %s", i, err.text);
		} else {
			if (opening.replaced) {
				replaced++;
				assert_true(opening.created);
				assert_int_equal(stat(opening.moved_to, &st), 0);
				assert_true(opening.why[0] != '\0');
				assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 0);
			}
			if (store_add(store, &record, &err) == 0)
				store_commit(store, &err);
			store_close(store);
		}
		fixture_shell("rm -f $DB*");
	}
	assert_true(replaced > DAMAGES / 4);
}

static void
case_F_24_truncated_and_foreign_files_are_set_aside(void **state)
{
	static const char *const makers[] = {
	    "truncate -s 5000 $DB",
	    "head -c 100000 /dev/urandom > $DB",
	    "echo 'no database at all' > $DB",
	    "rm $DB*; sqlite3 $DB 'CREATE TABLE x (y)'",
	    "rm $DB*; sqlite3 $DB 'PRAGMA user_version = 1; CREATE TABLE connections (id)'",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(makers) / sizeof(makers[0]); i++) {
		struct store_opening opening;
		struct store *store;
		struct record record = fixture_flow(1, "github.com");

		make_database(300);
		fixture_shell(makers[i]);
		store = fixture_open(&opening);
		assert_true(opening.replaced && opening.created);
		assert_non_null(strstr(opening.moved_to, ".corrupt-"));
		fixture_add(store, &record);
		fixture_commit(store);
		store_close(store);
		assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 1);
	}
}

static void
case_F_24_a_vanished_file_is_noticed_at_the_next_start(void **state)
{
	struct store_opening opening;
	char wal[PATH_MAX + 8];
	FILE *file;

	(void)state;
	make_database(10);
	assert_int_equal(unlink(fixture_db), 0);
	store_close(fixture_open(&opening));
	assert_true(opening.replaced && opening.created);
	assert_string_equal(opening.moved_to, "");
	/* With a log left behind, which may hold records: kept. */
	assert_int_equal(unlink(fixture_db), 0);
	snprintf(wal, sizeof(wal), "%s-wal", fixture_db);
	file = fopen(wal, "w");
	assert_non_null(file);
	fputs("records", file);
	fclose(file);
	store_close(fixture_open(&opening));
	assert_true(opening.replaced && opening.created);
	snprintf(wal, sizeof(wal), "%s-wal", opening.moved_to);
	assert_int_equal(access(wal, F_OK), 0);
}

static void
case_F_24_unlinked_or_replaced_while_running(void **state)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	(void)state;
	for (size_t i = 0; i < 6; i++) {
		struct store *store = fixture_open(NULL);
		struct store_opening opening;
		struct record record = fixture_sandbox(FIXTURE_SANDBOX, "task1");
		struct record_sandbox live[2];
		struct error err;
		char path[128];

		fixture_add(store, &record);
		fixture_commit(store);
		assert_int_equal(store_check(store, &err), 0);
		snprintf(path, sizeof(path), "%s%s", fixture_db, suffixes[i % 3]);
		setenv("FILE", path, 1);
		/* A copy under the old name is not the file that is open. */
		fixture_shell(i < 3 ? "rm $FILE" : "cp $FILE $FILE.new && mv $FILE.new $FILE");
		record = fixture_flow(1, "github.com");
		assert_int_equal(store_add(store, &record, &err), 0);
		assert_int_equal(store_commit(store, &err), -1);
		assert_int_equal(err.code, ERROR_CORRUPT);
		assert_true(store_must_reopen(store));
		assert_false(store_has_batch(store));
		assert_int_equal(store_check(store, &err), -1);
		/* What the lost file knew can still be asked. */
		assert_int_equal(store_live_sandboxes(store, live, 2), 1);
		store_close(store);
		store = fixture_open(&opening);
		assert_int_equal(opening.replaced, i == 0);
		fixture_add(store, &record);
		fixture_commit(store);
		assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 1);
		/* Losing -wal or -shm alone loses nothing. */
		assert_int_equal(fixture_integer("SELECT count(*) FROM sandboxes"), i == 0 ? 0 : 1);
		store_close(store);
		fixture_shell("rm -f $DB*");
	}
}

/* The writer's own connection has the pages in memory; it must not go on writing what nobody can read. */
static void
case_F_24_damaged_while_running(void **state)
{
	static const char *const damages[] = {
	    ": >$DB",
	    ": >$DB-wal",
	    "head -c 81920 /dev/urandom | dd of=$DB-wal conv=notrunc status=none",
	    "head -c 81920 /dev/urandom >$DB && : >$DB-wal",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct store *store = fixture_open(NULL);
		struct record record = fixture_flow(1, "github.com");
		struct store_opening opening;
		struct error err;

		fixture_add(store, &record);
		fixture_commit(store);
		assert_int_equal(store_look(store, &err), 0);
		assert_false(store_must_reopen(store));
		fixture_shell(damages[i]);
		assert_int_equal(store_look(store, &err), -1);
		assert_int_equal(err.code, ERROR_CORRUPT);
		assert_true(store_must_reopen(store));
		store_close(store);
		/* Either the writer's end could mend it, or it is set aside. */
		store = fixture_open(&opening);
		assert_true(opening.replaced || fixture_integer("SELECT count(*) FROM connections") == 1);
		assert_int_equal(store_look(store, &err), 0);
		store_close(store);
		fixture_shell("rm -f $DB*");
	}
}

static void
case_F_24_lost_tables_are_a_loss(void **state)
{
	struct store_opening opening;

	(void)state;
	store_close(fixture_open(&opening));
	assert_true(opening.created);
	assert_false(opening.replaced);
	fixture_shell(": >$DB && : >$DB-wal");
	store_close(fixture_open(&opening));
	assert_true(opening.created);
	assert_true(opening.replaced);
	assert_non_null(strstr(opening.why, "lost its tables"));
	/* But not when the first start did not come so far. */
	fixture_shell("rm -f $DB* && : >$DB.lock && : >$DB");
	store_close(fixture_open(&opening));
	assert_true(opening.created);
	assert_false(opening.replaced);
}

/* Rows, and ballast enough that the file is not checked through before it is used. */
static void
make_large_database(void)
{
	make_database(3000);
	fixture_shell(
	    "sqlite3 $DB \"INSERT INTO meta VALUES ('ballast', zeroblob(40000000))\" && grep -q '^closed ' $DB.lock");
}

/* Until the checkpoint thread has seen all of the file: is it sound? */
static bool
checked_in_the_background(struct store *store)
{
	struct checkpoint_state state = {0};
	struct error err;

	assert_int_equal(store_start_checkpoints(store, &err), 0);
	for (int i = 0; i < 1000 && !state.checked && state.damage[0] == '\0'; i++) {
		usleep(10000);
		store_checkpoint_state(store, &state);
	}
	assert_true(state.checked || state.damage[0] != '\0');
	return state.checked;
}

static void
test_what_an_orderly_end_leaves_is_not_checked_again(void **state)
{
	struct store *store;

	(void)state;
	make_large_database();
	/* Somebody wrote to it. It is in use at once, and checked meanwhile. */
	store = fixture_open(NULL);
	fixture_shell("grep -q '^open ' $DB.lock");
	store_close(store);
	fixture_shell("grep -q '^open ' $DB.lock");
	store = fixture_open(NULL);
	assert_true(checked_in_the_background(store));
	store_close(store);
	fixture_shell("grep -q '^closed ' $DB.lock");
	store = fixture_open(NULL);
	store_close(store);
	fixture_shell("grep -q '^closed ' $DB.lock && touch $DB");
	store = fixture_open(NULL);
	store_close(store);
	fixture_shell("grep -q '^open ' $DB.lock");
	/* One that is to end does not wait for the check. */
	store = fixture_open(NULL);
	assert_int_equal(store_start_checkpoints(store, NULL), 0);
	store_close(store);
}

static void
case_F_24_old_damage_in_a_large_database_is_found_while_it_is_in_use(void **state)
{
	struct store_opening opening;
	struct record record = fixture_flow(9999, "after.example");
	struct error err;
	struct store *store;
	int64_t page;

	(void)state;
	make_large_database();
	page = fixture_integer("SELECT pageno FROM dbstat WHERE name = 'connections' AND pagetype = 'leaf' LIMIT 1");
	damage((off_t)(page - 1) * 4096, 64);
	store = fixture_open(&opening);
	assert_false(opening.replaced);
	fixture_add(store, &record);
	fixture_commit(store);
	assert_int_equal(store_look(store, &err), 0);
	assert_false(checked_in_the_background(store));
	assert_int_equal(store_look(store, &err), -1);
	assert_int_equal(err.code, ERROR_CORRUPT);
	assert_true(store_must_reopen(store));
	store_close(store);
	fixture_shell("grep -q '^damaged ' $DB.lock");
	store = fixture_open(&opening);
	assert_true(opening.replaced && opening.created);
	fixture_add(store, &record);
	fixture_commit(store);
	store_close(store);
	fixture_shell("grep -q '^closed ' $DB.lock");
}

/* Damage that only opening meets is found before anything is written. */
static void
case_F_24_new_damage_in_a_large_database_is_found_at_the_start(void **state)
{
	struct store_opening opening;
	int64_t page;

	(void)state;
	make_large_database();
	page = fixture_integer("SELECT max(pageno) FROM dbstat WHERE name = 'connections' AND pagetype = 'leaf'");
	damage((off_t)(page - 1) * 4096, 64);
	store_close(fixture_open(&opening));
	assert_true(opening.replaced && opening.created);
}

static void
case_F_32_symbolic_links_are_refused(void **state)
{
	struct store_opening opening;
	struct error err;
	char target[96];

	(void)state;
	snprintf(target, sizeof(target), "%s/target", fixture_dir);
	assert_int_equal(symlink(target, fixture_db), 0);
	assert_null(store_open(fixture_db, &opening, &err));
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(unlink(fixture_db), 0);
	/* Above the directory they are the administrator's. */
	snprintf(target, sizeof(target), "%s/link", fixture_dir);
	assert_int_equal(symlink(fixture_dir, target), 0);
	snprintf(fixture_db, sizeof(fixture_db), "%s/link/audit.db", fixture_dir);
	store_close(fixture_open(&opening));
	assert_true(opening.created);
}

/* A reader of the group, without write permission, while the writer runs and after it ended. In a child: 0 or 1. */
static int
read_as_somebody_else(void)
{
	const struct query_row *row;
	struct query_filter filter = {.last = 0};
	struct error err;
	struct query *query;
	int rows = 0;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 77;
	query = query_open(fixture_db, &err);
	if (query == NULL || query_start(query, &filter, &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	while (query_next(query, &row, &err) == 1)
		rows++;
	query_close(query);
	return rows == 3 ? 0 : 2;
}

static void
test_readers_need_no_write_permission(void **state)
{
	struct store *store = fixture_open(NULL);

	(void)state;
	if (geteuid() != 0) {
		store_close(store);
		skip();
	}
	for (uint64_t i = 1; i <= 3; i++) {
		struct record record = fixture_flow(i, "github.com");

		fixture_add(store, &record);
	}
	fixture_commit(store);
	fixture_shell("chmod 0755 $DIR && chmod 0644 $DB*");
	for (int i = 0; i < 2; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(read_as_somebody_else());
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
		if (i == 0)
			store_close(store);
	}
}

#define DURABLE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    DURABLE_TEST(case_F_25_what_was_acknowledged_survives_kill_9),
	    DURABLE_TEST(case_F_22_disk_full_and_back),
	    DURABLE_TEST(case_F_24_damage_at_many_offsets),
	    DURABLE_TEST(case_F_24_truncated_and_foreign_files_are_set_aside),
	    DURABLE_TEST(case_F_24_a_vanished_file_is_noticed_at_the_next_start),
	    DURABLE_TEST(case_F_24_unlinked_or_replaced_while_running),
	    DURABLE_TEST(case_F_24_damaged_while_running),
	    DURABLE_TEST(case_F_24_lost_tables_are_a_loss),
	    DURABLE_TEST(test_what_an_orderly_end_leaves_is_not_checked_again),
	    DURABLE_TEST(case_F_24_old_damage_in_a_large_database_is_found_while_it_is_in_use),
	    DURABLE_TEST(case_F_24_new_damage_in_a_large_database_is_found_at_the_start),
	    DURABLE_TEST(case_F_32_symbolic_links_are_refused),
	    DURABLE_TEST(test_readers_need_no_write_permission),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
