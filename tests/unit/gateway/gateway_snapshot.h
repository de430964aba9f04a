/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policies as a gateway has them, for its tests. */
#ifndef POSTERN_TESTS_UNIT_GATEWAY_SNAPSHOT_H
#define POSTERN_TESTS_UNIT_GATEWAY_SNAPSHOT_H

#include "policy/text/policy.h"
#include "policy/compiled/snapshot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The policy compiled, and freed. The caller frees the snapshot. */
static inline struct snapshot *
snapshot_of_own(struct policy *policy)
{
	struct snapshot *snapshot;
	struct error err;
	int fd = snapshot_compile(policy, &err);

	assert_true(fd >= 0);
	snapshot = snapshot_open(fd, &err);
	assert_non_null(snapshot);
	close(fd);
	policy_free(policy);
	return snapshot;
}

/* The same of words of the one-word form, up to NULL; a leading '-' denies, "ech" sets ech: deny. */
static inline struct snapshot *
snapshot_of_words(const char *const *words)
{
	struct policy policy;
	struct error err;

	policy_init(&policy);
	for (; *words != NULL; words++) {
		struct rule rule;
		bool deny = **words == '-';

		if (strcmp(*words, "ech") == 0) {
			policy.ech = POLICY_ECH_DENY;
			policy.ech_set = true;
			continue;
		}
		if (rule_parse(deny ? RULE_DENY : RULE_ALLOW, *words + (deny ? 1 : 0), &rule, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(policy_add(&policy, &rule, &err), 0);
	}
	return snapshot_of_own(&policy);
}

#endif
