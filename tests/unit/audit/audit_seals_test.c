/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seals read for export: each once, from a number on, and from the first one in a database that replaced another. */
#include "audit/query/seals.h"

#include "audit/store/store_seal.h"
#include "audit_fixture.h"

static struct seal_signer signer;

struct seen {
	int64_t numbers[16];
	char log_id[SEAL_LOG_ID_MAX];
	size_t count;
};

static int
setup(void **state)
{
	char path[PATH_MAX];
	struct error err;
	bool made;

	if (fixture_setup(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/seal.key", fixture_dir);
	return seal_signer_load(&signer, path, &made, &err);
}

static int
teardown(void **state)
{
	seal_signer_free(&signer);
	return fixture_teardown(state);
}

/* Adds that many sealed segments of one record each, counted from first. */
static void
add_seals(struct store *store, uint64_t first, size_t count)
{
	struct error err;

	for (uint64_t i = first; i < first + count; i++) {
		struct record record = fixture_flow(i, "a.example");

		fixture_add(store, &record);
		assert_int_equal(store_seal(store, true, &err), 0);
		fixture_commit(store);
	}
}

static struct store *
open_store(void)
{
	struct store *store = fixture_open(NULL);

	store_set_signer(store, &signer);
	return store;
}

static void
see(const struct seal *seal, const char *log_id, void *context)
{
	struct seen *seen = context;

	assert_true(seen->count < 16);
	seen->numbers[seen->count++] = seal->n;
	snprintf(seen->log_id, sizeof(seen->log_id), "%s", log_id);
}

static void
read_to(struct seals *seals, struct seen *seen)
{
	struct error err;

	*seen = (struct seen){.count = 0};
	if (seals_read(seals, see, seen, &err) < 0)
		fail_msg("%s", err.text);
}

static void
each_seal_is_read_once(void **state)
{
	struct store *store = open_store();
	struct seals *all, *some;
	struct error err;
	struct seen seen;

	(void)state;
	add_seals(store, 1, 3);
	all = seals_open(fixture_db, 0, &err);
	some = seals_open(fixture_db, 2, &err);
	assert_true(all != NULL && some != NULL);
	read_to(all, &seen);
	assert_int_equal(seen.count, 3);
	assert_int_equal(seen.numbers[0], 1);
	assert_int_equal(seen.numbers[2], 3);
	read_to(some, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.numbers[0], 3);
	read_to(all, &seen);
	assert_int_equal(seen.count, 0);
	add_seals(store, 4, 2);
	read_to(all, &seen);
	assert_int_equal(seen.count, 2);
	assert_int_equal(seen.numbers[1], 5);
	seals_close(some);
	seals_close(all);
	store_close(store);
}

static void
a_database_in_its_place_is_read_from_its_first_seal(void **state)
{
	struct store *store = open_store();
	struct seals *seals;
	struct error err;
	struct seen first, seen;

	(void)state;
	add_seals(store, 1, 3);
	seals = seals_open(fixture_db, 0, &err);
	assert_non_null(seals);
	read_to(seals, &first);
	store_close(store);
	/* None in its place: nothing new, no error. */
	fixture_shell("mv $DB $DB.gone && rm -f $DB-wal $DB-shm");
	read_to(seals, &seen);
	assert_int_equal(seen.count, 0);
	store = open_store();
	add_seals(store, 1, 1);
	read_to(seals, &seen);
	assert_int_equal(seen.count, 1);
	assert_int_equal(seen.numbers[0], 1);
	assert_string_not_equal(seen.log_id, first.log_id);
	seals_close(seals);
	store_close(store);
}

static void
keys_are_listed_or_missing(void **state)
{
	struct store *store = open_store();
	struct seal_key keys[4];
	struct seals *seals;
	struct error err;
	size_t count;

	(void)state;
	fixture_commit(store);
	assert_null(seals_open("/nonexistent/audit.db", 0, &err));
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	seals_close(NULL);
	seals = seals_open(fixture_db, 0, &err);
	assert_non_null(seals);
	assert_int_equal(seals_keys(seals, keys, 4, &count, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	add_seals(store, 1, 1);
	assert_int_equal(seals_keys(seals, keys, 4, &count, &err), 0);
	assert_int_equal(count, 1);
	assert_memory_equal(&keys[0], &signer.key, sizeof(keys[0]));
	seals_close(seals);
	store_close(store);
}

#define SEALS_TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    SEALS_TEST(each_seal_is_read_once),
	    SEALS_TEST(a_database_in_its_place_is_read_from_its_first_seal),
	    SEALS_TEST(keys_are_listed_or_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
