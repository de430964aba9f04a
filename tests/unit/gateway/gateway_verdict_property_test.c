/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The data path and postern test, each with its own gatherer, against the manual's words, on random policies, leases,
 * places and questions: the same verdict, reason and rule. (Replay: tests/unit/cli/cli_verdict_property_test.c.)
 *
 * POSTERN_TEST_LONG=1 (make test-long) asks in a hundred times as many worlds, POSTERN_TEST_SEED=N begins elsewhere. */
#include "tests/unit/policy/policy_worlds.h"

#include "base/clock.h"
#include "gateway/control/control_explain.h"
#include "gateway/path/judge.h"
#include "gateway/shared/sealed.h"

#include <fcntl.h>
#include <sched.h>

#define QUESTIONS 400

static struct gateway gateway;
static struct sandbox sandbox;
static struct geo databases, no_databases;
static bool has_host_address;
static size_t seen[REASON_MAX];

/* ---- facts ---- */

static void
database_open(enum geo_kind kind)
{
	char path[] = "/tmp/postern-places.XXXXXX", command[128];
	struct error err;
	FILE *tool;
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	close(fd);
	snprintf(command, sizeof(command), "tests/lab/mmdb %s nested 6", path);
	tool = popen(command, "w");
	assert_non_null(tool);
	for (size_t i = 0; i < WORLD_ADDRS_OPEN; i++)
		if (world_addrs[i].country[0] != '\0' || world_addrs[i].asn != 0)
			fprintf(tool, world_addrs[i].asn == 0 ? "%s/%d %s -\n" : "%s/%d %s %u Net\n",
			    world_addrs[i].text, strchr(world_addrs[i].text, ':') == NULL ? 32 : 128,
			    world_addrs[i].country[0] == '\0' ? "-" : world_addrs[i].country, world_addrs[i].asn);
	assert_int_equal(pclose(tool), 0);
	fd = sealed_copy(path, &err);
	assert_true(fd >= 0);
	if (geo_open(&databases, kind, fd, path, &err) < 0)
		fail_msg("%s", err.text);
	close(fd);
	unlink(path);
}

