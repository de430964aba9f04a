/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policy/text/events.h"

#include "base/escape.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Kept free in the text of errors for "(123456 more errors)". */
#define MORE_ROOM 32
/* How much of the file's name a complaint repeats, escaped; the rest of the text is for what is wrong. */
#define FILE_TEXT_MAX 256

static struct place
place_of(yaml_mark_t mark)
{
	return (struct place){mark.line + 1, mark.column + 1};
}

struct place
events_here(const struct events *e)
{
	return place_of(e->event.start_mark);
}

void
events_report(struct events *e, struct place at, const char *fmt, ...)
{
	char text[POLICY_NOTE_TEXT_MAX];
	va_list ap;

	e->error_count++;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	notes_add(&e->complaints, (uint32_t)at.line, (uint32_t)at.column, text);
}

struct events_quote
events_quote(const struct events *e)
{
	struct events_quote quoted = {.text = ""};

	if (e->event.type == YAML_SCALAR_EVENT)
		escape_terminal(
		    e->event.data.scalar.value, e->event.data.scalar.length, quoted.text, sizeof(quoted.text));
	return quoted;
}

/* libyaml's own complaint, with a hint for the two that people meet. */
static int
report_syntax(struct events *e)
{
	const yaml_parser_t *yaml = &e->yaml;
	const char *problem = yaml->problem == NULL ? "not YAML" : yaml->problem;
	const char *context = yaml->context == NULL ? "" : yaml->context;

	if (yaml->error == YAML_MEMORY_ERROR) {
		events_report(e, place_of(yaml->problem_mark), "no memory to read it");
		e->code = ERROR_LIMIT;
	} else if (strstr(context, "alias") != NULL) {
		e->star = place_of(yaml->context_mark);
		events_report(e, e->star, "%s", EVENTS_STAR_COMPLAINT);
	} else if (strstr(problem, "cannot start any token") != NULL) {
		events_report(e, place_of(yaml->problem_mark),
		    "%s; indent with spaces, quote values that begin with a sign", problem);
	} else if (yaml->error == YAML_READER_ERROR) {
		events_report(e, place_of(yaml->mark), "%s", problem);
	} else {
		events_report(
		    e, place_of(yaml->problem_mark), "%s%s%s", problem, context[0] != '\0' ? " " : "", context);
	}
	return -1;
}

static void
refuse_anchor(struct events *e, const yaml_char_t *anchor)
{
	if (anchor != NULL)
		events_report(e, events_here(e), "anchors are not accepted; write the value where it is needed");
}

static void
refuse_tag(struct events *e, const yaml_char_t *tag)
{
	if (tag != NULL)
		events_report(e, events_here(e), "tags are not accepted; leave out the '!' and what belongs to it");
}

static void
events_drop(struct events *e)
{
	yaml_event_delete(&e->event);
	e->event.type = YAML_NO_EVENT;
}

int
events_next(struct events *e)
{
	events_drop(e);
	if (!yaml_parser_parse(&e->yaml, &e->event)) {
		e->event.type = YAML_NO_EVENT;
		return report_syntax(e);
	}
	switch ((int)e->event.type) {
	case YAML_ALIAS_EVENT:
		events_report(
		    e, events_here(e), "aliases are not accepted; write the value out, or quote it if it is a pattern");
		break;
	case YAML_SCALAR_EVENT:
		refuse_anchor(e, e->event.data.scalar.anchor);
		refuse_tag(e, e->event.data.scalar.tag);
		break;
	case YAML_SEQUENCE_START_EVENT:
		refuse_anchor(e, e->event.data.sequence_start.anchor);
		refuse_tag(e, e->event.data.sequence_start.tag);
		break;
	case YAML_MAPPING_START_EVENT:
		refuse_anchor(e, e->event.data.mapping_start.anchor);
		refuse_tag(e, e->event.data.mapping_start.tag);
		break;
	default:
		break;
	}
	return 0;
}

int
events_skip(struct events *e)
{
	unsigned int depth = 0;

	for (;;) {
		if (e->event.type == YAML_SEQUENCE_START_EVENT || e->event.type == YAML_MAPPING_START_EVENT)
			depth++;
		if (e->event.type == YAML_SEQUENCE_END_EVENT || e->event.type == YAML_MAPPING_END_EVENT)
			depth--;
		if (depth == 0)
			return 0;
		if (depth > EVENTS_NEST_MAX) {
			events_report(e, events_here(e), "nested too deeply");
			return -1;
		}
		if (events_next(e) < 0)
			return -1;
	}
}

bool
events_scalar_is(const struct events *e, const char *word)
{
	size_t len = strlen(word);

	return e->event.type == YAML_SCALAR_EVENT && e->event.data.scalar.length == len &&
	    memcmp(e->event.data.scalar.value, word, len) == 0;
}

bool
events_scalar_is_plain(const struct events *e)
{
	return e->event.type == YAML_SCALAR_EVENT && e->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}

bool
events_is_null(const struct events *e)
{
	return events_scalar_is_plain(e) &&
	    (events_scalar_is(e, "") || events_scalar_is(e, "~") || events_scalar_is(e, "null") ||
		events_scalar_is(e, "Null") || events_scalar_is(e, "NULL"));
}

int
events_want_scalar(struct events *e, const char *wants, bool *ret_ok)
{
	*ret_ok = e->event.type == YAML_SCALAR_EVENT && !events_is_null(e) && e->event.data.scalar.length > 0;
	if (*ret_ok || e->event.type == YAML_ALIAS_EVENT)
		return 0;
	events_report(e, events_here(e),
	    e->event.type == YAML_SCALAR_EVENT ? "a value is missing; write %s"
					       : "a single value belongs here; write %s",
	    wants);
	return events_skip(e);
}

