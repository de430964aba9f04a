/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiled blocks from a hostile maker: what opens must answer every question within its bounds and come to an end.
 *
 * The size that a block states is corrected before it is opened, so that inputs of other lengths get further. */
#include "policy/compiled/snapshot_format.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define PORTS_MAX 128
/* The questions' time; deadlines lie on both sides of it. */
#define NOW_US INT64_C(1000000)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static int
block_make(const uint8_t *bytes, size_t len)
{
	uint64_t size = len;
	int fd = memfd_create("fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	if (len >= sizeof(struct snap_header) &&
	    pwrite(fd, &size, sizeof(size), offsetof(struct snap_header, size)) != sizeof(size))
		abort();
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		abort();
	return fd;
}

/* Let through, or it would be while learning. */
static bool
is_open(struct decision decision)
{
	return decision.verdict == VERDICT_ALLOWED || decision.learnable;
}

static void
ask_name(const struct snapshot *s, const char *text, size_t len)
{
	static const uint16_t ports[] = {0, 22, 80, 443, 5000, 65535};
	struct proto_port open[PORTS_MAX];
	struct decision decision;
	struct name name;
	size_t count;

	if (name_canonical(text, len, &name) != NAME_OK)
		return;
	decision = snapshot_ports_any(s, &name, NOW_US);
	count = snapshot_ports_list(s, &name, open, PORTS_MAX, NOW_US);
	if (count > PORTS_MAX || (count > 0 && !is_open(decision)))
		abort();
	if (count == 0 && decision.verdict == VERDICT_ALLOWED)
		abort();
	if (decision.learnable && snapshot_mode(s) != POLICY_MODE_LEARN)
		abort();
	for (size_t i = 0; i < count; i++)
		if (!is_open(snapshot_decide_host(s, &name, open[i].proto, open[i].port, NOW_US)))
			abort();
	for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++) {
		decision = snapshot_decide_host(s, &name, i % 2 == 0 ? IPPROTO_TCP : IPPROTO_UDP, ports[i], NOW_US);
		(void)strlen(snapshot_rule_text(s, decision.rule));
		(void)strlen(snapshot_rule_origin(s, decision.rule));
	}
}

/* Every rule's own name, and one below it. */
static void
ask_rules(const struct snapshot *s)
{
	for (uint32_t i = 0; i < snapshot_rule_count(s); i++) {
		const struct snap_rule *rule = &s->view.rules[i];
		char below[NAME_TEXT_MAX + 3] = "a.";

		if (rule->kind == SNAP_COUNTRY || rule->kind == SNAP_ASN) {
			struct addr_place place = {"XX", rule->place};

			(void)snapshot_decide_place(s, &place, IPPROTO_TCP, 443, NOW_US);
			(void)snapshot_decide_place(s, &(struct addr_place){"", 0}, IPPROTO_TCP, 443, NOW_US);
			continue;
		}
		if (rule->kind == SNAP_CIDR) {
			(void)snapshot_decide_addr(s, &rule->prefix.addr, IPPROTO_TCP, 443, NOW_US);
			(void)snapshot_decide_addr(s, &rule->prefix.addr, IPPROTO_UDP, 5000, NOW_US);
			continue;
		}
		ask_name(s, s->view.strings + rule->name, rule->name_len);
		memcpy(below + 2, s->view.strings + rule->name, rule->name_len);
		ask_name(s, below, rule->name_len + 2u);
	}
}

/* The kernel would get these: they must be open by decision too, unless the never list or a range's inside says no. */
static void
expect_ranges(const struct snapshot *s)
{
	size_t count;
	const struct addr_range *ranges = snapshot_ranges(s, &count);

	for (size_t i = 0; i < count; i++) {
		/* A deadline that is over leaves its range in the block; the gateway refuses what comes. */
		struct decision decision =
		    snapshot_decide_addr(s, &ranges[i].first, ranges[i].proto, ranges[i].port_first, NOW_US);

		if (!is_open(decision) && decision.reason != REASON_NEVER_ADDRESS &&
		    decision.lapsed == SNAPSHOT_NO_RULE && !decision.out_of_bounds)
			abort();
		if (ranges[i].first.family != ranges[i].last.family || ranges[i].port_first > ranges[i].port_last)
			abort();
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct error err = {.code = ERROR_NONE};
	struct snapshot *s;
	char hash[65];
	int fd = block_make(bytes, len);

	s = snapshot_open(fd, &err);
	close(fd);
	if (s == NULL) {
		if (err.code != ERROR_CORRUPT)
			abort();
		return 0;
	}
	ask_name(s, "example.com", 11);
	ask_name(s, "a.b.c.d.e.f.example", 19);
	ask_rules(s);
	expect_ranges(s);
	snapshot_hash(s, hash);
	(void)snapshot_ech(s);
	snapshot_free(s);
	return 0;
}
