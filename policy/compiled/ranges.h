/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Interval algebra: allow rules by address, within the bounds, minus deny rules by address, as disjoint boxes for the
 * kernel's sets. */
#ifndef POSTERN_POLICY_RANGES_H
#define POSTERN_POLICY_RANGES_H

#include "base/error.h"
#include "policy/text/rule.h"
#include "policy/compiled/snapshot.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Spans looked at, summed over all port steps: bounds the time that a policy of many ports and addresses can cost. */
#define RANGES_WORK_MAX (1u << 27)

enum ranges_part { RANGES_ALLOW = 0, RANGES_DENY, RANGES_BOUND, RANGES_PART_MAX };

struct ranges_rule {
	struct prefix prefix;
	enum ranges_part part;
	uint8_t proto;                  /* 0: every protocol */
	uint8_t port_count;             /* 0: every port */
	const struct port_range *ports; /* not owned; sorted, disjoint */
};

/* Fill ret_ranges (SNAPSHOT_RANGES_MAX of them, padding zeroed, so that memcmp compares) with what the allow rules open
 * and no deny rule covers; when bounded, only where a bound covers it too. The same rules in the same order always give
 * the same result. 0, or -1 with ERROR_LIMIT. */
int ranges_compute(const struct ranges_rule *rules, size_t count, bool bounded, struct addr_range *ret_ranges,
    size_t *ret_count, struct error *err);

#endif