/* The words of a kind of mapping for a message: "host, cidr, ports". */
struct known {
	char text[256];
};
static struct known
known_words(const struct events_keys *keys)
{
	struct known known = {.text = ""};
	size_t len = 0;

	for (size_t i = 0; i < keys->count && len < sizeof(known.text); i++)
		len += (size_t)snprintf(
		    known.text + len, sizeof(known.text) - len, i == 0 ? "%s" : ", %s", keys->keys[i].word);
	return known;
}

int
events_refuse_mapping(struct events *e, const char *why, const struct events_keys *keys)
{
	if (e->event.type != YAML_ALIAS_EVENT)
		events_report(e, events_here(e), "%s%s", why, known_words(keys).text);
	return events_skip(e);
}

/* The row of the key that the current event is; NULL after a complaint. */
static const struct events_key *
find_key(struct events *e, const struct events_keys *keys, struct place *places)
{
	for (size_t i = 0; i < keys->count; i++) {
		if (!events_scalar_is(e, keys->keys[i].word))
			continue;
		if (places[i].line != 0) {
			events_report(e, events_here(e), "'%s' stands twice, first in line %zu; keep one",
			    keys->keys[i].word, places[i].line);
			return NULL;
		}
		places[i] = events_here(e);
		return &keys->keys[i];
	}
	if (e->event.type == YAML_SCALAR_EVENT)
		events_report(e, events_here(e), "unknown key '%s'; known here: %s", events_quote(e).text,
		    known_words(keys).text);
	else if (e->event.type != YAML_ALIAS_EVENT)
		events_report(e, events_here(e), "a key is a single word");
	return NULL;
}

int
events_read_mapping(struct events *e, const struct events_keys *keys, void *reader, void *into,
    struct place ret_places[EVENTS_KEYS_MAX])
{
	const struct events_key *key;

	memset(ret_places, 0, EVENTS_KEYS_MAX * sizeof(*ret_places));
	for (;;) {
		if (events_next(e) < 0)
			return -1;
		if (e->event.type == YAML_MAPPING_END_EVENT)
			return 0;
		key = find_key(e, keys, ret_places);
		if (key == NULL && (events_skip(e) < 0 || events_next(e) < 0 || events_skip(e) < 0))
			return -1;
		if (key != NULL && (events_next(e) < 0 || key->read(reader, into, key->what) < 0))
			return -1;
	}
}

void
events_origin(const struct events *e, char ret_origin[RULE_ORIGIN_MAX], const char *fmt, ...)
{
	char place[48], file[RULE_ORIGIN_MAX];
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(place, sizeof(place), fmt, ap);
	va_end(ap);
	escape_terminal(e->file, strlen(e->file), file, sizeof(file));
	snprintf(ret_origin, RULE_ORIGIN_MAX, "%.*s%s", RULE_ORIGIN_MAX - 1 - len, file, place);
}

const char *
events_scalar(const struct events *e, size_t *ret_len)
{
	*ret_len = e->event.data.scalar.length;
	return (const char *)e->event.data.scalar.value;
}

/* A NUL ends a C string somewhere below and bad UTF-8 is read in several ways: neither gets as far as the YAML reader.
 */
static int
check_bytes(struct events *e, const unsigned char *text, size_t len)
{
	struct place at = {1, 1};
	uint32_t point;
	size_t step;

	for (size_t i = 0; i < len; i += step) {
		if (text[i] == '\0') {
			events_report(e, at, "a NUL byte does not belong into a policy");
			return -1;
		}
		step = utf8_decode(text + i, len - i, &point);
		if (step == 0) {
			events_report(e, at, "byte 0x%02x is not valid UTF-8", text[i]);
			return -1;
		}
		at.column++;
		if (text[i] == '\n')
			at = (struct place){at.line + 1, 1};
	}
	return 0;
}

int
events_open(struct events *e, const char *file, const char *text, size_t len)
{
	const unsigned char *bytes = (const unsigned char *)text;

	memset(e, 0, sizeof(*e));
	e->file = file;
	e->code = ERROR_POLICY;
	/* A byte order mark, which some editors leave in front, says nothing about UTF-8. */
	if (len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0) {
		bytes += 3;
		len -= 3;
	}
	if (!yaml_parser_initialize(&e->yaml)) {
		events_report(e, (struct place){1, 1}, "no memory to read it");
		e->code = ERROR_LIMIT;
		return -1;
	}
	yaml_parser_set_encoding(&e->yaml, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&e->yaml, bytes, len);
	return check_bytes(e, bytes, len);
}

void
events_close(struct events *e)
{
	events_drop(e);
	yaml_parser_delete(&e->yaml);
}

int
events_fail(const struct events *e, struct error *err)
{
	char text[ERROR_TEXT_MAX] = "", line[POLICY_NOTE_TEXT_MAX + FILE_TEXT_MAX + 48], file[FILE_TEXT_MAX];
	size_t used = 0, shown = 0;

	escape_terminal(e->file, strlen(e->file), file, sizeof(file));
	for (; shown < e->complaints.count; shown++) {
		const struct policy_note *note = &e->complaints.notes[shown];
		int len = snprintf(line, sizeof(line), "%s%s:%u:%u: %s", used > 0 ? "\n" : "", file, note->line,
		    note->column, note->text);

		if (used + (size_t)len + MORE_ROOM >= sizeof(text))
			break;
		memcpy(text + used, line, (size_t)len + 1);
		used += (size_t)len;
	}
	if (shown == e->error_count)
		return error_set(err, e->code, "%s", text);
	return error_set(err, e->code, "%s%s(%zu more errors)", text, used > 0 ? "\n" : "", e->error_count - shown);
}
