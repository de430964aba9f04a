/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reader of a policy's YAML text.
 *
 * Theory of operation. libyaml turns the text into events; this walker consumes them one by one and is told by each
 * value's key what must come. It never builds a tree and never recurses over the text: what has no place is reported and
 * skipped with a counter, and nesting beyond NEST_MAX ends the reading. All that is looser in YAML than in a rule book
 * is an error: anchors, aliases, tags, directives, several documents, duplicate or unknown keys, null where a value
 * belongs, "yes" for true. Scalars stay text; YAML 1.1's own ideas of numbers (0x16, 22:22, 1_000) never apply.
 *
 * Reading goes on after a complaint so that one run shows all of them; a policy is handed out only if there was none.
 * Two words. "Broken" (-1) means that no further event can be had or used; every function then returns at once. A
 * reported mistake alone is no reason to return -1. */
#include "policy/policy.h"

#include "base/escape.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Deepest nesting that is skipped over: three levels mean something. */
#define NEST_MAX 16
/* How much of a wrong value a message repeats, escaped. */
#define QUOTE_MAX 80
/* Kept free in the text of errors for "(123456 more errors)". */
#define MORE_ROOM 32

struct place {
	size_t line, column; /* from 1 */
};

struct parse {
	yaml_parser_t yaml;
	yaml_event_t event; /* the current one; type YAML_NO_EVENT: none */
	const char *file;
	char text[ERROR_TEXT_MAX]; /* the complaints so far, one a line */
	size_t used;
	size_t error_count, unshown;
	enum error_code code; /* of the first complaint */
	bool version_seen;
	struct policy policy;
};

/* Keys of one mapping: which came already, and where. */
struct seen {
	struct place at[8];
};

struct quote {
	char text[QUOTE_MAX];
};

static struct place
place_of(yaml_mark_t mark)
{
	return (struct place){mark.line + 1, mark.column + 1};
}

static struct place
here(const struct parse *p)
{
	return place_of(p->event.start_mark);
}

