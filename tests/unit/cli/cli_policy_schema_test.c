/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The published schema says what the parser says. A small validator of JSON Schema, just for the keywords that this one
 * uses, judges the same texts as policy_parse: what one structure check refuses the other refuses, and what the parser
 * takes the schema takes. Runs in the source tree's root, as tests/run does. */
#include "policy/text/policy.h"
#include "policy/text/policy_parse.h"

#include <glob.h>
#include <jansson.h>
#include <regex.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include <cmocka.h>

#define SCHEMA "configs/policy.schema.json"
#define HEAD "version: 1\n"
#define ENTRY HEAD "allow:\n  - host: a.example\n"

static json_t *schema;

static int
schema_load(void **state)
{
	json_error_t why;

	(void)state;
	schema = json_load_file(SCHEMA, JSON_REJECT_DUPLICATES, &why);
	if (schema == NULL)
		print_error(SCHEMA ":%d: %s\n", why.line, why.text);
	return schema == NULL ? -1 : 0;
}

static int
schema_free(void **state)
{
	(void)state;
	json_decref(schema);
	return 0;
}

/* ---- YAML as JSON ---- */

static json_t *
scalar_json(const yaml_node_t *node)
{
	const char *text = (const char *)node->data.scalar.value;
	size_t len = node->data.scalar.length;

	if (node->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
		return json_stringn(text, len);
	if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)
		return json_boolean(text[0] == 't');
	if (strcmp(text, "null") == 0 || strcmp(text, "~") == 0 || len == 0)
		return json_null();
	if (len < 19 && strspn(text, "0123456789") == len && (text[0] != '0' || len == 1))
		return json_integer(strtoll(text, NULL, 10));
	return json_stringn(text, len);
}

static json_t *
node_json(yaml_document_t *document, int index)
{
	const yaml_node_t *node = yaml_document_get_node(document, index);
	json_t *json;

	if (node->type == YAML_SCALAR_NODE)
		return scalar_json(node);
	if (node->type == YAML_SEQUENCE_NODE) {
		json = json_array();
		for (const int *item = node->data.sequence.items.start; item < node->data.sequence.items.top; item++)
			json_array_append_new(json, node_json(document, *item));
		return json;
	}
	json = json_object();
	for (const yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
	     pair++) {
		const yaml_node_t *key = yaml_document_get_node(document, pair->key);

		if (key->type == YAML_SCALAR_NODE)
			json_object_set_new(
			    json, (const char *)key->data.scalar.value, node_json(document, pair->value));
	}
	return json;
}

/* NULL when it is no YAML, or none that JSON can say. */
static json_t *
text_json(const char *text)
{
	yaml_parser_t parser;
	yaml_document_t document;
	json_t *json = NULL;

	assert_true(yaml_parser_initialize(&parser));
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
	if (yaml_parser_load(&parser, &document)) {
		if (yaml_document_get_root_node(&document) != NULL)
			json = node_json(&document, 1);
		yaml_document_delete(&document);
	}
	yaml_parser_delete(&parser);
	return json;
}

/* ---- the validator ---- */

static bool is_valid(const json_t *rule, const json_t *value);

static bool
type_matches(const char *type, const json_t *value)
{
	if (strcmp(type, "object") == 0)
		return json_is_object(value);
	if (strcmp(type, "array") == 0)
		return json_is_array(value);
	if (strcmp(type, "string") == 0)
		return json_is_string(value);
	if (strcmp(type, "integer") == 0)
		return json_is_integer(value);
	if (strcmp(type, "boolean") == 0)
		return json_is_boolean(value);
	fail_msg("the test's validator knows no type %s", type);
	return false;
}

static bool
pattern_matches(const char *pattern, const char *text)
{
	regex_t regex;
	bool matches;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		fail_msg("not a pattern for both ECMA-262 and POSIX: %s", pattern);
	matches = regexec(&regex, text, 0, NULL, 0) == 0;
	regfree(&regex);
	return matches;
}

