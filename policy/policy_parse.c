/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reader of a policy's YAML text.
 *
 * Theory of operation. events.c hands out the text's YAML events one by one; this walker consumes them and is told by
 * each key what value must come. It never builds a tree and never recurses over the text: what has no place is reported
 * and skipped with a counter, and nesting beyond EVENTS_NEST_MAX ends the reading. All that is looser in YAML than in a
 * rule book is an error: anchors, aliases, tags, directives, several documents, duplicate or unknown keys, null where a
 * value belongs, "yes" for true. Scalars stay text; YAML 1.1's numbers (0x16, 22:22, 1_000) never apply.
 *
 * Reading goes on after a complaint, so that one run shows all of them; a policy is handed out only if there was none.
 * The functions return -1 only when events.c says that nothing more can be read. */
#include "policy/events.h"
#include "policy/policy.h"

#include "base/escape.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct parse {
	struct events in;
	struct policy policy;
	bool version_seen;
};

/* One entry of "allow" or "deny" while it is read. */
struct entry {
	struct rule rule;
	struct place target_at; /* of the value of host or cidr; line 0: none yet */
	bool udp;
};

static int
read_target(struct parse *p, struct entry *entry, bool is_host)
{
	const char *text;
	struct error err;
	size_t len;
	bool ok;

	if (events_want_scalar(&p->in,
		is_host ? "a host name, as in example.com" : "an address range, as in 140.82.112.0/20", &ok) < 0)
		return -1;
	if (entry->target_at.line != 0) {
		events_report(&p->in, events_here(&p->in), "an entry has either 'host' or 'cidr'; make it two entries");
		return 0;
	}
	entry->target_at = events_here(&p->in);
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if ((is_host ? rule_set_host : rule_set_cidr)(&entry->rule, text, len, &err) < 0)
		events_report(&p->in, events_here(&p->in), "%s", err.text);
	return 0;
}

static int
read_port(struct parse *p, struct entry *entry)
{
	const char *text;
	struct error err;
	size_t len;
	bool ok;

	if (events_want_scalar(&p->in, "a port, as in 22 or \"8000-8010\"", &ok) < 0)
		return -1;
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if (rule_add_ports(&entry->rule, text, len, &err) < 0)
		events_report(&p->in, events_here(&p->in), "%s", err.text);
	return 0;
}

static int
read_ports(struct parse *p, struct entry *entry)
{
	bool any = false;

	if (p->in.event.type != YAML_SEQUENCE_START_EVENT)
		return read_port(p, entry);
	for (;;) {
		if (events_next(&p->in) < 0)
			return -1;
		if (p->in.event.type == YAML_SEQUENCE_END_EVENT)
			break;
		any = true;
		if (read_port(p, entry) < 0)
			return -1;
	}
	if (!any)
		events_report(&p->in, events_here(&p->in), "the list of ports is empty; name one or leave 'ports' out");
	return 0;
}

static int
read_udp(struct parse *p, struct entry *entry)
{
	bool ok;

	if (events_want_scalar(&p->in, "true or false", &ok) < 0)
		return -1;
	entry->udp = events_scalar_is_plain(&p->in) && events_scalar_is(&p->in, "true");
	if (ok && !entry->udp && !(events_scalar_is_plain(&p->in) && events_scalar_is(&p->in, "false")))
		events_report(&p->in, events_here(&p->in), "'%s' is neither true nor false; write true",
		    events_quote(&p->in).text);
	return 0;
}

