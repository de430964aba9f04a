/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names, addresses, prefixes and the one-word form of rules: what is accepted is canonical and survives printing. */
#include "policy/text/rule.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
expect_canonical(const struct name *name)
{
	struct name again;

	if (name->len == 0 || name->len > NAME_TEXT_MAX || strlen(name->text) != name->len)
		abort();
	if (name_canonical(name->text, name->len, &again) != NAME_OK || memcmp(name, &again, sizeof(again)) != 0)
		abort();
	/* A name is never an address, whoever reads it. */
	if (addr_parse(name->text, name->len, &(struct addr){.family = 0}))
		abort();
	(void)name_never(name);
}

/* The name's wire form reads back to it. */
static void
expect_wire(const struct name *name)
{
	uint8_t wire[NAME_TEXT_MAX + 2] = {0};
	size_t label = 0;
	struct name again;

	for (size_t i = 0; i < name->len; i++) {
		if (name->text[i] == '.') {
			wire[label] = (uint8_t)(i - label);
			label = i + 1;
		} else {
			wire[i + 1] = (uint8_t)name->text[i];
		}
	}
	wire[label] = (uint8_t)(name->len - label);
	if (name_from_wire(wire, name->len + 2u, &again) != NAME_OK || !name_equal(name, &again))
		abort();
}

static void
try_rule(enum rule_action action, const char *word)
{
	struct error err = {.code = ERROR_NONE};
	char text[RULE_TEXT_MAX];
	struct rule rule, again;

	if (rule_parse(action, word, &rule, &err) < 0) {
		if (err.code != ERROR_POLICY || err.text[0] == '\0')
			abort();
		return;
	}
	if (rule_parse(action, rule_format(&rule, text), &again, &err) < 0 || !rule_equal(&rule, &again))
		abort();
}

static void
try_prefix(const char *text, size_t len)
{
	const struct never_prefix *row = NULL;
	struct prefix prefix, again;
	char printed[ADDR_TEXT_MAX + 4];

	if (!addr_prefix_parse(text, len, &prefix))
		return;
	addr_prefix_format(&prefix, printed);
	if (!addr_prefix_parse(printed, strlen(printed), &again) || memcmp(&prefix, &again, sizeof(prefix)) != 0)
		abort();
	if (addr_prefix_touches_never(&prefix, &row) != (row != NULL))
		abort();
	/* The first address of a prefix that touches nothing is a good one, but for ISATAP ids inside a short prefix.
	 */
	if (row == NULL && addr_never(&prefix.addr) != NULL && (prefix.addr.family == 4 || prefix.bits >= 96))
		abort();
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct name name;
	char *word;

	if (name_canonical(bytes, len, &name) == NAME_OK) {
		expect_canonical(&name);
		expect_wire(&name);
	}
	if (name_from_wire(bytes, len, &name) == NAME_OK)
		expect_canonical(&name);
	if (name_from_user((const char *)bytes, len, &name) == NAME_OK)
		expect_canonical(&name);
	try_prefix((const char *)bytes, len);
	word = malloc(len + 1);
	if (word == NULL)
		return 0;
	memcpy(word, bytes, len);
	word[len] = '\0';
	try_rule(RULE_ALLOW, word);
	try_rule(RULE_DENY, word);
	free(word);
	return 0;
}
