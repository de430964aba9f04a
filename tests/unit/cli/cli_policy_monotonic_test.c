/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A slip of the hand opens nothing. Policies are mutated as trees (JSON is a policy's text too): each key is renamed by
 * a slip, doubled, deleted, and its value given another type or left out. What comes of it is refused, or reaches no
 * more than before. Only who takes a whole restriction out, key and value, gets what it held back: that is what they
 * said. */
#include "policy/text/layers.h"
#include "policy/compiled/snapshot.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND INT64_C(1000000)
#define TEXT_MAX 16384
/* Stands for a second key of the same name until the tree is text. */
#define DOUBLE "\x01"

static const char *const policies[] = {
    "{'version': 1}",
    "{'version': 1, 'name': 'news', 'allow': [{'host': 'a.example'}]}",
    "{'version': 1, 'mode': 'enforce', 'ech': 'deny', 'allow': [{'host': '*.b.example', 'ports': [22, '8000-8010']}]}",
    "{'version': 1, 'allow': [{'host': 'b.example', 'subdomains': true}, {'host': 'c.example', 'ports': 443}],"
    " 'deny': [{'host': 'x.b.example'}, {'host': '*.c.example', 'ports': [80]}]}",
    "{'version': 1, 'allow': [{'host': 'a.example', 'expires': '20s'}, {'host': 'b.example', 'uses': 3}]}",
    "{'version': 1, 'allow': [{'host': 'c.example', 'expires': '2000-01-01T00:00:05Z', 'uses': 1}]}",
    "{'version': 1, 'allow': [{'cidr': '1.2.0.0/16', 'ports': [22, 443]}, {'cidr': '2600:1::/32', 'ports': 443}],"
    " 'deny': [{'cidr': '1.2.3.0/24', 'ports': 22}, {'country': 'KP'}, {'asn': 64500, 'ports': 25}]}",
    "{'version': 1, 'allow': [{'host': 'a.example', 'ports': [5000], 'udp': true}, {'host': 'a.example', 'udp': "
    "false}]}",
    "{'version': 1, 'limits': {'connections': 7, 'upload': {'soft': 1, 'hard': 2}, 'download': '1MiB'},"
    " 'allow': [{'host': 'a.example', 'limits': {'upload': '4MiB', 'connections': {'hard': 2}}}]}",
    "{'version': 1, 'include': ['preset:npm', 'preset:doh-deny'], 'allow': [{'host': 'google.com', 'subdomains': "
    "true}]}",
    "{'version': 1, 'allow': [{'host': '*.github.io', 'shared': true, 'ports': [443]}, {'host': 'github.io', 'shared': "
    "false}], 'deny': [{'host': 'evil.github.io', 'expires': '2000-01-01T00:00:05Z'}]}",
    "{'version': 1, 'allow': [], 'deny': [{'host': 'a.example', 'udp': true}]}",
};

static struct preset_dirs dirs;

static int
dirs_open(void **state)
{
	(void)state;
	return preset_dirs_open("configs/presets", &dirs, NULL);
}

static int
dirs_close(void **state)
{
	(void)state;
	preset_dirs_close(&dirs);
	return 0;
}

/* ---- what a policy reaches ---- */

static const char *const names[] = {"a.example", "b.example", "x.b.example", "y.z.b.example", "c.example",
    "d.c.example", "github.io", "good.github.io", "evil.github.io", "made-up.npmjs.org", "dns.google.com",
    "www.google.com", "other.example", "metadata.google.internal"};
static const char *const addrs[] = {"1.2.3.4", "1.2.4.4", "9.9.9.9", "10.0.0.1", "2600:1::1", "2601::1"};
static const uint16_t ports[] = {22, 25, 53, 80, 443, 5000, 8000, 8010};
static const int64_t times_us[] = {1, 10 * SECOND, 25 * SECOND, INT64_C(946684800000000), INT64_C(946684806000000)};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define QUESTIONS ((COUNT(names) + COUNT(addrs)) * COUNT(ports) * 2 * COUNT(times_us))

/* For each question how much is let through: nothing, as often as a count says, without end. */
struct reach {
	uint32_t uses[QUESTIONS];
	struct limits limits;
	bool learns, ech;
};

static uint32_t
decision_worth(const struct snapshot *s, struct decision decision)
{
	if (decision.verdict != VERDICT_ALLOWED && !decision.learnable)
		return 0;
	return snapshot_rule_uses(s, decision.rule) == 0 ? UINT32_MAX : snapshot_rule_uses(s, decision.rule);
}

static void
reach_measure(const struct snapshot *s, struct reach *reach)
{
	size_t at = 0;

	for (size_t i = 0; i < COUNT(names) + COUNT(addrs); i++) {
		struct name name;
		struct addr addr;

		if (i < COUNT(names))
			assert_int_equal(name_canonical(names[i], strlen(names[i]), &name), NAME_OK);
		else
			assert_true(addr_parse(addrs[i - COUNT(names)], strlen(addrs[i - COUNT(names)]), &addr));
		for (size_t p = 0; p < 2 * COUNT(ports); p++) {
			uint8_t proto = p % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP;

			for (size_t t = 0; t < COUNT(times_us); t++)
				reach->uses[at++] = decision_worth(s,
				    i < COUNT(names)
					? snapshot_decide_host(s, &name, proto, ports[p / 2], times_us[t])
					: snapshot_decide_addr(s, &addr, proto, ports[p / 2], times_us[t]));
		}
	}
	reach->limits = *snapshot_limits(s);
	reach->learns = snapshot_mode(s) == POLICY_MODE_LEARN;
	reach->ech = snapshot_ech(s) == POLICY_ECH_GREASE_OK;
}

/* False when the text is refused: then nothing is reached. */
static bool
reach_of(const char *text, struct reach *ret_reach)
{
	struct policy policy, effective;
	struct policy_layers layers = {.sandbox = &policy, .presets = &dirs};
	struct snapshot *snapshot;
	struct error err;
	int fd;

	memset(ret_reach, 0, sizeof(*ret_reach));
	if (policy_parse(text, strlen(text), "p.yaml", &policy, &err) < 0)
		return false;
	if (layers_merge(&layers, &effective, &err) < 0) {
		policy_free(&policy);
		return false;
	}
	fd = snapshot_compile(&effective, &err);
	policy_free(&policy);
	policy_free(&effective);
	if (fd < 0)
		return false;
	snapshot = snapshot_open(fd, &err);
	assert_non_null(snapshot);
	close(fd);
	reach_measure(snapshot, ret_reach);
	snapshot_free(snapshot);
	return true;
}

static void
expect_no_more(const char *before_text, const struct reach *before, const char *text, const char *what)
{
	static struct reach after;

	if (!reach_of(text, &after))
		return;
	for (size_t i = 0; i < QUESTIONS; i++)
		if (after.uses[i] > before->uses[i])
			fail_msg("%s opens something:\n%s\n%s", what, before_text, text);
	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++)
		if (before->limits.of[kind].hard != 0 &&
		    (after.limits.of[kind].hard == 0 || after.limits.of[kind].hard > before->limits.of[kind].hard))
			fail_msg("%s lifts a limit:\n%s\n%s", what, before_text, text);
	if ((after.learns && !before->learns) || (after.ech && !before->ech))
		fail_msg("%s loosens a setting:\n%s\n%s", what, before_text, text);
}