/* All keys are read: give protocol and ports their final form, check, append. */
static int
entry_finish(struct parse *p, struct entry *entry, struct place at)
{
	struct rule *rule = &entry->rule;
	char line[24], file[RULE_ORIGIN_MAX];
	struct error err;
	int room;

	if (entry->target_at.line == 0) {
		events_report(&p->in, at, "the entry names neither 'host' nor 'cidr'");
		return 0;
	}
	if (entry->udp && rule->action == RULE_DENY && rule->range_count == 0) {
		rule->ranges[0] = (struct port_range){1, UINT16_MAX};
		rule->range_count = 1;
	}
	if (entry->udp)
		rule->proto = IPPROTO_UDP;
	else if (rule->action == RULE_ALLOW || rule->range_count > 0)
		rule->proto = IPPROTO_TCP;
	if (rule_check(rule, &err) < 0) {
		events_report(&p->in, entry->target_at, "%s", err.text);
		return 0;
	}
	/* A long path loses its end, not the line number. */
	room = RULE_ORIGIN_MAX - 1 - snprintf(line, sizeof(line), ":%zu", at.line);
	escape_terminal(p->in.file, strlen(p->in.file), file, sizeof(file));
	snprintf(rule->origin, sizeof(rule->origin), "%.*s%s", room, file, line);
	if (policy_add(&p->policy, rule, &err) < 0) {
		events_report(&p->in, at, "%s", err.text);
		p->in.code = err.code;
		return -1;
	}
	return 0;
}

static int
read_entry(struct parse *p, enum rule_action action)
{
	static const char *const words[] = {"host", "cidr", "ports", "udp"};
	struct entry entry = {.rule = {.action = action}};
	struct events_keys keys = {.words = words, .count = COUNT(words), .known = "host, cidr, ports, udp"};
	struct place at = events_here(&p->in);
	size_t errors_before = p->in.error_count;
	int key, result = 0;

	if (p->in.event.type != YAML_MAPPING_START_EVENT) {
		if (p->in.event.type == YAML_SCALAR_EVENT && !events_is_null(&p->in))
			events_report(&p->in, at, "an entry is 'host: NAME' or 'cidr: RANGE'; write '- host: \"%s\"'",
			    events_quote(&p->in).text);
		else if (p->in.event.type != YAML_ALIAS_EVENT)
			events_report(&p->in, at, "an entry is 'host: NAME' or 'cidr: RANGE'");
		return events_skip(&p->in);
	}
	for (;;) {
		if (events_next_key(&p->in, &keys, &key) < 0)
			return -1;
		if (key == EVENTS_KEY_END)
			break;
		if (key == 0 || key == 1)
			result = read_target(p, &entry, key == 0);
		else if (key == 2)
			result = read_ports(p, &entry);
		else if (key == 3)
			result = read_udp(p, &entry);
		if (result < 0)
			return -1;
	}
	return p->in.error_count > errors_before ? 0 : entry_finish(p, &entry, at);
}

static int
read_rules(struct parse *p, enum rule_action action)
{
	const char *key = action == RULE_ALLOW ? "allow" : "deny";

	p->policy.has_allow = p->policy.has_allow || action == RULE_ALLOW;
	if (p->in.event.type != YAML_SEQUENCE_START_EVENT) {
		if (events_is_null(&p->in))
			events_report(
			    &p->in, events_here(&p->in), "'%s' has no value; write '%s: []' for none", key, key);
		else if (p->in.event.type != YAML_ALIAS_EVENT)
			events_report(&p->in, events_here(&p->in),
			    "'%s' is a list; begin each entry with '- host:' or '- cidr:'", key);
		return events_skip(&p->in);
	}
	for (;;) {
		if (events_next(&p->in) < 0)
			return -1;
		if (p->in.event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (read_entry(p, action) < 0)
			return -1;
	}
}

static int
read_version(struct parse *p)
{
	bool ok;

	if (events_want_scalar(&p->in, "1", &ok) < 0)
		return -1;
	p->version_seen = true;
	if (ok && !(events_scalar_is_plain(&p->in) && events_scalar_is(&p->in, "1")))
		events_report(&p->in, events_here(&p->in),
		    "version '%s' is not supported; this program reads version: 1", events_quote(&p->in).text);
	return 0;
}

static bool
is_policy_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool alnum = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
		    (text[i] >= '0' && text[i] <= '9');

		if (!alnum && (i == 0 || (text[i] != '-' && text[i] != '_' && text[i] != '.')))
			return false;
	}
	return len > 0 && len < POLICY_NAME_MAX;
}

