/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A million random names through the compiled matcher and through one that is too simple to be wrong: it walks a list
 * of entries and compares strings. The entries go through the policy's text, as a person's do. (CASES B-27) */
#include "policy/compiled/snapshot.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <cmocka.h>

#define POLICIES 250
#define NAMES 4000
#define ENTRIES_MAX 40
#define SECOND INT64_C(1000000)
/* Deadlines are this many seconds after 2000-01-01, names are asked for at one of them. */
#define SECONDS 4
#define EPOCH_US INT64_C(946684800000000)

enum form { FORM_EXACT, FORM_WILDCARD, FORM_SUBTREE, FORM_COUNT };

struct entry {
	char host[64];
	enum form form;
	bool deny, bound;
	unsigned int port;    /* 0: the default */
	unsigned int expires; /* 0: never; else the second */
};

struct list {
	struct entry entries[ENTRIES_MAX];
	size_t count;
	bool bounded;
};

static unsigned int seed = 20;

static unsigned int
below(unsigned int n)
{
	return (unsigned int)rand_r(&seed) % n;
}

/* Few labels, so that names meet; some differ in one byte, or are the end of another. */
static void
name_make(char *text, size_t size)
{
	static const char *const labels[] = {"a", "b", "ab", "ba", "x-a", "a_b", "1", "www", "xn--a"};
	static const char *const ends[] = {"example", "example.net", "ample.net", "co.example", "test-a.org"};
	unsigned int count = below(4);
	size_t len = 0;

	for (unsigned int i = 0; i < count; i++)
		len +=
		    (size_t)snprintf(text + len, size - len, "%s.", labels[below(sizeof(labels) / sizeof(labels[0]))]);
	snprintf(text + len, size - len, "%s", ends[below(sizeof(ends) / sizeof(ends[0]))]);
}

static void
entry_make(struct entry *entry, bool bounded)
{
	static const unsigned int ports[] = {0, 22, 443, 8000};

	memset(entry, 0, sizeof(*entry));
	do
		name_make(entry->host, sizeof(entry->host));
	while (strchr(entry->host, '.') == NULL);
	entry->form = (enum form)below(FORM_COUNT);
	entry->deny = below(4) == 0;
	entry->bound = bounded && !entry->deny && below(2) == 0;
	entry->port = ports[below(4)];
	entry->expires = below(3) == 0 ? 1 + below(SECONDS) : 0;
}

static void
list_make(struct list *list)
{
	list->count = below(ENTRIES_MAX);
	list->bounded = below(3) == 0;
	for (size_t i = 0; i < list->count; i++)
		entry_make(&list->entries[i], list->bounded);
}

/* ---- the simple matcher ---- */

/* Is text host, or does it end in "." and host? */
static bool
ends_in(const char *text, const char *host)
{
	size_t len = strlen(text), end = strlen(host);

	return len > end && text[len - end - 1] == '.' && strcasecmp(text + len - end, host) == 0;
}

static bool
entry_matches(const struct entry *entry, const char *text, unsigned int port, unsigned int second)
{
	bool itself = strcasecmp(text, entry->host) == 0, under = ends_in(text, entry->host);

	if (entry->expires != 0 && second >= entry->expires)
		return false;
	if (!(entry->form == FORM_EXACT ? itself : entry->form == FORM_WILDCARD ? under : itself || under))
		return false;
	if (entry->port != 0)
		return port == entry->port;
	return entry->deny || port == 80 || port == 443;
}

static enum reason
list_decide(const struct list *list, const char *text, unsigned int port, unsigned int second)
{
	bool allowed = false, within = !list->bounded;

	if (strchr(text, '.') == NULL)
		return REASON_NEVER_NAME;
	for (size_t i = 0; i < list->count; i++) {
		const struct entry *entry = &list->entries[i];

		if (!entry_matches(entry, text, port, second))
			continue;
		if (entry->deny)
			return REASON_RULE_DENY;
		within = within || entry->bound;
		allowed = allowed || !entry->bound;
	}
	return allowed && within ? REASON_ALLOWED : REASON_NO_RULE;
}

/* ---- the compiled one ---- */

static void
entry_print(FILE *out, const struct entry *entry)
{
	fprintf(out, "  - host: '%s%s'\n", entry->form == FORM_WILDCARD ? "*." : "", entry->host);
	if (entry->form == FORM_SUBTREE)
		fprintf(out, "    subdomains: true\n");
	if (entry->port != 0)
		fprintf(out, "    ports: %u\n", entry->port);
	if (entry->expires != 0)
		fprintf(out, "    expires: 2000-01-01T00:00:0%uZ\n", entry->expires);
}

