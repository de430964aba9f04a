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
#include "policy/text/policy_parse.h"

#include <stdlib.h>
#include <string.h>

/* Bare asterisks that one text is read past: each costs a reading. */
#define STARS_MAX 32
/* And not at all a longer text. */
#define STARS_TEXT_MAX (1u << 20)
/* In front of a preset's name. */
#define PRESET_MARK "preset:"

static int
read_version(void *parse, void *unused, unsigned int what)
{
	struct parse *p = parse;
	bool ok;

	(void)unused;
	(void)what;
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
read_name(void *parse, void *unused, unsigned int what)
{
	struct parse *p = parse;
	const char *text;
	size_t len;
	bool ok;

	(void)unused;
	(void)what;
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
read_ech(void *parse, void *unused, unsigned int what)
{
	struct parse *p = parse;
	bool ok;

	(void)unused;
	(void)what;
	if (events_want_scalar(&p->in, "grease-ok or deny", &ok) < 0)
		return -1;
	p->policy.ech_set = true;
	policy_parse_setting(p, POLICY_SETTING_ECH);
	if (events_scalar_is(&p->in, "deny"))
		p->policy.ech = POLICY_ECH_DENY;
	else if (ok && !events_scalar_is(&p->in, "grease-ok"))
		events_report(
		    &p->in, events_here(&p->in), "'%s' is neither grease-ok nor deny", events_quote(&p->in).text);
	return 0;
}

static int
read_mode(void *parse, void *unused, unsigned int what)
{
	struct parse *p = parse;
	bool ok;

	(void)unused;
	(void)what;
	if (events_want_scalar(&p->in, "enforce or learn", &ok) < 0)
		return -1;
	p->policy.mode_set = true;
	policy_parse_setting(p, POLICY_SETTING_MODE);
	if (events_scalar_is(&p->in, "learn"))
		p->policy.mode = POLICY_MODE_LEARN;
	else if (ok && !events_scalar_is(&p->in, "enforce"))
		events_report(
		    &p->in, events_here(&p->in), "'%s' is neither enforce nor learn", events_quote(&p->in).text);
	return 0;
}

static int
include_add(struct parse *p, const char *name, size_t len)
{
	struct policy *policy = &p->policy;
	struct policy_include include = {
	    .line = (uint32_t)events_here(&p->in).line, .column = (uint32_t)events_here(&p->in).column};
	struct policy_include *includes;

	memcpy(include.preset, name, len);
	events_origin(&p->in, include.at, ":%u:%u", include.line, include.column);
	for (size_t i = 0; i < policy->include_count; i++) {
		if (memcmp(policy->includes[i].preset, include.preset, sizeof(include.preset)) == 0) {
			events_report(&p->in, events_here(&p->in), "'%s' stands twice, first in line %u; keep one",
			    events_quote(&p->in).text, policy->includes[i].line);
			return 0;
		}
	}
	if (policy->include_count == POLICY_INCLUDES_MAX) {
		events_report(&p->in, events_here(&p->in), "more than %d presets", POLICY_INCLUDES_MAX);
		return -1;
	}
	includes = reallocarray(policy->includes, policy->include_count + 1, sizeof(*includes));
	if (includes == NULL) {
		events_report(&p->in, events_here(&p->in), "no memory to read it");
		p->in.code = ERROR_LIMIT;
		return -1;
	}
	policy->includes = includes;
	policy->includes[policy->include_count++] = include;
	return 0;
}

static int
read_preset(struct parse *p)
{
	size_t mark = strlen(PRESET_MARK), len;
	const char *text;
	bool ok;

	if (events_want_scalar(&p->in, "a preset, as in preset:npm", &ok) < 0)
		return -1;
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if (len > mark && memcmp(text, PRESET_MARK, mark) == 0 && policy_preset_is_name(text + mark, len - mark))
		return include_add(p, text + mark, len - mark);
	events_report(&p->in, events_here(&p->in),
	    "'%s' is no preset; write preset:NAME, as in preset:npm (lower-case letters, digits and '-')",
	    events_quote(&p->in).text);
	return 0;
}

static int
read_include(void *parse, void *unused, unsigned int what)
{
	struct parse *p = parse;

	(void)unused;
	(void)what;
	if (p->in.event.type != YAML_SEQUENCE_START_EVENT) {
		if (events_is_null(&p->in))
			events_report(
			    &p->in, events_here(&p->in), "'include' has no value; write 'include: []' for none");
		else if (p->in.event.type != YAML_ALIAS_EVENT)
			events_report(&p->in, events_here(&p->in), "'include' is a list, as in [preset:npm]");
		return events_skip(&p->in);
	}
	for (;;) {
		if (events_next(&p->in) < 0)
			return -1;
		if (p->in.event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (read_preset(p) < 0)
			return -1;
	}
}

static int
read_limits(void *parse, void *unused, unsigned int what)
{
	(void)unused;
	return policy_parse_limits(parse, &((struct parse *)parse)->policy.limits, what);
}

static const struct events_key keys[] = {
    {"version", read_version, 0},
    {"name", read_name, 0},
    {"include", read_include, 0},
    {"mode", read_mode, 0},
    {"ech", read_ech, 0},
    {"limits", read_limits, false},
    {"allow", policy_parse_entry_list, RULE_ALLOW},
    {"deny", policy_parse_entry_list, RULE_DENY},
};
const struct events_keys policy_parse_root_keys = {keys, sizeof(keys) / sizeof(keys[0])};

static int
read_root(struct parse *p)
{
	struct place at = events_here(&p->in), places[EVENTS_KEYS_MAX];

	if (p->in.event.type != YAML_MAPPING_START_EVENT) {
		events_report(&p->in, at,
		    events_is_null(&p->in) ? "version: 1 is required"
					   : "a policy begins with 'version: 1' and has keys");
		return events_skip(&p->in);
	}
	if (events_read_mapping(&p->in, &policy_parse_root_keys, p, NULL, places) < 0)
		return -1;
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
	return policy_parse_noted(text, len, file, ret_policy, NULL, err);
}

/* One reading of the text. Whatever comes of it, p.in is to be closed and its complaints are to be freed. */
static int
parse_text(struct parse *p, const char *text, size_t len, const char *file)
{
	int result;

	*p = (struct parse){.version_seen = false};
	result = events_open(&p->in, file, text, len);
	if (result == 0)
		result = read_stream(p);
	if (result == 0)
		result = policy_parse_twins(p);
	events_close(&p->in);
	return result;
}

static void
parse_drop(struct parse *p)
{
	policy_free(&p->policy);
	notes_free(&p->in.complaints);
	free(p->places);
}

/* The byte at a place, of which columns count characters; len when there is none. */
static size_t
parse_find(const char *text, size_t len, struct place at)
{
	size_t i = 0;

	for (size_t line = 1; line < at.line && i < len; i++)
		line += text[i] == '\n';
	for (size_t column = 1; column < at.column && i < len; column++)
		for (i++; i < len && ((unsigned char)text[i] & 0xc0) == 0x80; i++)
			;
	return i;
}

/* The YAML reader cannot go on behind a bare "*.example.com". It reads a copy instead, in which a letter stands there,
 * so that this mistake, which people make in each of their wildcards, hides no other one. The text is refused either
 * way. */
static void
parse_past_stars(struct parse *p, const char *text, size_t len, const char *file)
{
	struct policy_notes stars = {.notes = NULL};
	char *copy = malloc(len + 1);

	if (copy != NULL)
		memcpy(copy, text, len);
	while (copy != NULL && p->in.star.line != 0 && stars.count < STARS_MAX) {
		struct place star = p->in.star;
		size_t at = parse_find(copy, len, star);

		if (at >= len || copy[at] != '*')
			break;
		copy[at] = 'x';
		notes_add(&stars, (uint32_t)star.line, (uint32_t)star.column, EVENTS_STAR_COMPLAINT);
		parse_drop(p);
		parse_text(p, copy, len, file);
	}
	for (size_t i = 0; i < stars.count; i++)
		events_report(
		    &p->in, (struct place){stars.notes[i].line, stars.notes[i].column}, "%s", stars.notes[i].text);
	notes_sort(&p->in.complaints);
	notes_free(&stars);
	free(copy);
}

int
policy_parse_noted(const char *text, size_t len, const char *file, struct policy *ret_policy,
    struct policy_notes *notes, struct error *err)
{
	struct parse p;
	int result;

	if (len > POLICY_FILE_MAX)
		return error_set(err, ERROR_POLICY, "%s:1:1: larger than %u bytes", file, POLICY_FILE_MAX);
	result = parse_text(&p, text, len, file);
	if (result == 0 && p.in.error_count == 0) {
		if (notes != NULL)
			notes_collect(notes, &p.policy, p.places);
		*ret_policy = p.policy;
		free(p.places);
		return 0;
	}
	if (p.in.star.line != 0 && len <= STARS_TEXT_MAX)
		parse_past_stars(&p, text, len, file);
	events_fail(&p.in, err);
	if (notes != NULL) {
		notes_free(notes);
		*notes = p.in.complaints;
		notes->broken = true;
		p.in.complaints = (struct policy_notes){.notes = NULL};
	}
	parse_drop(&p);
	return -1;
}
