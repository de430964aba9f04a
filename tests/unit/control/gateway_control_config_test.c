/* SPDX-License-Identifier: GPL-3.0-or-later */
/* attachment.json comes back as it was stored, or not at all; what labels may be. */
#include "gateway/control/control_config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void
an_attachment_comes_back_as_stored(void **state)
{
	struct control_sandbox *one = control_sandbox_new("box1"), *two = control_sandbox_new("box1");
	struct error err;
	char *text;

	(void)state;
	one->id = 17;
	one->uid = 1000;
	one->config.kind = TAP_KIND_NETNS;
	snprintf(one->config.ifname, sizeof(one->config.ifname), "net1");
	assert_true(addr_parse("172.20.1.9", strlen("172.20.1.9"), &one->config.guest4));
	assert_true(addr_parse("172.20.1.1", strlen("172.20.1.1"), &one->config.router4));
	one->config.bits4 = 24;
	memcpy(one->config.guest_mac, "\x06\x01\x02\x03\x04\xff", 6);
	snprintf(one->netns_source, sizeof(one->netns_source), "/run/netns/a \"b\"");
	one->netns_dev = 4;
	one->netns_ino = 4026531840;
	one->generation = 3;
	one->last_generation = 5;
	snprintf(one->hash, sizeof(one->hash), "abc");
	snprintf(one->policy_file, sizeof(one->policy_file), "p.yaml");
	text = control_config_format_attachment(one);
	assert_int_equal(control_config_parse_attachment(two, text, strlen(text), &err), 0);
	assert_memory_equal(&one->config.guest4, &two->config.guest4, sizeof(one->config.guest4));
	assert_memory_equal(&one->config.router6, &two->config.router6, sizeof(one->config.router6));
	assert_memory_equal(one->config.guest_mac, two->config.guest_mac, 6);
	assert_string_equal(two->config.ifname, "net1");
	assert_string_equal(two->netns_source, "/run/netns/a \"b\"");
	assert_int_equal(two->id, 17);
	assert_int_equal(two->netns_ino, 4026531840);
	assert_int_equal(two->generation, 3);
	assert_int_equal(two->last_generation, 5);
	assert_string_equal(two->policy_file, "p.yaml");
	free(text);
	control_sandbox_free(one);
	control_sandbox_free(two);
}

static void
a_damaged_attachment_is_refused(void **state)
{
	struct control_sandbox *good = control_sandbox_new("vm1");
	struct error err;
	char *text;

	(void)state;
	good->id = 17;
	text = control_config_format_attachment(good);
	for (size_t len = 0; len < strlen(text); len++) {
		struct control_sandbox *cut = control_sandbox_new("vm1");

		/* Cut anywhere it is no JSON object any more. */
		assert_int_equal(control_config_parse_attachment(cut, text, len, &err), -1);
		assert_int_equal(err.code, ERROR_CORRUPT);
		assert_int_equal(cut->id, 0);
		control_sandbox_free(cut);
	}
	control_sandbox_free(good);
	good = control_sandbox_new("other"); /* copied from another folder */
	assert_int_equal(control_config_parse_attachment(good, text, strlen(text), &err), -1);
	control_sandbox_free(good);
	free(text);
}

/* As many labels as may be, as long as may be. */
static json_t *
many_labels(size_t count, size_t value_len)
{
	json_t *labels = json_object();
	char key[CONTROL_LABEL_KEY_MAX + 1], value[CONTROL_LABEL_VALUE_MAX + 2];

	memset(value, 'v', sizeof(value));
	for (size_t i = 0; i < count; i++) {
		snprintf(key, sizeof(key), "key-%zu", i);
		json_object_set_new(labels, key, json_stringn(value, value_len));
	}
	return labels;
}

static int
parse_labels(json_t *labels, const char *part)
{
	struct error err = {0};
	json_t *copy = NULL;
	int rc = control_config_parse_labels(labels, &copy, &err);

	if (rc < 0 && strstr(err.text, part) == NULL)
		print_message("'%s', expected '%s' in it\n", err.text, part);
	if (rc < 0)
		assert_non_null(strstr(err.text, part));
	else
		assert_int_equal(json_object_size(copy), json_object_size(labels));
	json_decref(copy);
	json_decref(labels);
	return rc;
}

static void
labels_have_limits(void **state)
{
	char key[CONTROL_LABEL_KEY_MAX + 2];

	(void)state;
	assert_int_equal(parse_labels(json_object(), ""), 0);
	assert_int_equal(parse_labels(json_pack("{s:s}", "a", ""), ""), 0);
	assert_int_equal(parse_labels(many_labels(CONTROL_LABELS_MAX, 100), ""), 0);
	assert_int_equal(parse_labels(many_labels(CONTROL_LABELS_MAX + 1, 1), "more than 16"), -1);
	assert_int_equal(parse_labels(many_labels(1, CONTROL_LABEL_VALUE_MAX), ""), 0);
	assert_int_equal(parse_labels(many_labels(1, CONTROL_LABEL_VALUE_MAX + 1), "longer than 128"), -1);
	assert_int_equal(parse_labels(many_labels(CONTROL_LABELS_MAX, CONTROL_LABEL_VALUE_MAX), "together"), -1);
	assert_int_equal(parse_labels(json_pack("{s:s}", "Task", "1"), "label 'Task'"), -1);
	assert_int_equal(parse_labels(json_pack("{s:s}", "", "1"), "a key is"), -1);
	assert_int_equal(parse_labels(json_pack("{s:s}", "a b", "1"), "a key is"), -1);
	assert_int_equal(parse_labels(json_pack("{s:i}", "a", 1), "must be a string"), -1);
	assert_int_equal(parse_labels(json_pack("{s:s}", "a", "x\x1b[2J"), "printable"), -1);
	assert_int_equal(parse_labels(json_pack("{s:s}", "a", "caf\xc3\xa9"), "printable"), -1);
	memset(key, 'k', sizeof(key));
	key[sizeof(key) - 1] = '\0';
	assert_int_equal(parse_labels(json_pack("{s:s}", key + 1, "1"), ""), 0);
	assert_int_equal(parse_labels(json_pack("{s:s}", key, "1"), "a key is"), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(an_attachment_comes_back_as_stored),
	    cmocka_unit_test(a_damaged_attachment_is_refused),
	    cmocka_unit_test(labels_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