static size_t
count_valid(const json_t *rules, const json_t *value)
{
	size_t count = 0, i;
	json_t *rule;

	json_array_foreach(rules, i, rule) count += is_valid(rule, value);
	return count;
}

static bool
has_all(const json_t *value, const json_t *keys)
{
	const json_t *key;
	size_t i;

	json_array_foreach(keys, i, key)
	{
		if (json_object_get(value, json_string_value(key)) == NULL)
			return false;
	}
	return true;
}

static bool
object_is_valid(const json_t *rule, const json_t *value)
{
	json_t *properties = json_object_get(rule, "properties"), *item;
	bool closed = json_is_false(json_object_get(rule, "additionalProperties"));
	const char *key;

	if (!has_all(value, json_object_get(rule, "required")))
		return false;
	json_object_foreach(json_object_get(rule, "dependentRequired"), key, item)
	{
		if (json_object_get(value, key) != NULL && !has_all(value, item))
			return false;
	}
	if (json_object_size(value) < (size_t)json_integer_value(json_object_get(rule, "minProperties")))
		return false;
	json_object_foreach((json_t *)(uintptr_t)value, key, item)
	{
		json_t *property = json_object_get(properties, key);

		if (property == NULL ? closed : !is_valid(property, item))
			return false;
	}
	return true;
}

static bool
array_is_valid(const json_t *rule, const json_t *value)
{
	const json_t *items = json_object_get(rule, "items"), *most = json_object_get(rule, "maxItems");
	size_t count = json_array_size(value);

	if (count < (size_t)json_integer_value(json_object_get(rule, "minItems")) ||
	    (most != NULL && count > (size_t)json_integer_value(most)))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (items != NULL && !is_valid(items, json_array_get(value, i)))
			return false;
		for (size_t j = 0; j < i && json_is_true(json_object_get(rule, "uniqueItems")); j++)
			if (json_equal(json_array_get(value, i), json_array_get(value, j)))
				return false;
	}
	return true;
}

static bool
scalar_is_valid(const json_t *rule, const json_t *value)
{
	const json_t *least = json_object_get(rule, "minimum"), *most = json_object_get(rule, "maximum");
	const json_t *pattern = json_object_get(rule, "pattern"), *shortest = json_object_get(rule, "minLength");

	if (json_is_integer(value))
		return (least == NULL || json_integer_value(value) >= json_integer_value(least)) &&
		    (most == NULL || json_integer_value(value) <= json_integer_value(most));
	if (!json_is_string(value))
		return true;
	if (shortest != NULL && json_string_length(value) < (size_t)json_integer_value(shortest))
		return false;
	return pattern == NULL || pattern_matches(json_string_value(pattern), json_string_value(value));
}

static bool
choices_are_valid(const json_t *rule, const json_t *value)
{
	const json_t *constant = json_object_get(rule, "const"), *choices = json_object_get(rule, "enum"), *item;
	const json_t *condition = json_object_get(rule, "if");
	size_t i;
	bool chosen = choices == NULL;

	if (constant != NULL && !json_equal(constant, value))
		return false;
	json_array_foreach(choices, i, item) chosen = chosen || json_equal(item, value);
	if (!chosen)
		return false;
	if (json_object_get(rule, "anyOf") != NULL && count_valid(json_object_get(rule, "anyOf"), value) == 0)
		return false;
	if (json_object_get(rule, "oneOf") != NULL && count_valid(json_object_get(rule, "oneOf"), value) != 1)
		return false;
	return condition == NULL || !is_valid(condition, value) || is_valid(json_object_get(rule, "then"), value);
}