static void report(struct parse *p, struct place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void
report(struct parse *p, struct place at, const char *fmt, ...)
{
	char line[ERROR_TEXT_MAX], file[QUOTE_MAX];
	va_list ap;
	int head, len;

	if (p->error_count++ == 0)
		p->code = ERROR_POLICY;
	escape_terminal(p->file, strlen(p->file), file, sizeof(file));
	head = snprintf(line, sizeof(line), "%s:%zu:%zu: ", file, at.line, at.column);
	va_start(ap, fmt);
	len = head + vsnprintf(line + head, sizeof(line) - (size_t)head, fmt, ap);
	va_end(ap);
	if ((size_t)len >= sizeof(line) || p->used + (size_t)len + 1 + MORE_ROOM >= sizeof(p->text) || p->unshown > 0) {
		p->unshown++;
		return;
	}
	if (p->used > 0)
		p->text[p->used++] = '\n';
	memcpy(p->text + p->used, line, (size_t)len + 1);
	p->used += (size_t)len;
}

static struct quote
value_quote(const struct parse *p)
{
	struct quote quoted = {.text = ""};

	if (p->event.type == YAML_SCALAR_EVENT)
		escape_terminal(
		    p->event.data.scalar.value, p->event.data.scalar.length, quoted.text, sizeof(quoted.text));
	return quoted;
}

/* libyaml's own complaint, with a hint for the two that people meet. */
static int
report_syntax(struct parse *p)
{
	const yaml_parser_t *yaml = &p->yaml;
	const char *problem = yaml->problem == NULL ? "not YAML" : yaml->problem;
	const char *context = yaml->context == NULL ? "" : yaml->context;

	if (yaml->error == YAML_MEMORY_ERROR) {
		report(p, place_of(yaml->problem_mark), "no memory to read it");
		p->code = ERROR_LIMIT;
	} else if (strstr(context, "alias") != NULL) {
		report(p, place_of(yaml->context_mark),
		    "a value that begins with '*' must be quoted, as in \"*.example.com\"");
	} else if (strstr(problem, "cannot start any token") != NULL) {
		report(p, place_of(yaml->problem_mark), "%s; indent with spaces, quote values that begin with a sign",
		    problem);
	} else if (yaml->error == YAML_READER_ERROR) {
		report(p, place_of(yaml->mark), "%s", problem);
	} else {
		report(p, place_of(yaml->problem_mark), "%s%s%s", problem, context[0] != '\0' ? " " : "", context);
	}
	return -1;
}

static void
refuse_anchor(struct parse *p, const yaml_char_t *anchor)
{
	if (anchor != NULL)
		report(p, here(p), "anchors are not accepted; write the value where it is needed");
}

static void
refuse_tag(struct parse *p, const yaml_char_t *tag)
{
	if (tag != NULL)
		report(p, here(p), "tags are not accepted; leave out the '!' and what belongs to it");
}

static void
event_drop(struct parse *p)
{
	yaml_event_delete(&p->event);
	p->event.type = YAML_NO_EVENT;
}

/* Fetch the next event; what YAML has and policies have not is complained about here, wherever it stands. */
static int
next(struct parse *p)
{
	event_drop(p);
	if (!yaml_parser_parse(&p->yaml, &p->event)) {
		p->event.type = YAML_NO_EVENT;
		return report_syntax(p);
	}
	switch ((int)p->event.type) {
	case YAML_ALIAS_EVENT:
		report(p, here(p), "aliases are not accepted; write the value out, or quote it if it is a pattern");
		break;
	case YAML_SCALAR_EVENT:
		refuse_anchor(p, p->event.data.scalar.anchor);
		refuse_tag(p, p->event.data.scalar.tag);
		break;
	case YAML_SEQUENCE_START_EVENT:
		refuse_anchor(p, p->event.data.sequence_start.anchor);
		refuse_tag(p, p->event.data.sequence_start.tag);
		break;
	case YAML_MAPPING_START_EVENT:
		refuse_anchor(p, p->event.data.mapping_start.anchor);
		refuse_tag(p, p->event.data.mapping_start.tag);
		break;
	default:
		break;
	}
	return 0;
}

/* Read past the node that begins with the current event; the current event is then its last. */
static int
skip(struct parse *p)
{
	unsigned int depth = 0;

	for (;;) {
		if (p->event.type == YAML_SEQUENCE_START_EVENT || p->event.type == YAML_MAPPING_START_EVENT)
			depth++;
		if (p->event.type == YAML_SEQUENCE_END_EVENT || p->event.type == YAML_MAPPING_END_EVENT)
			depth--;
		if (depth == 0)
			return 0;
		if (depth > NEST_MAX) {
			report(p, here(p), "nested too deeply");
			return -1;
		}
		if (next(p) < 0)
			return -1;
	}
}

static bool
scalar_is(const struct parse *p, const char *word)
{
	size_t len = strlen(word);

	return p->event.type == YAML_SCALAR_EVENT && p->event.data.scalar.length == len &&
	    memcmp(p->event.data.scalar.value, word, len) == 0;
}

static bool
scalar_is_plain(const struct parse *p)
{
	return p->event.type == YAML_SCALAR_EVENT && p->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

static bool
is_null(const struct parse *p)
{
	return scalar_is_plain(p) &&
	    (scalar_is(p, "") || scalar_is(p, "~") || scalar_is(p, "null") || scalar_is(p, "Null") ||
		scalar_is(p, "NULL"));
}

/* The current node must be a scalar with something in it. Otherwise complains (wants: "a host name"), skips it, and
 * sets *ret_ok to false. An alias was complained about already. */
static int
want_scalar(struct parse *p, const char *wants, bool *ret_ok)
{
	*ret_ok = p->event.type == YAML_SCALAR_EVENT && !is_null(p) && p->event.data.scalar.length > 0;
	if (*ret_ok || p->event.type == YAML_ALIAS_EVENT)
		return 0;
	report(
	    p, here(p), p->event.type == YAML_SCALAR_EVENT ? "a value is missing; write %s" : "%s belongs here", wants);
	return skip(p);
}

/* A key's index in keys, or -1 after a complaint. Duplicates are complained about and give -1. */
static int
key_find(struct parse *p, const char *const *keys, size_t count, const char *known, struct seen *seen)
{
	static const char *const later[] = {"include", "limits", "mode", "expires", "uses", "subdomains", "shared"};

	for (size_t i = 0; i < count; i++) {
		if (!scalar_is(p, keys[i]))
			continue;
		if (seen->at[i].line != 0) {
			report(p, here(p), "'%s' stands twice, first in line %zu; keep one", keys[i], seen->at[i].line);
			return -1;
		}
		seen->at[i] = here(p);
		return (int)i;
	}
	for (size_t i = 0; i < COUNT(later); i++) {
		if (scalar_is(p, later[i])) {
			report(p, here(p), "'%s' is not supported by this version; remove it", later[i]);
			return -1;
		}
	}
	if (p->event.type == YAML_SCALAR_EVENT)
		report(p, here(p), "unknown key '%s'; known here: %s", value_quote(p).text, known);
	else if (p->event.type != YAML_ALIAS_EVENT)
		report(p, here(p), "a key is a single word");
	return -1;
}

/* One key of a mapping and the step to its value. *ret_key: index, -1 when value was skipped, -2 at the end. */
static int
next_key(struct parse *p, const char *const *keys, size_t count, const char *known, struct seen *seen, int *ret_key)
{
	if (next(p) < 0)
		return -1;
	if (p->event.type == YAML_MAPPING_END_EVENT) {
		*ret_key = -2;
		return 0;
	}
	*ret_key = key_find(p, keys, count, known, seen);
	if (*ret_key >= 0)
		return next(p);
	if (skip(p) < 0 || next(p) < 0)
		return -1;
	return skip(p);
}

/* One entry of "allow" or "deny" while it is read. */
struct entry {
	struct rule rule;
	struct place target_at; /* of the value of host or cidr; line 0: none yet */
	bool udp;
};

static void
report_error(struct parse *p, struct place at, const struct error *err)
{
	report(p, at, "%s", err->text);
}

static int
read_target(struct parse *p, struct entry *entry, bool is_host)
{
	const yaml_event_t *event = &p->event;
	struct error err;
	bool ok;
	int result;

	if (want_scalar(
		p, is_host ? "a host name, as in example.com" : "an address range, as in 140.82.112.0/20", &ok) < 0)
		return -1;
	if (entry->target_at.line != 0) {
		report(p, here(p), "an entry has either 'host' or 'cidr'; make it two entries");
		return 0;
	}
	entry->target_at = here(p);
	if (!ok)
		return 0;
	result = (is_host ? rule_set_host : rule_set_cidr)(
	    &entry->rule, (const char *)event->data.scalar.value, event->data.scalar.length, &err);
	if (result < 0)
		report_error(p, here(p), &err);
	return 0;
}

static int
read_port(struct parse *p, struct entry *entry)
{
	const yaml_event_t *event = &p->event;
	struct error err;
	bool ok;

	if (want_scalar(p, "a port, as in 22 or \"8000-8010\"", &ok) < 0)
		return -1;
	if (ok &&
	    rule_add_ports(&entry->rule, (const char *)event->data.scalar.value, event->data.scalar.length, &err) < 0)
		report_error(p, here(p), &err);
	return 0;
}

static int
read_ports(struct parse *p, struct entry *entry)
{
	bool any = false;

	if (p->event.type != YAML_SEQUENCE_START_EVENT)
		return read_port(p, entry);
	for (;;) {
		if (next(p) < 0)
			return -1;
		if (p->event.type == YAML_SEQUENCE_END_EVENT)
			break;
		any = true;
		if (read_port(p, entry) < 0)
			return -1;
	}
	if (!any)
		report(p, here(p), "the list of ports is empty; name one or leave 'ports' out");
	return 0;
}

static int
read_udp(struct parse *p, struct entry *entry)
{
	bool ok;

	if (want_scalar(p, "true or false", &ok) < 0)
		return -1;
	entry->udp = scalar_is_plain(p) && scalar_is(p, "true");
	if (ok && !entry->udp && !(scalar_is_plain(p) && scalar_is(p, "false")))
		report(p, here(p), "'%s' is neither true nor false; write true", value_quote(p).text);
	return 0;
}

/* All keys are read: give protocol and ports their final form, check, append. */
static int
entry_finish(struct parse *p, struct entry *entry, struct place at)
{
	struct rule *rule = &entry->rule;
	char line[24];
	struct error err;
	int room;

	if (entry->target_at.line == 0) {
		report(p, at, "the entry names neither 'host' nor 'cidr'");
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
		report_error(p, entry->target_at, &err);
		return 0;
	}
	/* A long path loses its end, not the line number. */
	room = RULE_ORIGIN_MAX - 1 - snprintf(line, sizeof(line), ":%zu", at.line);
	snprintf(rule->origin, sizeof(rule->origin), "%.*s%s", room, p->file, line);
	if (policy_add(&p->policy, rule, &err) < 0) {
		report_error(p, at, &err);
		p->code = err.code;
		return -1;
	}
	return 0;
}

static int
read_entry(struct parse *p, enum rule_action action)
{
	static const char *const keys[] = {"host", "cidr", "ports", "udp"};
	struct entry entry = {.rule = {.action = action}};
	struct seen seen = {.at = {{0, 0}}};
	struct place at = here(p);
	size_t errors_before = p->error_count;
	int key, result = 0;

	if (p->event.type != YAML_MAPPING_START_EVENT) {
		if (p->event.type == YAML_SCALAR_EVENT && !is_null(p))
			report(p, at, "an entry is 'host: NAME' or 'cidr: RANGE'; write '- host: \"%s\"'",
			    value_quote(p).text);
		else if (p->event.type != YAML_ALIAS_EVENT)
			report(p, at, "an entry is 'host: NAME' or 'cidr: RANGE'");
		return skip(p);
	}
	for (;;) {
		if (next_key(p, keys, COUNT(keys), "host, cidr, ports, udp", &seen, &key) < 0)
			return -1;
		if (key == -2)
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
	return p->error_count > errors_before ? 0 : entry_finish(p, &entry, at);
}

static int
read_rules(struct parse *p, enum rule_action action)
{
	const char *key = action == RULE_ALLOW ? "allow" : "deny";

	if (p->event.type != YAML_SEQUENCE_START_EVENT) {
		if (is_null(p))
			report(p, here(p), "'%s' has no value; write '%s: []' for none", key, key);
		else if (p->event.type != YAML_ALIAS_EVENT)
			report(p, here(p), "'%s' is a list; begin each entry with '- host:' or '- cidr:'", key);
		return skip(p);
	}
	for (;;) {
		if (next(p) < 0)
			return -1;
		if (p->event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (read_entry(p, action) < 0)
			return -1;
	}
}

static int
read_version(struct parse *p)
{
	bool ok;

	if (want_scalar(p, "1", &ok) < 0)
		return -1;
	p->version_seen = true;
	if (ok && !(scalar_is_plain(p) && scalar_is(p, "1")))
		report(p, here(p), "version '%s' is not supported; this program reads version: 1", value_quote(p).text);
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
	const yaml_event_t *event = &p->event;
	bool ok;

	if (want_scalar(p, "a name, as in read-the-news", &ok) < 0)
		return -1;
	if (!ok)
		return 0;
	if (is_policy_name((const char *)event->data.scalar.value, event->data.scalar.length))
		memcpy(p->policy.name, event->data.scalar.value, event->data.scalar.length);
	else
		report(p, here(p), "name '%s' is not 1 to %d of letters, digits, '-', '_' and '.'", value_quote(p).text,
		    POLICY_NAME_MAX - 1);
	return 0;
}

static int
read_ech(struct parse *p)
{
	bool ok;

	if (want_scalar(p, "grease-ok or deny", &ok) < 0)
		return -1;
	p->policy.ech_set = true;
	if (scalar_is(p, "deny"))
		p->policy.ech = POLICY_ECH_DENY;
	else if (ok && !scalar_is(p, "grease-ok"))
		report(p, here(p), "'%s' is neither grease-ok nor deny", value_quote(p).text);
	return 0;
}

static int
read_root(struct parse *p)
{
	static const char *const keys[] = {"version", "name", "allow", "deny", "ech"};
	struct seen seen = {.at = {{0, 0}}};
	struct place at = here(p);
	int key, result = 0;

	if (p->event.type != YAML_MAPPING_START_EVENT) {
		report(p, at, is_null(p) ? "version: 1 is required" : "a policy begins with 'version: 1' and has keys");
		return skip(p);
	}
	for (;;) {
		if (next_key(p, keys, COUNT(keys), "version, name, allow, deny, ech", &seen, &key) < 0)
			return -1;
		if (key == -2)
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
		report(p, at, "version: 1 is required");
	return 0;
}

static int
read_stream(struct parse *p)
{
	if (next(p) < 0 || next(p) < 0)
		return -1;
	if (p->event.type == YAML_STREAM_END_EVENT) {
		report(p, (struct place){1, 1}, "version: 1 is required");
		return 0;
	}
	if (p->event.data.document_start.version_directive != NULL ||
	    p->event.data.document_start.tag_directives.start != p->event.data.document_start.tag_directives.end)
		report(p, here(p), "directives are not accepted; remove the line that begins with '%%'");
	if (next(p) < 0 || read_root(p) < 0 || next(p) < 0 || next(p) < 0)
		return -1;
	if (p->event.type != YAML_STREAM_END_EVENT)
		report(p, here(p), "a second document begins here; a policy is one document");
	return 0;
}

/* Length of the well-formed UTF-8 character at the front of text; 0 when there is none (RFC 3629 section 4). */
static size_t
utf8_length(const unsigned char *text, size_t len)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t want = text[0] < 0x80 ? 1
	    : text[0] < 0xc2         ? 0
	    : text[0] < 0xe0         ? 2
	    : text[0] < 0xf0         ? 3
	    : text[0] < 0xf5         ? 4
				     : 0;
	uint32_t code = want < 2 ? text[0] : text[0] & (0x7fu >> want);

	if (want > len)
		return 0;
	for (size_t i = 1; i < want; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3f);
	}
	if (want > 0 && (code < least[want] || (code >= 0xd800 && code < 0xe000) || code > 0x10ffff))
		return 0;
	return want;
}

/* A NUL ends a C string somewhere below and bad UTF-8 is read in several ways: neither gets as far as the YAML reader. */
static int
check_bytes(struct parse *p, const unsigned char *text, size_t len)
{
	struct place at = {1, 1};
	size_t step;

	for (size_t i = 0; i < len; i += step) {
		if (text[i] == '\0') {
			report(p, at, "a NUL byte does not belong into a policy");
			return -1;
		}
		step = utf8_length(text + i, len - i);
		if (step == 0) {
			report(p, at, "byte 0x%02x is not valid UTF-8", text[i]);
			return -1;
		}
		at.column++;
		if (text[i] == '\n')
			at = (struct place){at.line + 1, 1};
	}
	return 0;
}

static int
read_text(struct parse *p, const unsigned char *text, size_t len)
{
	int result;

	if (len > POLICY_FILE_MAX) {
		report(p, (struct place){1, 1}, "larger than %u bytes", POLICY_FILE_MAX);
		return -1;
	}
	if (check_bytes(p, text, len) < 0)
		return -1;
	if (!yaml_parser_initialize(&p->yaml)) {
		report(p, (struct place){1, 1}, "no memory to read it");
		p->code = ERROR_LIMIT;
		return -1;
	}
	yaml_parser_set_encoding(&p->yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&p->yaml, text, len);
	result = read_stream(p);
	event_drop(p);
	yaml_parser_delete(&p->yaml);
	return result;
}

int
policy_parse(const char *text, size_t len, const char *file, struct policy *ret_policy, struct error *err)
{
	struct parse p = {.file = file};
	int result = read_text(&p, (const unsigned char *)text, len);

	if (result == 0 && p.error_count == 0) {
		*ret_policy = p.policy;
		return 0;
	}
	policy_free(&p.policy);
	if (p.unshown > 0)
		snprintf(
		    p.text + p.used, sizeof(p.text) - p.used, "%s(%zu more errors)", p.used > 0 ? "\n" : "", p.unshown);
	return error_set(err, p.code, "%s", p.text);
}