static void
expect_refused(const char *before_text, const char *text, const char *what)
{
	static struct reach after;

	if (reach_of(text, &after))
		fail_msg("%s is taken:\n%s\n%s", what, before_text, text);
}

/* ---- the tree ---- */

static json_t *
tree_load(const char *quoted)
{
	char text[TEXT_MAX];
	json_error_t why;
	json_t *tree;

	snprintf(text, sizeof(text), "%s", quoted);
	for (char *p = text; *p != '\0'; p++)
		*p = *p == '\'' ? '"' : *p;
	tree = json_loads(text, 0, &why);
	if (tree == NULL)
		fail_msg("%s: %s", text, why.text);
	return tree;
}

static void
tree_text(const json_t *tree, char ret_text[TEXT_MAX])
{
	char *dumped = json_dumps(tree, 0), *mark;

	assert_non_null(dumped);
	assert_true(strlen(dumped) < TEXT_MAX);
	/* Take the mark out of the doubled key. */
	mark = strstr(dumped, "\\u0001");
	if (mark != NULL)
		memmove(mark, mark + 6, strlen(mark + 6) + 1);
	strcpy(ret_text, dumped);
	free(dumped);
}

/* The object that holds the nth key of the whole tree, and that key; false behind the last. */
static bool
tree_find(json_t *node, size_t *n, json_t **ret_object, const char **ret_key)
{
	const char *key;
	json_t *value;
	size_t i;

	json_object_foreach(node, key, value)
	{
		if ((*n)-- == 0) {
			*ret_object = node;
			*ret_key = key;
			return true;
		}
		if (tree_find(value, n, ret_object, ret_key))
			return true;
	}
	json_array_foreach(node, i, value)
	{
		if (tree_find(value, n, ret_object, ret_key))
			return true;
	}
	return false;
}

