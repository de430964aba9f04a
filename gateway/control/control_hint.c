/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_hint.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

/* More are told as "and more". */
#define HINT_PORTS_MAX 8

/* The name is right, the port is not. */
static bool
hint_ports(const struct snapshot *snapshot, const struct name *name, int64_t now_us, char ret_text[CONTROL_HINT_MAX])
{
	struct proto_port ports[HINT_PORTS_MAX + 1];
	size_t count = snapshot_host_ports(snapshot, name, ports, HINT_PORTS_MAX + 1, now_us), len;

	if (count == 0)
		return false;
	len = (size_t)snprintf(ret_text, CONTROL_HINT_MAX, "of %s these ports are allowed: ", name->text);
	for (size_t i = 0; i < count && i < HINT_PORTS_MAX; i++)
		len += (size_t)snprintf(ret_text + len, CONTROL_HINT_MAX - len, "%s%u%s", i == 0 ? "" : ", ",
		    ports[i].port, ports[i].proto == IPPROTO_UDP ? "/udp" : "");
	if (count > HINT_PORTS_MAX)
		snprintf(ret_text + len, CONTROL_HINT_MAX - len, " and more");
	return true;
}

/* The rule that lets a name be resolved, SNAPSHOT_NO_RULE if none does. */
static uint32_t
hint_rule(const struct snapshot *snapshot, const char *text, size_t len, int64_t now_us)
{
	struct decision decision;
	struct name name;

	if (name_canonical(text, len, &name) != NAME_OK)
		return SNAPSHOT_NO_RULE;
	decision = snapshot_decide_dns(snapshot, &name, now_us);
	return decision.verdict == VERDICT_ALLOWED ? decision.rule : SNAPSHOT_NO_RULE;
}

/* Names below it are allowed, as by "*.example.com". */
static bool
hint_below(const struct snapshot *snapshot, const struct name *name, int64_t now_us, char ret_text[CONTROL_HINT_MAX])
{
	char below[NAME_TEXT_MAX + sizeof("x.")];
	int len = snprintf(below, sizeof(below), "x.%s", name->text);
	uint32_t rule = hint_rule(snapshot, below, (size_t)len, now_us);

	if (rule == SNAPSHOT_NO_RULE)
		return false;
	snprintf(ret_text, CONTROL_HINT_MAX, "%s (%s) is about names below %s, not about itself",
	    snapshot_rule_text(snapshot, rule), snapshot_rule_origin(snapshot, rule), name->text);
	return true;
}

/* A name above it is allowed, and that one alone. */
static bool
hint_above(const struct snapshot *snapshot, const struct name *name, int64_t now_us, char ret_text[CONTROL_HINT_MAX])
{
	for (const char *dot = strchr(name->text, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
		uint32_t rule = hint_rule(snapshot, dot + 1, strlen(dot + 1), now_us);

		if (rule == SNAPSHOT_NO_RULE)
			continue;
		snprintf(ret_text, CONTROL_HINT_MAX, "%s (%s) is about %s alone, not about names below it",
		    snapshot_rule_text(snapshot, rule), snapshot_rule_origin(snapshot, rule), dot + 1);
		return true;
	}
	return false;
}

const char *
control_hint(const struct snapshot *snapshot, const struct name *name, uint8_t proto, uint16_t port, int64_t now_us,
    char ret_text[CONTROL_HINT_MAX])
{
	ret_text[0] = '\0';
	if (snapshot_decide_host(snapshot, name, proto, port, now_us).out_of_bounds)
		snprintf(ret_text, CONTROL_HINT_MAX,
		    "a rule allows it, but the organisation's policy does not allow it too");
	else if (!hint_ports(snapshot, name, now_us, ret_text) && !hint_below(snapshot, name, now_us, ret_text))
		hint_above(snapshot, name, now_us, ret_text);
	return ret_text;
}