/* An address of the host, where a namespace of our own can be had. */
static int
setup(void **state)
{
	(void)state;
	has_host_address = (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
	    system("ip link set lo up && ip address add 5.6.7.8/32 dev lo") == 0;
	assert_int_equal(route_open(&gateway.route), 0);
	database_open(GEO_COUNTRY);
	database_open(GEO_ASN);
	sandbox.gateway = &gateway;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	route_close(&gateway.route);
	geo_close(&databases);
	return 0;
}

/* The world as the gateway has it; the newest lease is looked at first. */
static void
sandbox_enter(const struct world *world)
{
	lease_table_free(&sandbox.leases);
	memset(&sandbox.leases, 0, sizeof(sandbox.leases));
	for (size_t i = 0; i < world->lease_count; i++) {
		struct name name = world_name(world->leases[i].name);
		struct addr addr = world_addr(world->leases[i].addr);

		assert_int_equal(lease_add(&sandbox.leases, &name, &addr, world->leases[i].live ? 600 : 0, 5), 0);
	}
	sandbox.policy = world->policy;
	gateway.geo = world->placed ? databases : no_databases;
}

/* ---- the data path ---- */

static struct judgement
path_judge(const struct world_question *q)
{
	struct addr addr = world_addr(q->addr);
	struct name name = q->name == SIZE_MAX ? (struct name){.len = 0} : world_name(q->name);
	struct judge_claim claim = {.naming = q->naming,
	    .source = q->port == 80 ? NAME_SOURCE_HOST : NAME_SOURCE_SNI,
	    .name = q->naming == VERDICT_SAID ? &name : NULL,
	    .ech = q->ech};

	return judge_attempt(&sandbox, &addr, q->proto, q->port, q->naming == VERDICT_LEASED ? NULL : &claim);
}

static void
newest_first(const struct world *world, struct world_lease *ret_leases)
{
	for (size_t i = 0; i < world->lease_count; i++)
		ret_leases[i] = world->leases[world->lease_count - 1 - i];
}

static struct oracle_answer
path_expected(const struct world *world, const struct world_question *q)
{
	struct world_lease leases[WORLD_LEASES_MAX];

	newest_first(world, leases);
	return oracle_connection(world, leases, world->lease_count, q);
}

static bool
path_agrees(struct world *world, const struct world_question *q)
{
	struct oracle_answer want = path_expected(world, q);
	struct judgement got;

	sandbox_enter(world);
	got = path_judge(q);
	seen[got.reason]++;
	return world_agrees(world, &want, &got);
}

/* ---- live connections ---- */

static bool
live_agrees(struct world *world, const struct world_question *q)
{
	struct oracle_answer want = path_expected(world, q);
	struct addr addr = world_addr(q->addr);
	struct name name = q->name == SIZE_MAX ? (struct name){.len = 0} : world_name(q->name);
	enum name_source source = q->naming == VERDICT_UNPROVEN ? NAME_SOURCE_CIDR : NAME_SOURCE_SNI;
	bool allows;

	/* The routing table is not asked again. */
	if (world_addrs[q->addr].host)
		return true;
	sandbox_enter(world);
	allows = judge_still_allows(&sandbox, &addr, q->proto, q->port, &name, source, q->ech);
	snprintf(world_said, sizeof(world_said), "%s instead of %s", allows ? "left" : "cut", reason_text(want.reason));
	return allows == (want.reason == REASON_ALLOWED);
}

/* ---- postern test ---- */

struct rows {
	struct msg_leases_done done;
	const struct name *name;
	const struct addr *addr;
	bool others;
};

static bool
rows_add(const struct lease *lease, void *context)
{
	struct rows *rows = context;
	bool own = rows->name != NULL && name_equal(&lease->name, rows->name);

	if (rows->addr != NULL ? !addr_equal(&lease->addr, rows->addr) : own == rows->others)
		return true;
	rows->done.rows[rows->done.count++] =
	    (struct msg_lease_row){.addr = lease->addr, .name = lease->name, .left_s = 599};
	return true;
}

/* What the gateway answers: the name's own leases, then others. */
static void
rows_gather(struct rows *rows)
{
	rows->done.count = 0;
	rows->others = false;
	lease_each(&sandbox.leases, rows_add, rows);
	rows->others = true;
	if (rows->addr == NULL)
		lease_each(&sandbox.leases, rows_add, rows);
}

static size_t
index_of_name(const struct name *name)
{
	size_t i = 0;

	while (strcmp(world_names[i], name->text) != 0)
		i++;
	return i;
}

static size_t
index_of_addr(const struct addr *addr)
{
	for (size_t i = 0; i < WORLD_COUNT(world_addrs); i++) {
		struct addr one = world_addr(i);

		if (addr_equal(addr, &one))
			return i;
	}
	fail();
	return 0;
}

static struct judgement
test_judge(struct world *world, const struct world_question *q, bool is_addr, struct rows *rows)
{
	struct control_target target = {.is_addr = is_addr, .proto = q->proto, .port = q->port};
	struct control_explain_facts facts = {.policy = world->policy,
	    .route = &gateway.route,
	    .geo = &gateway.geo,
	    .leases = &rows->done,
	    .now_us = clock_real_us()};
	struct judgement judgement;
	json_t *steps;

	sandbox_enter(world);
	if (is_addr)
		target.addr = world_addr(q->addr);
	else
		target.name = world_name(q->name);
	rows->addr = is_addr ? &target.addr : NULL;
	rows->name = is_addr ? NULL : &target.name;
	rows_gather(rows);
	judgement = control_explain(&facts, &target, &steps);
	assert_true(json_array_size(steps) > 0);
	json_decref(steps);
	return judgement;
}

/* Does the kernel let the address in, whoever leased it? Rules that have ended hold their ranges; deny rules that end
 * by themselves do not shut them. */
static bool
kernel_open(const struct world *world, const struct world_question *q)
{
	bool covered = world->learn && q->proto == IPPROTO_TCP, within = !world->bounded;

	for (size_t i = 0; i < world->count; i++) {
		const struct world_rule *rule = &world->rules[i];

		if (!oracle_addr_matches(rule, q->addr) || !oracle_port(rule, q->proto, q->port))
			continue;
		if (rule->deny && !rule->ended && !rule->timed)
			return false;
		covered = covered || (!rule->deny && !oracle_bounds(rule));
		within = within || oracle_bounds(rule);
	}
	return covered && within;
}

/* An address: the kernel first, then as a connection is judged whose name is not known yet. */
static struct oracle_answer
address_expected(const struct world *world, const struct world_question *q)
{
	struct world_question asked = *q;
	struct world_lease leases[WORLD_LEASES_MAX];
	struct oracle_answer addr = oracle_addr(world, q), want;

	asked.naming = q->proto == IPPROTO_TCP && (q->port == 80 || q->port == 443) ? VERDICT_UNHEARD : VERDICT_LEASED;
	newest_first(world, leases);
	want = oracle_judge(world, leases, world->lease_count, &asked);
	if (want.reason == REASON_ALLOWED || oracle_refuses(&addr) || kernel_open(world, q))
		return want;
	return (struct oracle_answer){q->proto == IPPROTO_UDP ? REASON_UDP_DENIED : REASON_NOT_LEASED, NULL, false};
}

static bool
address_agrees(struct world *world, const struct world_question *q)
{
	static struct rows rows;
	struct oracle_answer want = address_expected(world, q);
	struct judgement got = test_judge(world, q, true, &rows);
	struct judgement path;

	if (!world_agrees(world, &want, &got))
		return false;
	/* And face to face, where neither the kernel nor a name to come is in between. */
	if (q->naming != VERDICT_LEASED || (got.verdict != VERDICT_ALLOWED && !kernel_open(world, q)))
		return true;
	path = path_judge(q);
	return path.verdict == got.verdict && path.reason == got.reason && path.rule == got.rule;
}

/* A name: its question, then each address that it is leased to, the first allowed one or the first. */
static struct oracle_answer
name_expected(const struct world *world, const struct world_question *q, const struct rows *rows)
{
	struct world_question asked = *q;
	struct world_lease leases[WORLD_LEASES_MAX];
	struct oracle_answer want = oracle_dns(world, q->name), here;
	size_t own = 0;

	if (want.reason != REASON_ALLOWED)
		return want;
	asked.naming = q->proto == IPPROTO_TCP && (q->port == 80 || q->port == 443) ? VERDICT_SAID : VERDICT_LEASED;
	for (size_t i = 0; i < rows->done.count; i++)
		leases[i] = (struct world_lease){
		    index_of_name(&rows->done.rows[i].name), index_of_addr(&rows->done.rows[i].addr), true};
	for (size_t i = 0; i < rows->done.count; i++) {
		if (leases[i].name != q->name)
			continue;
		asked.addr = leases[i].addr;
		here = oracle_judge(world, leases, rows->done.count, &asked);
		if (own++ == 0 || (want.reason != REASON_ALLOWED && here.reason == REASON_ALLOWED))
			want = here;
	}
	return own > 0 ? want : oracle_name(world, q->name, q->proto, q->port);
}

static bool
name_agrees(struct world *world, const struct world_question *q)
{
	static struct rows rows;
	struct judgement got = test_judge(world, q, false, &rows);
	struct oracle_answer want = name_expected(world, q, &rows);
	struct world_question asked = *q;
	bool single = true;

	if (!world_agrees(world, &want, &got))
		return false;
	/* And face to face, where the name may be resolved and has one address. */
	for (size_t i = 0, own = 0; i < rows.done.count; i++) {
		if (!name_equal(&rows.done.rows[i].name, rows.name))
			continue;
		asked.addr = index_of_addr(&rows.done.rows[i].addr);
		single = own++ == 0;
	}
	if (asked.addr == SIZE_MAX || !single || oracle_dns(world, q->name).reason != REASON_ALLOWED)
		return true;
	asked.naming = q->proto == IPPROTO_TCP && (q->port == 80 || q->port == 443) ? VERDICT_SAID : VERDICT_LEASED;
	asked.ech = false;
	return path_judge(&asked).reason == got.reason;
}

static bool
dns_agrees(struct world *world, const struct world_question *q)
{
	struct oracle_answer want = oracle_dns(world, q->name);
	struct name name = world_name(q->name);
	struct judgement got = verdict_question(world->policy, &name, clock_real_us());

	return world_agrees(world, &want, &got);
}

/* ---- asking ---- */

static const struct {
	const char *text;
	bool (*agrees)(struct world *world, const struct world_question *q);
} parties[] = {{"the data path", path_agrees}, {"re-judging", live_agrees}, {"test of an address", address_agrees},
    {"test of a name", name_agrees}, {"DNS", dns_agrees}};

static struct world_question
question_make(const struct world *world, size_t party)
{
	struct world_question q = {.addr = world_below(WORLD_COUNT(world_addrs)),
	    .proto = world_below(4) == 0 ? IPPROTO_UDP : IPPROTO_TCP,
	    .port = world_ports[world_below(4)],
	    .name = world_below(WORLD_COUNT(world_names))};
	bool inspected = q.proto == IPPROTO_TCP && (q.port == 80 || q.port == 443);

	if (world->lease_count > 0 && world_below(3) != 0) {
		const struct world_lease *lease = &world->leases[world_below((unsigned int)world->lease_count)];

		q.addr = lease->addr;
		q.name = world_below(3) == 0 ? q.name : lease->name;
	}
	if (q.addr == WORLD_COUNT(world_addrs) - 1 && !has_host_address)
		q.addr = 0;
	q.ech = party < 2 && q.proto == IPPROTO_TCP && q.port == 443 && world_below(3) == 0;
	if (party == 0)
		q.naming = !inspected ? VERDICT_LEASED : world_below(3) == 0 ? VERDICT_SILENT : VERDICT_SAID;
	if (party == 1) {
		q.naming = world_below(2) ? VERDICT_PROVEN : VERDICT_UNPROVEN;
		if (q.naming == VERDICT_UNPROVEN && world_below(2))
			q.name = SIZE_MAX;
	}
	if (party == 2)
		q.naming = inspected ? VERDICT_UNHEARD : VERDICT_LEASED;
	if (party == 3)
		q.addr = SIZE_MAX;
	return q;
}

/* Asks in so many worlds; how often, and (NULL: a failure at once) how many met disagreement. */
static size_t
worlds_ask(size_t worlds, size_t *ret_disagreed)
{
	static struct world world;
	size_t asked = 0;

	for (size_t w = 0; w < worlds; w++) {
		unsigned int seed = world_seed;

		world_make(&world);
		if (!world_compile(&world))
			continue;
		for (size_t i = 0; i < QUESTIONS; i++) {
			size_t party = i % WORLD_COUNT(parties);
			struct world_question q = question_make(&world, party);

			asked++;
			if (parties[party].agrees(&world, &q))
				continue;
			if (ret_disagreed != NULL) {
				(*ret_disagreed)++;
				continue;
			}
			world_shrink(&world, parties[party].agrees, &q);
			(void)parties[party].agrees(&world, &q);
			world_show(&world, &q, seed);
			fail_msg("%s: %s", parties[party].text, world_said);
		}
		world_free(&world);
	}
	return asked;
}

static void
all_agree_with_the_manual(void **state)
{
	size_t asked;

	(void)state;
	world_seed = world_first_seed();
	world_mistake = WORLD_RIGHT;
	asked = worlds_ask(world_many(), NULL);
	print_message("%zu questions\n", asked);
	/* The worlds test something. */
	assert_true(seen[REASON_ALLOWED] > 0 && seen[REASON_NO_RULE] > 0 && seen[REASON_RULE_DENY] > 0);
	assert_true(seen[REASON_NEVER_ADDRESS] > 0 && seen[REASON_NEVER_NAME] > 0 && seen[REASON_NOT_LEASED] > 0);
	assert_true(seen[REASON_SNI_MISSING] > 0 && seen[REASON_SNI_MISMATCH] > 0 && seen[REASON_HOST_MISMATCH] > 0);
	assert_true(seen[REASON_EXPIRED] > 0 && seen[REASON_PLACE_UNKNOWN] > 0 && seen[REASON_ECH] > 0);
}

/* Each mistake in the oracle is noticed. */
static void
a_wrong_precedence_is_told_apart(void **state)
{
	(void)state;
	for (int mistake = WORLD_RIGHT + 1; mistake < WORLD_MISTAKES; mistake++) {
		size_t disagreed = 0;

		world_seed = WORLD_SEED;
		world_mistake = (enum world_mistake)mistake;
		(void)worlds_ask(60, &disagreed);
		print_message("mistake %d: %zu disagreements\n", mistake, disagreed);
		assert_true(disagreed > 0);
	}
	world_mistake = WORLD_RIGHT;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(all_agree_with_the_manual),
	    cmocka_unit_test(a_wrong_precedence_is_told_apart),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