static bool
is_valid(const json_t *rule, const json_t *value)
{
	static const char *const known[] = {"$schema", "$id", "$defs", "$ref", "title", "description", "default",
	    "type", "additionalProperties", "required", "dependentRequired", "properties", "minProperties", "items",
	    "minItems", "maxItems", "uniqueItems", "pattern", "minLength", "minimum", "maximum", "const", "enum",
	    "anyOf", "oneOf", "if", "then"};
	const json_t *type = json_object_get(rule, "type"), *reference = json_object_get(rule, "$ref"), *item;
	const char *key;

	json_object_foreach((json_t *)(uintptr_t)rule, key, item)
	{
		size_t k = 0;

		while (k < sizeof(known) / sizeof(known[0]) && strcmp(known[k], key) != 0)
			k++;
		if (k == sizeof(known) / sizeof(known[0]))
			fail_msg("the test's validator knows no keyword %s", key);
	}
	if (reference != NULL) {
		json_t *target = json_object_get(
		    json_object_get(schema, "$defs"), json_string_value(reference) + strlen("#/$defs/"));

		assert_non_null(target);
		if (!is_valid(target, value))
			return false;
	}
	if (type != NULL && !type_matches(json_string_value(type), value))
		return false;
	if (json_is_object(value) && !object_is_valid(rule, value))
		return false;
	if (json_is_array(value) && !array_is_valid(rule, value))
		return false;
	return scalar_is_valid(rule, value) && choices_are_valid(rule, value);
}

/* ---- the comparison ---- */

static bool
schema_takes(const char *text)
{
	json_t *value = text_json(text);
	bool taken = value != NULL && is_valid(schema, value);

	json_decref(value);
	return taken;
}

static bool
parser_takes(const char *text, struct error *err)
{
	struct policy policy;

	if (policy_parse(text, strlen(text), "p.yaml", &policy, err) < 0)
		return false;
	policy_free(&policy);
	return true;
}

static void
expect_taken(const char *text)
{
	struct error err;

	if (!parser_takes(text, &err))
		fail_msg("\n%s\n%s", text, err.text);
	if (!schema_takes(text))
		fail_msg("the schema refuses\n%s", text);
}

static void
expect_refused(const char *text)
{
	struct error err;

	if (parser_takes(text, &err))
		fail_msg("the parser takes\n%s", text);
	if (schema_takes(text))
		fail_msg("the schema takes\n%s", text);
}

/* What is left when any one line is missing is judged alike, as far as a schema can judge. */
static void
expect_agreement_without_a_line(const char *text)
{
	char *copy = malloc(strlen(text) + 1);

	assert_non_null(copy);
	for (const char *line = text; *line != '\0';) {
		const char *end = strchr(line, '\n'), *next = end == NULL ? line + strlen(line) : end + 1;
		struct error err;

		memcpy(copy, text, (size_t)(line - text));
		strcpy(copy + (line - text), next);
		if (parser_takes(copy, &err) && !schema_takes(copy))
			fail_msg("the parser takes, the schema refuses\n%s", copy);
		line = next;
	}
	free(copy);
}

static void
shipped_policies_are_taken(void **state)
{
	static const char *const patterns[] = {"configs/policies/*.yaml", "configs/presets/*.yaml"};

	(void)state;
	for (size_t p = 0; p < sizeof(patterns) / sizeof(patterns[0]); p++) {
		glob_t files;

		assert_int_equal(glob(patterns[p], 0, NULL, &files), 0);
		for (size_t i = 0; i < files.gl_pathc; i++) {
			FILE *file = fopen(files.gl_pathv[i], "re");
			char text[65536];
			size_t len;

			assert_non_null(file);
			len = fread(text, 1, sizeof(text) - 1, file);
			fclose(file);
			text[len] = '\0';
			expect_taken(text);
			expect_agreement_without_a_line(text);
		}
		globfree(&files);
	}
}

