/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which hosts belong together: those of one page or one command.
 *
 * Theory of operation. Redirects and the parts of a page are not visible inside TLS. Visible are the chains of aliases
 * (CNAME) in answers, and when a name was first met. So this is a guess; it only orders the text, and what is
 * suggested does not depend on it. The unit is the registered domain, so that a wildcard for its hosts stands in one
 * place.
 *
 * A domain new to the history belongs to the site (another domain) to which
 *  - the name leads, or from which a chain led to it: one of the names in the chain was met before with that site; else
 *  - a connection was let through last, if that was at most SUGGEST_SITE_S before.
 * Otherwise it is a site of its own. A domain that belongs to a site is not a site itself, so that a busy guest's hosts
 * do not all end up in one group: one begins with a connection to its site and takes new domains for some seconds. */
#include "cli/policy/suggest_site.h"

#include "policy/reason.h"

#include <jansson.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define ALIAS_MARK "CNAME "

/* One name in a chain, and the domain whose name led to it first. */
struct suggest_alias {
	struct name name;
	struct suggest_domain *domain;
};

static int
domain_compare(const void *a, const void *b)
{
	const struct suggest_domain *left = a, *right = b;

	return strcmp(left->text, right->text);
}

static int
alias_compare(const void *a, const void *b)
{
	const struct suggest_alias *left = a, *right = b;

	return strcmp(left->name.text, right->name.text);
}

static struct suggest_alias *
alias_find(const struct suggest *suggest, const struct name *name)
{
	struct suggest_alias key = {.name = *name}, **found;

	found = tfind(&key, &suggest->aliases, alias_compare);
	return found == NULL ? NULL : *found;
}

static void
alias_add(struct suggest *suggest, const struct name *name, struct suggest_domain *domain)
{
	struct suggest_alias *alias;

	if (alias_find(suggest, name) != NULL || suggest->alias_count == HISTORY_TARGETS_MAX)
		return;
	alias = malloc(sizeof(*alias));
	if (alias == NULL) {
		suggest->no_memory = true;
		return;
	}
	*alias = (struct suggest_alias){.name = *name, .domain = domain};
	if (tsearch(alias, &suggest->aliases, alias_compare) == NULL) {
		suggest->no_memory = true;
		free(alias);
		return;
	}
	suggest->alias_count++;
}

size_t
suggest_site_chain(const struct query_row *row, struct name chain[SUGGEST_CHAIN_MAX])
{
	json_t *answers = row->kind != QUERY_DNS || row->answers.bytes == NULL
	    ? NULL
	    : json_loadb(row->answers.bytes, row->answers.len, 0, NULL);
	size_t count = 0, at;
	json_t *answer;

	json_array_foreach(answers, at, answer)
	{
		const char *text = json_string_value(answer);

		if (count < SUGGEST_CHAIN_MAX && text != NULL && strncmp(text, ALIAS_MARK, strlen(ALIAS_MARK)) == 0 &&
		    name_canonical(text + strlen(ALIAS_MARK), strlen(text + strlen(ALIAS_MARK)), &chain[count]) ==
			NAME_OK)
			count++;
	}
	json_decref(answers);
	return count;
}

/* The site of a domain that is first met with this name at this time; NULL: a site of its own. */
static struct suggest_domain *
site_of(const struct suggest *suggest, const struct name *name, const struct name *chain, size_t count, int64_t ts_us)
{
	const struct suggest_alias *alias = alias_find(suggest, name);
	int64_t past_us;

	for (size_t i = 0; alias == NULL && i < count; i++)
		alias = alias_find(suggest, &chain[i]);
	if (alias != NULL)
		return alias->domain->site;
	if (suggest->latest == NULL || __builtin_sub_overflow(ts_us, suggest->latest_us, &past_us) || past_us < 0 ||
	    past_us > SUGGEST_SITE_S * (int64_t)1000000)
		return NULL;
	return suggest->latest;
}

struct suggest_domain *
suggest_site_join(struct suggest *suggest, const struct name *name, uint8_t domain_at, const struct name *chain,
    size_t count, int64_t ts_us)
{
	struct suggest_domain key = {.members = 1}, *domain, **found;

	memcpy(key.text, name->text + domain_at, name->len - domain_at + 1u);
	found = tfind(&key, &suggest->domains, domain_compare);
	domain = found == NULL ? malloc(sizeof(*domain)) : *found;
	if (found == NULL && domain != NULL) {
		struct suggest_domain *site = site_of(suggest, name, chain, count, ts_us);

		*domain = key;
		domain->site = site == NULL ? domain : site;
		if (tsearch(domain, &suggest->domains, domain_compare) == NULL) {
			free(domain);
			domain = NULL;
		} else if (site != NULL) {
			site->members++;
		}
	}
	if (domain == NULL)
		suggest->no_memory = true;
	for (size_t i = 0; domain != NULL && i < count; i++)
		alias_add(suggest, &chain[i], domain);
	return domain;
}

void
suggest_site_connected(struct suggest *suggest, struct suggest_domain *domain, const struct query_row *row)
{
	if (row->kind != QUERY_CONNECTION || row->verdict != VERDICT_ALLOWED || domain->site != domain)
		return;
	suggest->latest = domain;
	suggest->latest_us = row->ts_us;
}

void
suggest_site_free(struct suggest *suggest)
{
	tdestroy(suggest->aliases, free);
	tdestroy(suggest->domains, free);
}
