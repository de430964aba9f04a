/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policy/names/shared.h"

#include <libpsl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define NEVER_LIST_HOSTS
#include "never_list.inc"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Both tables are sorted by name. Index of the first row with this name, or -1. */
static ptrdiff_t
shared_first(const char *name)
{
	size_t low = 0, high = COUNT(shared_hosts);

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(shared_hosts[middle].name, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low < COUNT(shared_hosts) && strcmp(shared_hosts[low].name, name) == 0 ? (ptrdiff_t)low : -1;
}

/* The row of exactly this name, of one of these kinds (a set of bits), or NULL. */
static const struct shared_host *
shared_find(const char *name, unsigned int kinds)
{
	ptrdiff_t first = shared_first(name);

	if (first < 0)
		return NULL;
	for (size_t i = (size_t)first; i < COUNT(shared_hosts) && strcmp(shared_hosts[i].name, name) == 0; i++)
		if ((kinds >> shared_hosts[i].kind & 1) != 0)
			return &shared_hosts[i];
	return NULL;
}

/* The row that makes everything below the name shared: its own, or a tree's that it lies in. */
static const struct shared_host *
shared_span_find(const char *name)
{
	const struct shared_host *row = shared_find(name, 1u << SHARED_SUFFIX | 1u << SHARED_TREE | 1u << SHARED_ABOVE);

	for (const char *dot = strchr(name, '.'); row == NULL && dot != NULL; dot = strchr(dot + 1, '.'))
		row = shared_find(dot + 1, 1u << SHARED_TREE);
	return row;
}

/* Is the name a suffix in a section of the list, or do suffixes lie right below it ("*.ck")? */
static bool
is_suffix(const char *name, int section)
{
	char below[NAME_TEXT_MAX + 3];

	if (psl_is_public_suffix2(psl_builtin(), name, section | PSL_TYPE_NO_STAR_RULE) != 0)
		return true;
	snprintf(below, sizeof(below), "x.%s", name);
	return psl_is_public_suffix2(psl_builtin(), below, section | PSL_TYPE_NO_STAR_RULE) != 0;
}

enum shared_span
shared_span_of(const struct name *name, const char **ret_what)
{
	const struct shared_host *row = shared_span_find(name->text);

	if (ret_what != NULL)
		*ret_what = row == NULL ? NULL : row->what;
	if (memchr(name->text, '.', name->len) == NULL || is_suffix(name->text, PSL_TYPE_ICANN))
		return SHARED_SPAN_PUBLIC;
	return row != NULL || is_suffix(name->text, PSL_TYPE_PRIVATE) ? SHARED_SPAN_MANY : SHARED_SPAN_ONE;
}

bool
shared_is_apex(const struct name *name)
{
	const char *dot = memchr(name->text, '.', name->len);

	return dot != NULL && psl_is_public_suffix2(psl_builtin(), dot + 1, PSL_TYPE_ICANN) != 0 &&
	    psl_is_public_suffix2(psl_builtin(), name->text, PSL_TYPE_ICANN) == 0;
}

const char *
shared_registered(const struct name *name)
{
	const char *ending = psl_registrable_domain(psl_builtin(), name->text);

	return ending == NULL ? name->text : ending;
}

const char *
shared_list_date(char ret_date[SHARED_DATE_MAX])
{
	time_t made = psl_builtin_file_time();
	struct tm tm;

	if (made == 0 || gmtime_r(&made, &tm) == NULL || strftime(ret_date, SHARED_DATE_MAX, "%Y-%m-%d", &tm) == 0)
		snprintf(ret_date, SHARED_DATE_MAX, "unknown");
	return ret_date;
}

const struct shared_host *
shared_host_list(size_t *ret_count)
{
	*ret_count = COUNT(shared_hosts);
	return shared_hosts;
}

const struct shared_host *
shared_host_find(const struct name *name)
{
	return shared_find(name->text, 1u << SHARED_HOST);
}

const struct noted_name *
shared_noted_list(size_t *ret_count)
{
	*ret_count = COUNT(noted_names);
	return noted_names;
}

/* The row of exactly this name, by binary search; NULL when there is none. */
static const struct noted_name *
noted_find(const char *name)
{
	size_t low = 0, high = COUNT(noted_names);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = strcmp(noted_names[middle].name, name);

		if (order == 0)
			return &noted_names[middle];
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

const struct noted_name *
shared_noted_find(const struct name *name)
{
	const struct noted_name *row = noted_find(name->text);

	for (const char *dot = strchr(name->text, '.'); row == NULL && dot != NULL; dot = strchr(dot + 1, '.'))
		row = noted_find(dot + 1);
	return row;
}
