/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Allow within the bounds, minus deny, in the space of addresses and ports.
 *
 * Theory of operation. Per family and protocol each rule is a few boxes: an interval of addresses times one of ports
 * (spans). The ports at which any span begins or ends cut the port axis into steps, within which nothing changes; for
 * each step the allow intervals are united, those of the bounds and the deny intervals likewise, and then cut and taken
 * from each other in one pass each, since spans stay sorted by address. An interval that the step before had too is
 * grown along the ports instead of being repeated. Distinct steps, protocols and families cannot overlap, so the result
 * is disjoint by construction. */
#include "policy/compiled/ranges.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#define PORTS_ALL 65536u

struct span {
	unsigned __int128 first, last;
	uint32_t port_first, port_last;
	enum ranges_part part;
};

struct interval {
	unsigned __int128 first, last;
	size_t range; /* its place in ranges */
};

struct work {
	uint8_t family, proto;
	bool bounded;
	struct span *spans;
	size_t span_count;
	uint32_t *cuts; /* where steps begin; the last one is where the last step ends */
	size_t cut_count;
	struct interval *unions[RANGES_PART_MAX];
	struct interval *within;       /* allow within the bounds */
	struct interval *now, *before; /* of this step and the one before */
	size_t before_count;
	struct addr_range *ranges; /* the caller's */
	size_t range_count;
};

/* The address as a number. */
static unsigned __int128
addr_number(const struct addr *addr)
{
	unsigned __int128 number = 0;

	for (unsigned int i = 0; i < (addr->family == 4 ? 4u : 16u); i++)
		number = number << 8 | addr->bytes[i];
	return number;
}

/* Writes a number as an address of the family. */
static void
addr_set_number(struct addr *addr, uint8_t family, unsigned __int128 number)
{
	addr->family = family;
	for (unsigned int i = family == 4 ? 4 : 16; i-- > 0;) {
		addr->bytes[i] = (uint8_t)number;
		number >>= 8;
	}
}

/* Is the rule about the family and protocol of this pass? */
static bool
rule_takes_part(const struct work *work, const struct ranges_rule *rule)
{
	return rule->prefix.addr.family == work->family && (rule->proto == work->proto || rule->proto == 0);
}

/* Adds a rule's box with these ports, and its edges on the port axis. */
static void
span_add(struct work *work, const struct ranges_rule *rule, uint32_t port_first, uint32_t port_last)
{
	unsigned int free_bits = (work->family == 4 ? 32u : 128u) - rule->prefix.bits;
	unsigned __int128 first = addr_number(&rule->prefix.addr);
	unsigned __int128 hosts = free_bits == 128 ? ~(unsigned __int128)0 : ((unsigned __int128)1 << free_bits) - 1;

	work->spans[work->span_count++] = (struct span){first, first | hosts, port_first, port_last, rule->part};
	work->cuts[work->cut_count++] = port_first;
	work->cuts[work->cut_count++] = port_last + 1;
}