static int
read_name(struct parse *p)
{
	const char *text;
	size_t len;
	bool ok;

	if (events_want_scalar(&p->in, "a name, as in read-the-news", &ok) < 0)
		return -1;
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if (is_policy_name(text, len))
		memcpy(p->policy.name, text, len);
	else
		events_report(&p->in, events_here(&p->in),
		    "name '%s' is not 1 to %d of letters, digits, '-', '_' and '.'", events_quote(&p->in).text,
		    POLICY_NAME_MAX - 1);
	return 0;
}

static int
read_ech(struct parse *p)
{
	bool ok;

	if (events_want_scalar(&p->in, "grease-ok or deny", &ok) < 0)
		return -1;
	p->policy.ech_set = true;
	if (events_scalar_is(&p->in, "deny"))
		p->policy.ech = POLICY_ECH_DENY;
	else if (ok && !events_scalar_is(&p->in, "grease-ok"))
		events_report(
		    &p->in, events_here(&p->in), "'%s' is neither grease-ok nor deny", events_quote(&p->in).text);
	return 0;
}

static int
read_root(struct parse *p)
{
	static const char *const words[] = {"version", "name", "allow", "deny", "ech"};
	struct events_keys keys = {.words = words, .count = COUNT(words), .known = "version, name, allow, deny, ech"};
	struct place at = events_here(&p->in);
	int key, result = 0;

	if (p->in.event.type != YAML_MAPPING_START_EVENT) {
		events_report(&p->in, at,
		    events_is_null(&p->in) ? "version: 1 is required"
					   : "a policy begins with 'version: 1' and has keys");
		return events_skip(&p->in);
	}
	for (;;) {
		if (events_next_key(&p->in, &keys, &key) < 0)
			return -1;
		if (key == EVENTS_KEY_END)
			break;
		if (key == 0)
			result = read_version(p);
		else if (key == 1)
			result = read_name(p);
		else if (key == 2 || key == 3)
			result = read_rules(p, key == 2 ? RULE_ALLOW : RULE_DENY);
		else if (key == 4)
			result = read_ech(p);
		if (result < 0)
			return -1;
	}
	if (!p->version_seen)
		events_report(&p->in, at, "version: 1 is required");
	return 0;
}

static int
read_stream(struct parse *p)
{
	if (events_next(&p->in) < 0 || events_next(&p->in) < 0)
		return -1;
	if (p->in.event.type == YAML_STREAM_END_EVENT) {
		events_report(&p->in, (struct place){1, 1}, "version: 1 is required");
		return 0;
	}
	if (p->in.event.data.document_start.version_directive != NULL ||
	    p->in.event.data.document_start.tag_directives.start != p->in.event.data.document_start.tag_directives.end)
		events_report(
		    &p->in, events_here(&p->in), "directives are not accepted; remove the line that begins with '%%'");
	if (events_next(&p->in) < 0 || read_root(p) < 0 || events_next(&p->in) < 0 || events_next(&p->in) < 0)
		return -1;
	if (p->in.event.type != YAML_STREAM_END_EVENT)
		events_report(&p->in, events_here(&p->in), "a second document begins here; a policy is one document");
	return 0;
}

int
policy_parse(const char *text, size_t len, const char *file, struct policy *ret_policy, struct error *err)
{
	struct parse p = {.version_seen = false};
	int result;

	if (len > POLICY_FILE_MAX)
		return error_set(err, ERROR_POLICY, "%s:1:1: larger than %u bytes", file, POLICY_FILE_MAX);
	result = events_open(&p.in, file, text, len);
	if (result == 0)
		result = read_stream(&p);
	events_close(&p.in);
	if (result == 0 && p.in.error_count == 0) {
		*ret_policy = p.policy;
		return 0;
	}
	policy_free(&p.policy);
	return events_fail(&p.in, err);
}