/* Put value (taken over; NULL: nothing) under a new name where key was. */
static void
mutate(const char *policy, size_t n, const char *new_key, json_t *value, char ret_text[TEXT_MAX])
{
	json_t *tree = tree_load(policy), *object;
	const char *key;
	char old_key[64];

	assert_true(tree_find(tree, &n, &object, &key));
	snprintf(old_key, sizeof(old_key), "%s", key);
	json_object_del(object, old_key);
	if (value != NULL)
		json_object_set_new(object, new_key, value);
	tree_text(tree, ret_text);
	json_decref(tree);
}

/* ---- the mutations ---- */

static void
slips_of_a_key(const char *before_text, const char *policy, size_t n, const char *key, const json_t *value)
{
	char slip[80], text[TEXT_MAX];
	size_t len = strlen(key);

	for (size_t i = 0; i < len; i++) {
		/* one letter left out, doubled, in upper case, swapped with the next */
		snprintf(slip, sizeof(slip), "%.*s%s", (int)i, key, key + i + 1);
		mutate(policy, n, slip, json_deep_copy(value), text);
		expect_refused(before_text, text, "a key without a letter");
		snprintf(slip, sizeof(slip), "%.*s%c%s", (int)i, key, key[i], key + i);
		mutate(policy, n, slip, json_deep_copy(value), text);
		expect_refused(before_text, text, "a key with a letter twice");
		snprintf(slip, sizeof(slip), "%.*s%c%s", (int)i, key, key[i] == '_' ? '-' : key[i] - 32, key + i + 1);
		mutate(policy, n, slip, json_deep_copy(value), text);
		expect_refused(before_text, text, "a key in upper case");
		if (i + 1 == len || key[i] == key[i + 1])
			continue;
		snprintf(slip, sizeof(slip), "%.*s%c%c%s", (int)i, key, key[i + 1], key[i], key + i + 2);
		mutate(policy, n, slip, json_deep_copy(value), text);
		expect_refused(before_text, text, "a key with two letters swapped");
	}
	for (size_t i = 0; i < 4; i++) {
		snprintf(slip, sizeof(slip), "%s%s%s", i == 0 ? " " : "", key,
		    i == 1       ? " "
			: i == 2 ? "s"
			: i == 3 ? ":"
				 : "");
		mutate(policy, n, slip, json_deep_copy(value), text);
		expect_refused(before_text, text, "a key with something added");
	}
}

static void
doubled_key(const char *before_text, const char *policy, size_t n, const char *key, const json_t *value)
{
	const char *const others[] = {"true", "[]", "{}", "1"};
	char text[TEXT_MAX], twice[80];

	snprintf(twice, sizeof(twice), DOUBLE "%s", key);
	for (size_t i = 0; i <= COUNT(others); i++) {
		json_t *tree = tree_load(policy), *object;
		const char *found;
		size_t at = n;

		assert_true(tree_find(tree, &at, &object, &found));
		json_object_set_new(object, twice,
		    i == COUNT(others) ? json_deep_copy(value) : json_loads(others[i], JSON_DECODE_ANY, NULL));
		tree_text(tree, text);
		json_decref(tree);
		expect_refused(before_text, text, "a doubled key");
	}
}

/* Who takes these out with what they say takes a restriction out. */
static bool
is_restriction(const char *key)
{
	static const char *const restrictions[] = {"deny", "ports", "udp", "expires", "uses", "limits", "ech",
	    "include", "connections", "upload", "download", "soft"};

	for (size_t i = 0; i < COUNT(restrictions); i++)
		if (strcmp(key, restrictions[i]) == 0)
			return true;
	return false;
}

/* Is the nth key below "deny"? There another value of the same type is another restriction, and no mistake. */
static bool
is_below_deny(const char *policy, size_t n)
{
	json_t *tree = tree_load(policy), *object, *denies = json_object_get(tree, "deny"), *deny;
	const char *key;
	bool below = false;
	size_t i;

	assert_true(tree_find(tree, &n, &object, &key));
	json_array_foreach(denies, i, deny) below = below || deny == object;
	json_decref(tree);
	return below;
}