/* The bounds are a text of their own, as an organisation's are. */
static struct policy
list_parse(const struct list *list, bool bounds)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	struct policy policy;
	struct error err;

	assert_non_null(out);
	fprintf(out, "version: 1\nallow:\n");
	for (size_t i = 0; i < list->count; i++)
		if (!list->entries[i].deny && list->entries[i].bound == bounds)
			entry_print(out, &list->entries[i]);
	fprintf(out, "  - host: never-asked-for.example\ndeny:\n  - host: never-asked-for.example\n");
	for (size_t i = 0; i < list->count; i++)
		if (list->entries[i].deny && !bounds)
			entry_print(out, &list->entries[i]);
	fclose(out);
	if (policy_parse(text, len, "p.yaml", &policy, &err) < 0)
		fail_msg("%s\n%s", text, err.text);
	free(text);
	return policy;
}

static struct snapshot *
list_compile(const struct list *list)
{
	struct policy policy = list_parse(list, false);
	struct snapshot *snapshot;
	struct error err;
	int fd;

	if (list->bounded) {
		struct policy bounds = list_parse(list, true);

		for (size_t i = 0; i < bounds.rule_count; i++) {
			bounds.rules[i].bound = bounds.rules[i].action == RULE_ALLOW;
			assert_int_equal(policy_add(&policy, &bounds.rules[i], NULL), 0);
		}
		policy_free(&bounds);
		policy.bounded = true;
	}
	fd = snapshot_compile(&policy, &err);
	if (fd < 0)
		fail_msg("%s", err.text);
	snapshot = snapshot_open(fd, &err);
	assert_non_null(snapshot);
	close(fd);
	policy_free(&policy);
	return snapshot;
}

/* Another spelling of the same name: DNS, TLS and HTTP carry them all. */
static void
respell(char *text, size_t size)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if (below(3) == 0)
			text[i] = (char)toupper((unsigned char)text[i]);
	if (below(4) == 0 && len + 1 < size)
		memcpy(text + len, ".", 2);
}

static void
name_compare(const struct list *list, const struct snapshot *s)
{
	static const unsigned int ports[] = {22, 80, 443, 8000, 8001};
	unsigned int port = ports[below(5)], second = below(SECONDS + 1);
	int64_t now_us = EPOCH_US + second * SECOND;
	char text[80], spelled[80];
	enum reason expected;
	struct decision decision;
	struct name name;

	name_make(text, sizeof(text));
	memcpy(spelled, text, sizeof(text));
	respell(spelled, sizeof(spelled));
	assert_int_equal(name_canonical(spelled, strlen(spelled), &name), NAME_OK);
	expected = list_decide(list, text, port, second);
	decision = snapshot_decide_host(s, &name, IPPROTO_TCP, (uint16_t)port, now_us);
	if (decision.reason != expected)
		fail_msg("%s:%u at %u s: %s by %s, expected %s", spelled, port, second, reason_text(decision.reason),
		    snapshot_rule_text(s, decision.rule), reason_text(expected));
	assert_int_equal(decision.verdict, expected == REASON_ALLOWED ? VERDICT_ALLOWED : VERDICT_DENIED);
}

/* The other questions follow from the first. */
static void
questions_compare(const struct list *list, const struct snapshot *s)
{
	static const unsigned int ports[] = {22, 80, 443, 8000};
	unsigned int second = below(SECONDS + 1), open = 0;
	int64_t now_us = EPOCH_US + second * SECOND;
	struct proto_port listed[RULE_HOST_PORTS_MAX];
	char text[80];
	struct name name;

	name_make(text, sizeof(text));
	assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
		open += list_decide(list, text, ports[i], second) == REASON_ALLOWED;
	assert_int_equal(snapshot_ports_list(s, &name, listed, RULE_HOST_PORTS_MAX, now_us), open);
	assert_int_equal(snapshot_ports_any(s, &name, now_us).verdict, open > 0 ? VERDICT_ALLOWED : VERDICT_DENIED);
}

static void
case_B_27_a_million_names(void **state)
{
	static struct list list;
	size_t seen[REASON_MAX] = {0};

	(void)state;
	for (size_t p = 0; p < POLICIES; p++) {
		struct snapshot *s;

		list_make(&list);
		s = list_compile(&list);
		for (size_t i = 0; i < NAMES; i++)
			name_compare(&list, s);
		for (size_t i = 0; i < NAMES / 20; i++)
			questions_compare(&list, s);
		for (size_t i = 0; i < 100; i++) {
			char text[80];

			name_make(text, sizeof(text));
			seen[list_decide(&list, text, 443, 0)]++;
		}
		snapshot_free(s);
	}
	/* The names test something. */
	assert_true(seen[REASON_ALLOWED] > 1000 && seen[REASON_RULE_DENY] > 1000 && seen[REASON_NO_RULE] > 1000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_B_27_a_million_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