static void
good_texts_are_taken(void **state)
{
	static const char *const texts[] = {HEAD, "{\"version\": 1}",
	    HEAD "name: read-the-news\nmode: learn\nech: deny\n",
	    HEAD "include: [preset:npm, preset:doh-deny]\nallow: []\ndeny: []\n",
	    HEAD "limits:\n  connections: 256\n  new_connections_per_minute: {soft: 1, hard: 2}\n"
		 "  dns_queries_per_second: 50\n  unique_names_per_minute: {hard: 100}\n  upload: 50MiB\n"
		 "  download: {soft: 1GB, hard: 2GiB}\n",
	    ENTRY "    ports: [22, \"8000-8010\", 443]\n", ENTRY "    ports: 22\n", ENTRY "    ports: 8000-8010\n",
	    ENTRY "    ports: 5000\n    udp: true\n", ENTRY "    subdomains: true\n    shared: true\n",
	    ENTRY "    expires: 2h\n    uses: 3\n    limits: {upload: 1MiB, connections: 2}\n",
	    ENTRY "    expires: 2026-12-01T10:00Z\n", ENTRY "    expires: \"2026-12-01T10:00:00.5+01:00\"\n",
	    ENTRY "    expires: 1w2d3h4m5s\n",
	    ENTRY "    limits: {upload: \"1MiB\", download: {soft: \"1kB\", hard: 1MB}}\n",
	    HEAD "allow:\n  - host: '*.a.example'\n    subdomains: false\n",
	    HEAD "allow:\n  - cidr: 140.82.112.0/20\n    ports: [22]\n  - cidr: 2600:1f00::/24\n    ports: 443\n"
		 "    shared: false\n",
	    HEAD "deny:\n  - country: KP\n  - asn: 64500\n    ports: 25\n  - cidr: 10.0.0.0/8\n  - host: '*.com'\n"
		 "  - host: b.example\n    udp: true\n    expires: 5m\n    subdomains: true\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		expect_taken(texts[i]);
		expect_agreement_without_a_line(texts[i]);
	}
}