static void
other_types(const char *before_text, const struct reach *before, const char *policy, size_t n, const char *key,
    const json_t *value)
{
	static const char *const plain[] = {"null", "\"\"", "\"null\"", "\"~\"", "\"*\"", "\"all\"", "\"any\"", "[]",
	    "{}", "[null]", "[\"*\"]", "[[]]", "[{}]", "-1", "0", "0.5", "1e9", "\"0\"", "\"-1\"", "\"yes\"", "\"no\"",
	    "\"on\"", "\"off\"", "\"True\"", "\"inf\"", "\"never\"", "\"unlimited\"", "\"none\"", "\"0.0.0.0/0\"",
	    "\"::/0\"", "\"*.*\""};
	char text[TEXT_MAX];
	char *dumped = json_dumps(value, JSON_ENCODE_ANY);
	bool restricts = is_restriction(key) || is_below_deny(policy, n);

	for (size_t i = 0; i < COUNT(plain); i++) {
		json_t *other = json_loads(plain[i], JSON_DECODE_ANY, NULL);

		if (restricts && json_typeof(other) == json_typeof(value)) {
			json_decref(other);
			continue;
		}
		mutate(policy, n, key, other, text);
		expect_no_more(before_text, before, text, "another type");
	}
	mutate(policy, n, key, json_pack("[O]", value), text);
	expect_no_more(before_text, before, text, "a list of it");
	mutate(policy, n, key, json_pack("[O, O]", value, value), text);
	expect_no_more(before_text, before, text, "a list of it twice");
	mutate(policy, n, key, json_pack("{s:O}", key, value), text);
	expect_no_more(before_text, before, text, "an object with it");
	mutate(policy, n, key, json_string(dumped), text);
	expect_no_more(before_text, before, text, "it as a string");
	if (json_is_array(value) && json_array_size(value) > 0) {
		mutate(policy, n, key, json_deep_copy(json_array_get(value, 0)), text);
		expect_no_more(before_text, before, text, "its first element alone");
	}
	free(dumped);
}

static void
no_mutation_opens_anything(void **state)
{
	static struct reach before;
	char before_text[TEXT_MAX], text[TEXT_MAX];
	size_t keys = 0;

	(void)state;
	for (size_t p = 0; p < COUNT(policies); p++) {
		json_t *tree = tree_load(policies[p]), *object;
		const char *key;

		tree_text(tree, before_text);
		if (!reach_of(before_text, &before))
			fail_msg("%s", before_text);
		for (size_t n = 0;; n++) {
			size_t at = n;
			const json_t *value;

			if (!tree_find(tree, &at, &object, &key))
				break;
			value = json_object_get(object, key);
			keys++;
			slips_of_a_key(before_text, policies[p], n, key, value);
			doubled_key(before_text, policies[p], n, key, value);
			other_types(before_text, &before, policies[p], n, key, value);
			mutate(policies[p], n, key, NULL, text);
			if (!is_restriction(key))
				expect_no_more(before_text, &before, text, "a missing key");
		}
		json_decref(tree);
	}
	assert_true(keys > 80);
}

/* Deleting any one byte of a text, or one line, is either noticed or opens nothing, as far as words go. */
static void
lost_bytes_open_nothing(void **state)
{
	static const char text[] = "version: 1\n"
				   "allow:\n"
				   "  - host: \"a.example\"\n"
				   "    expires: \"2000-01-01T00:00:05Z\"\n"
				   "  - host: \"*.b.example\"\n"
				   "    subdomains: false\n"
				   "deny:\n"
				   "  - host: \"x.b.example\"\n";
	static struct reach before, after;
	char copy[sizeof(text)];

	(void)state;
	assert_true(reach_of(text, &before));
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		bool in_quotes = false;

		/* A letter of a name makes another name; everything else is structure. */
		for (size_t j = 0; j < i; j++)
			in_quotes = text[j] == '"' ? !in_quotes : in_quotes;
		if (in_quotes && text[i] != '"')
			continue;
		memcpy(copy, text, i);
		strcpy(copy + i, text + i + 1);
		if (!reach_of(copy, &after))
			continue;
		for (size_t q = 0; q < QUESTIONS; q++)
			if (after.uses[q] > before.uses[q])
				fail_msg("without byte %zu something opens:\n%s", i, copy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(no_mutation_opens_anything),
	    cmocka_unit_test(lost_bytes_open_nothing),
	};

	return cmocka_run_group_tests(tests, dirs_open, dirs_close);
}