/* qsort: by first address. */
static int
span_compare(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* qsort: by port. */
static int
cut_compare(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Sorts the edges of steps and keeps each once. */
static void
cuts_sort(struct work *work)
{
	size_t kept = 0;

	qsort(work->cuts, work->cut_count, sizeof(work->cuts[0]), cut_compare);
	for (size_t i = 0; i < work->cut_count; i++)
		if (kept == 0 || work->cuts[kept - 1] != work->cuts[i])
			work->cuts[kept++] = work->cuts[i];
	work->cut_count = kept;
}

/* The union of one part's intervals within the step that begins at port; sorted, disjoint, not touching. */
static size_t
step_union(struct work *work, enum ranges_part part, uint32_t port)
{
	struct interval *list = work->unions[part];
	size_t count = 0;

	for (size_t i = 0; i < work->span_count; i++) {
		const struct span *span = &work->spans[i];

		if (span->part != part || span->port_first > port || span->port_last < port)
			continue;
		/* first - 1 cannot wrap: a span that begins at 0 is the first, or begins at or below the end before. */
		if (count > 0 && (span->first <= list[count - 1].last || span->first - 1 == list[count - 1].last)) {
			if (span->last > list[count - 1].last)
				list[count - 1].last = span->last;
			continue;
		}
		list[count++] = (struct interval){.first = span->first, .last = span->last};
	}
	return count;
}

/* within = what both lists hold. Returns how many intervals that are. */
static size_t
step_intersect(struct work *work, size_t allow_count, size_t bound_count)
{
	const struct interval *allow = work->unions[RANGES_ALLOW], *bound = work->unions[RANGES_BOUND];
	size_t count = 0, a = 0, b = 0;

	while (a < allow_count && b < bound_count) {
		unsigned __int128 first = allow[a].first > bound[b].first ? allow[a].first : bound[b].first;
		unsigned __int128 last = allow[a].last < bound[b].last ? allow[a].last : bound[b].last;

		if (first <= last)
			work->within[count++] = (struct interval){.first = first, .last = last};
		if (allow[a].last < bound[b].last)
			a++;
		else
			b++;
	}
	return count;
}

/* now = allow minus deny. Returns how many intervals are left. */
static size_t
step_subtract(struct work *work, const struct interval *allow, size_t allow_count, size_t deny_count)
{
	const struct interval *deny = work->unions[RANGES_DENY];
	size_t count = 0, d = 0;

	for (size_t a = 0; a < allow_count; a++) {
		unsigned __int128 first = allow[a].first;
		bool left = true;

		while (d < deny_count && deny[d].last < first)
			d++;
		for (size_t i = d; i < deny_count && deny[i].first <= allow[a].last; i++) {
			if (deny[i].first > first)
				work->now[count++] = (struct interval){.first = first, .last = deny[i].first - 1};
			left = deny[i].last < allow[a].last;
			if (!left)
				break;
			first = deny[i].last + 1;
		}
		if (left)
			work->now[count++] = (struct interval){.first = first, .last = allow[a].last};
	}
	return count;
}

/* now = what is open within the step that begins at port. */
static size_t
step_left(struct work *work, uint32_t port)
{
	const struct interval *allow = work->unions[RANGES_ALLOW];
	size_t allow_count = step_union(work, RANGES_ALLOW, port);
	size_t deny_count = step_union(work, RANGES_DENY, port);

	if (work->bounded) {
		allow_count = step_intersect(work, allow_count, step_union(work, RANGES_BOUND, port));
		allow = work->within;
	}
	return step_subtract(work, allow, allow_count, deny_count);
}

/* Appends a new range to the result. -1 when there are too many. */
static int
range_append(struct work *work, struct interval *interval, uint32_t port_first, uint32_t port_last, struct error *err)
{
	struct addr_range *range = &work->ranges[work->range_count];

	if (work->range_count == SNAPSHOT_RANGES_MAX)
		return error_set(err, ERROR_LIMIT,
		    "address rules come to more than %d separate ranges; use wider prefixes", SNAPSHOT_RANGES_MAX);
	memset(range, 0, sizeof(*range));
	addr_set_number(&range->first, work->family, interval->first);
	addr_set_number(&range->last, work->family, interval->last);
	range->proto = work->proto;
	range->port_first = (uint16_t)port_first;
	range->port_last = (uint16_t)port_last;
	interval->range = work->range_count++;
	return 0;
}

/* Writes out one step: intervals that the step before had are grown along the ports, others are appended. */
static int
step_emit(struct work *work, size_t count, uint32_t port_first, uint32_t port_last, struct error *err)
{
	struct interval *swap = work->before;
	size_t b = 0;

	for (size_t i = 0; i < count; i++) {
		struct interval *interval = &work->now[i];

		while (b < work->before_count && work->before[b].first < interval->first)
			b++;
		if (b < work->before_count && work->before[b].first == interval->first &&
		    work->before[b].last == interval->last) {
			interval->range = work->before[b].range;
			work->ranges[interval->range].port_last = (uint16_t)port_last;
		} else if (range_append(work, interval, port_first, port_last, err) < 0) {
			return -1;
		}
	}
	work->before = work->now;
	work->before_count = count;
	work->now = swap;
	return 0;
}

/* Computes the ranges of one family and protocol. */
static int
pass_run(struct work *work, const struct ranges_rule *rules, size_t count, struct error *err)
{
	bool any_allow = false;

	work->span_count = work->cut_count = work->before_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (!rule_takes_part(work, &rules[i]))
			continue;
		any_allow = any_allow || rules[i].part == RANGES_ALLOW;
		if (rules[i].port_count == 0)
			span_add(work, &rules[i], 1, PORTS_ALL - 1);
		for (size_t r = 0; r < rules[i].port_count; r++)
			span_add(work, &rules[i], rules[i].ports[r].first, rules[i].ports[r].last);
	}
	if (!any_allow)
		return 0;
	qsort(work->spans, work->span_count, sizeof(work->spans[0]), span_compare);
	cuts_sort(work);
	if ((uint64_t)work->span_count * work->cut_count > RANGES_WORK_MAX)
		return error_set(err, ERROR_LIMIT, "address rules name too many different ports for their number");
	for (size_t i = 0; i + 1 < work->cut_count; i++) {
		if (step_emit(work, step_left(work, work->cuts[i]), work->cuts[i], work->cuts[i + 1] - 1, err) < 0)
			return -1;
	}
	return 0;
}

/* Computes both families and both protocols. */
static int
passes_run(struct work *work, const struct ranges_rule *rules, size_t count, struct error *err)
{
	static const uint8_t families[] = {4, 6}, protos[] = {IPPROTO_TCP, IPPROTO_UDP};

	for (size_t f = 0; f < sizeof(families); f++) {
		for (size_t p = 0; p < sizeof(protos); p++) {
			work->family = families[f];
			work->proto = protos[p];
			if (pass_run(work, rules, count, err) < 0)
				return -1;
		}
	}
	return 0;
}

/* Allocates everything a pass may need. -1: no memory; work_free is still to be called. */
static int
work_make(struct work *work, size_t spans)
{
	bool ok = true;

	/* Cutting m intervals with n, or taking n from m, leaves at most n + m. */
	work->spans = calloc(spans, sizeof(*work->spans));
	work->cuts = calloc(2 * spans, sizeof(*work->cuts));
	work->within = calloc(2 * spans, sizeof(struct interval));
	work->now = calloc(3 * spans, sizeof(struct interval));
	work->before = calloc(3 * spans, sizeof(struct interval));
	for (size_t part = 0; part < RANGES_PART_MAX; part++) {
		work->unions[part] = calloc(spans, sizeof(struct interval));
		ok = ok && work->unions[part] != NULL;
	}
	return ok && work->spans != NULL && work->cuts != NULL && work->within != NULL && work->now != NULL &&
		work->before != NULL
	    ? 0
	    : -1;
}

/* Frees what work_make allocated. */
static void
work_free(struct work *work)
{
	free(work->spans);
	free(work->cuts);
	free(work->within);
	free(work->now);
	free(work->before);
	for (size_t part = 0; part < RANGES_PART_MAX; part++)
		free(work->unions[part]);
}

int
ranges_compute(const struct ranges_rule *rules, size_t count, bool bounded, struct addr_range *ret_ranges,
    size_t *ret_count, struct error *err)
{
	struct work work = {.ranges = ret_ranges, .bounded = bounded};
	size_t spans = 0;
	int result;

	for (size_t i = 0; i < count; i++)
		spans += rules[i].port_count == 0 ? 1 : rules[i].port_count;
	*ret_count = 0;
	if (spans == 0)
		return 0;
	if (work_make(&work, spans) < 0)
		result = error_set(err, ERROR_LIMIT, "no memory for %zu address ranges", spans);
	else
		result = passes_run(&work, rules, count, err);
	*ret_count = work.range_count;
	work_free(&work);
	return result;
}