static void
bad_texts_are_refused(void **state)
{
	static const char *const texts[] = {"{}", "[]", "version\n", "allow: []\n", "version: 2\n", "version: \"1\"\n",
	    HEAD "alow: []\n", HEAD "name: a b\n", HEAD "name: ''\n", HEAD "name: [x]\n", HEAD "name: -x\n",
	    HEAD "mode: audit\n", HEAD "mode: true\n", HEAD "ech: yes\n", HEAD "include: preset:npm\n",
	    HEAD "include: [npm]\n", HEAD "include: [preset:../x]\n", HEAD "include: [preset:a, preset:a]\n",
	    HEAD "include: null\n", HEAD "limits: {}\n", HEAD "limits: 5\n", HEAD "limits: {upload: 0}\n",
	    HEAD "limits: {upload: 50M}\n", HEAD "limits: {upload: \"50\"}\n", HEAD "limits: {upload: 1.5GiB}\n",
	    HEAD "limits: {connections: 1KiB}\n", HEAD "limits: {connections: {soft: 1}}\n",
	    HEAD "limits: {connections: {hard: 1, max: 2}}\n", HEAD "limits: {uploads: 1}\n",
	    HEAD "limits: {connections: 1000000001}\n", HEAD "limits: {upload: 1125899906842625}\n",
	    HEAD "allow: null\n", HEAD "allow: all\n", HEAD "allow: {host: a.example}\n", HEAD "allow: [a.example]\n",
	    HEAD "allow: [{}]\n", HEAD "allow: [[]]\n", HEAD "allow:\n  - ports: [22]\n", ENTRY "    port: 22\n",
	    ENTRY "    cidr: 1.1.1.1\n", ENTRY "    ports: []\n", ENTRY "    ports: [0]\n", ENTRY "    ports: 65536\n",
	    ENTRY "    ports: 022\n", ENTRY "    ports: all\n", ENTRY "    ports: [[22]]\n",
	    ENTRY "    ports: \"22,23\"\n", ENTRY "    udp: yes\n", ENTRY "    udp: true\n",
	    ENTRY "    subdomains: 1\n", ENTRY "    shared: \"true\"\n", ENTRY "    uses: 0\n",
	    ENTRY "    uses: 1000001\n", ENTRY "    uses: once\n", ENTRY "    uses: \"1\"\n", ENTRY "    expires: 2\n",
	    ENTRY "    expires: 2026-12-01\n", ENTRY "    expires: never\n", ENTRY "    expires: 30m1h\n",
	    ENTRY "    expires: 1999-12-01T10:00:00Z\n", ENTRY "    limits: {}\n",
	    ENTRY "    limits: {dns_queries_per_second: 1}\n", ENTRY "    country: KP\n",
	    HEAD "allow:\n  - host: https://a.example\n", HEAD "allow:\n  - host: a.example:443\n",
	    HEAD "allow:\n  - host: a*.example\n", HEAD "allow:\n  - host: me@a.example\n",
	    HEAD "allow:\n  - host: ''\n", HEAD "allow:\n  - host: '*.a.example'\n    subdomains: true\n",
	    HEAD "allow:\n  - cidr: 1.1.1.1\n", HEAD "allow:\n  - cidr: 1.1.1.1\n    ports: 443\n    shared: true\n",
	    HEAD "allow:\n  - cidr: x\n    ports: 443\n", HEAD "allow:\n  - country: KP\n    ports: 443\n",
	    HEAD "allow:\n  - asn: 64500\n    ports: 443\n", HEAD "deny:\n  - country: DEU\n",
	    HEAD "deny:\n  - asn: 0\n", HEAD "deny:\n  - asn: AS64500\n", HEAD "deny:\n  - asn: 4294967296\n",
	    HEAD "deny:\n  - host: a.example\n    uses: 3\n",
	    HEAD "deny:\n  - host: a.example\n    limits: {upload: 1}\n", HEAD "deny:\n  - asn: 1\n    country: KP\n",
	    HEAD "deny:\n  - asn: 1\n    subdomains: true\n"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		expect_refused(texts[i]);
}

/* ---- the keys ---- */

static json_t *
defined(const char *name)
{
	json_t *definition = json_object_get(json_object_get(schema, "$defs"), name);

	assert_non_null(definition);
	return json_object_get(definition, "properties");
}

static void
expect_keys(const struct events_keys *keys, const json_t *properties, const json_t *more)
{
	size_t known = json_object_size(properties);
	const json_t *item;
	const char *key;

	for (size_t i = 0; i < keys->count; i++)
		if (json_object_get(properties, keys->keys[i].word) == NULL &&
		    json_object_get(more, keys->keys[i].word) == NULL)
			fail_msg("the schema does not know %s", keys->keys[i].word);
	json_object_foreach((json_t *)(uintptr_t)more, key, item) known += json_object_get(properties, key) == NULL;
	assert_int_equal(known, keys->count);
}

/* The kinds of limits, all or those of rules. */
static void
expect_limits(bool of_rules, const json_t *properties)
{
	struct events_key words[LIMIT_KIND_MAX];
	struct events_keys keys = {words, 0};

	for (unsigned int kind = 0; kind < LIMIT_KIND_MAX; kind++)
		if (!of_rules || limits_kind_is_of_rules((enum limit_kind)kind))
			words[keys.count++] = (struct events_key){.word = limits_kind_text(kind)};
	expect_keys(&keys, properties, NULL);
}

static void
keys_are_the_same(void **state)
{
	json_t *pair = json_array_get(
	    json_object_get(json_object_get(json_object_get(schema, "$defs"), "countLimit"), "anyOf"), 1);

	(void)state;
	expect_keys(&policy_parse_root_keys, json_object_get(schema, "properties"), NULL);
	expect_keys(&policy_parse_entry_keys, defined("allowEntry"), defined("denyEntry"));
	expect_limits(false, defined("limits"));
	expect_limits(true, defined("ruleLimits"));
	expect_keys(&policy_parse_limits_pair_keys, json_object_get(pair, "properties"), NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(shipped_policies_are_taken),
	    cmocka_unit_test(good_texts_are_taken),
	    cmocka_unit_test(bad_texts_are_refused),
	    cmocka_unit_test(keys_are_the_same),
	};

	return cmocka_run_group_tests(tests, schema_load, schema_free);
}
