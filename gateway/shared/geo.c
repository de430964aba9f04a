/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A database is a tree over the bits of addresses whose leaves are small maps. Makers agree on the
 * tree and not on the maps' keys: MaxMind and DB-IP nest ("country": {"iso_code": ...}), IPinfo, IPLocate and most
 * others are flat ("country_code", "asn", the latter a number or "AS64500"). So each value is looked for under a few
 * paths, in order, and the first that reads well counts.
 *
 * Trust. The file is the operator's, made by a third party. Its size and numbers are checked by the library at each
 * step; texts have a length, no NUL, and may hold anything. What comes out of here is bounded and harmless: a country
 * is one of ISO 3166's codes or empty, an owner's name is UTF-8 without control characters.
 *
 * The bytes are those of a sealed copy (gateway/shared/sealed.h): the file cannot change under a process that has it
 * mapped. */
#include "gateway/shared/geo.h"

#include "base/utf8.h"
#include "policy/names/country.h"

#include <assert.h>
#include <maxminddb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Nodes of the tree that are looked at to find entries of the kind: some thousand entries in real files, all of a small
 * one; a millisecond. */
#define GEO_PROBE_NODES_MAX 16384
/* Nodes that wait there: one for each bit of an IPv6 address, and the root. A damaged tree may want more, and gets
 * none. */
#define GEO_PROBE_DEPTH_MAX 129

/* A later date (the end of the year 9999, seconds since the epoch) is none. */
#define GEO_BUILT_MAX_S 253402300799

struct geo_db {
	MMDB_s mmdb;
};

/* Keys down to a value; NULL ends. */
struct geo_path {
	const char *keys[4];
};
#define GEO_PATHS(array) array, sizeof(array) / sizeof((array)[0])

static const struct geo_path country_paths[] = {
    {{"country", "iso_code"}},
    {{"country_code"}},
    {{"country"}},
    /* Of a network that is in no one country (anycast): where its owner is registered. */
    {{"registered_country", "iso_code"}},
};
static const struct geo_path asn_paths[] = {
    {{"autonomous_system_number"}},
    {{"asn"}},
    {{"traits", "autonomous_system_number"}},
};
static const struct geo_path org_paths[] = {
    {{"autonomous_system_organization"}},
    {{"as_name"}},
    {{"as_org"}},
    {{"org"}},
    {{"traits", "autonomous_system_organization"}},
};

const char *
geo_kind_text(enum geo_kind kind)
{
	static const char *const texts[] = {[GEO_COUNTRY] = "country", [GEO_ASN] = "asn"};

	static_assert(sizeof(texts) / sizeof(texts[0]) == GEO_KIND_MAX, "one word per kind");
	return texts[kind];
}

const char *
geo_kind_option(enum geo_kind kind)
{
	static const char *const texts[] = {[GEO_COUNTRY] = "--country-db", [GEO_ASN] = "--asn-db"};

	static_assert(sizeof(texts) / sizeof(texts[0]) == GEO_KIND_MAX, "one option per kind");
	return texts[kind];
}

/* The value at a path; false: there is none. */
static bool
geo_value(const MMDB_entry_s *entry, const struct geo_path *path, MMDB_entry_data_s *ret_value)
{
	MMDB_entry_s start = *entry;

	return MMDB_aget_value(&start, ret_value, path->keys) == MMDB_SUCCESS && ret_value->has_data;
}

/* -- readers: one value each; false when it is not of the form
 * --------------------------------------------------------- */

/* A country's two letters, in either case. */
static bool
geo_read_country(const MMDB_entry_data_s *value, struct geo_place *place)
{
	char code[2];

	if (value->type != MMDB_DATA_TYPE_UTF8_STRING || value->data_size != sizeof(code))
		return false;
	for (size_t i = 0; i < sizeof(code); i++) {
		code[i] = value->utf8_string[i];
		if (code[i] >= 'a' && code[i] <= 'z')
			code[i] = (char)(code[i] - 'a' + 'A');
	}
	/* "EU", "ZZ" and their like are no country. */
	if (!country_is_code(code))
		return false;
	memcpy(place->at.country, code, sizeof(code));
	return true;
}

/* "AS64500" or "64500". */
static bool
geo_parse_asn(const char *text, size_t len, uint32_t *ret_asn)
{
	uint64_t number = 0;
	size_t at = len > 2 && (text[0] == 'A' || text[0] == 'a') && (text[1] == 'S' || text[1] == 's') ? 2 : 0;

	for (; at < len; at++) {
		if (text[at] < '0' || text[at] > '9' || number > UINT32_MAX)
			return false;
		number = number * 10 + (uint64_t)(text[at] - '0');
	}
	if (number == 0 || number > UINT32_MAX)
		return false;
	*ret_asn = (uint32_t)number;
	return true;
}

/* A number, or a text that says one. */
static bool
geo_read_asn(const MMDB_entry_data_s *value, struct geo_place *place)
{
	uint64_t number = 0;

	if (value->type == MMDB_DATA_TYPE_UTF8_STRING)
		return geo_parse_asn(value->utf8_string, value->data_size, &place->at.asn);
	if (value->type == MMDB_DATA_TYPE_UINT16)
		number = value->uint16;
	else if (value->type == MMDB_DATA_TYPE_UINT32)
		number = value->uint32;
	else if (value->type == MMDB_DATA_TYPE_UINT64)
		number = value->uint64;
	else if (value->type == MMDB_DATA_TYPE_INT32 && value->int32 > 0)
		number = (uint64_t)value->int32;
	if (number == 0 || number > UINT32_MAX)
		return false;
	place->at.asn = (uint32_t)number;
	return true;
}

/* What is no character, and control characters, become '?'; cut at a whole character. */
static void
geo_copy_text(const char *text, size_t size, char *ret_text, size_t ret_size)
{
	size_t used = 0;

	for (size_t at = 0, len; at < size; at += len) {
		uint32_t point = 0;
		bool good;

		len = utf8_decode(text + at, size - at, &point);
		good = len > 0 && point >= 0x20 && (point < 0x7f || point >= 0xa0);
		if (len == 0)
			len = 1;
		if (used + len >= ret_size)
			break;
		if (good)
			memcpy(ret_text + used, text + at, len);
		else
			ret_text[used] = '?';
		used += good ? len : 1;
	}
	ret_text[used] = '\0';
}

/* The owner's name. */
static bool
geo_read_org(const MMDB_entry_data_s *value, struct geo_place *place)
{
	if (value->type != MMDB_DATA_TYPE_UTF8_STRING || value->data_size == 0)
		return false;
	geo_copy_text(value->utf8_string, value->data_size, place->org, sizeof(place->org));
	return true;
}

/* The first path that leads to a value of the form. */
static bool
geo_read(const MMDB_entry_s *entry, const struct geo_path *paths, size_t count,
    bool (*reader)(const MMDB_entry_data_s *value, struct geo_place *place), struct geo_place *place)
{
	MMDB_entry_data_s value;

	for (size_t i = 0; i < count; i++)
		if (geo_value(entry, &paths[i], &value) && reader(&value, place))
			return true;
	return false;
}

/* All values of the kind; false: the main one is missing. */
static bool
geo_read_entry(enum geo_kind kind, const MMDB_entry_s *entry, struct geo_place *place)
{
	switch (kind) {
	case GEO_COUNTRY:
		return geo_read(entry, GEO_PATHS(country_paths), geo_read_country, place);
	case GEO_ASN:
		if (!geo_read(entry, GEO_PATHS(asn_paths), geo_read_asn, place))
			return false;
		(void)geo_read(entry, GEO_PATHS(org_paths), geo_read_org, place);
		return true;
	case GEO_KIND_MAX:
		break;
	}
	return false;
}

/* -- opening ------------------------------------------------------------------------------------------------------- */

/* Does some entry near the beginning have a value of the kind? A file of the other kind would leave every address
 * unknown without a word. */
static bool
geo_probe(const MMDB_s *mmdb, enum geo_kind kind)
{
	uint32_t waiting[GEO_PROBE_DEPTH_MAX];
	size_t count = 0;
	struct geo_place place;

	waiting[count++] = 0;
	for (size_t looked = 0; count > 0 && looked < GEO_PROBE_NODES_MAX; looked++) {
		MMDB_search_node_s node;

		if (MMDB_read_node(mmdb, waiting[--count], &node) != MMDB_SUCCESS)
			return false;
		if (node.right_record_type == MMDB_RECORD_TYPE_SEARCH_NODE && count < GEO_PROBE_DEPTH_MAX)
			waiting[count++] = (uint32_t)node.right_record;
		if (node.left_record_type == MMDB_RECORD_TYPE_SEARCH_NODE && count < GEO_PROBE_DEPTH_MAX)
			waiting[count++] = (uint32_t)node.left_record;
		if (node.left_record_type == MMDB_RECORD_TYPE_DATA &&
		    geo_read_entry(kind, &node.left_record_entry, &place))
			return true;
		if (node.right_record_type == MMDB_RECORD_TYPE_DATA &&
		    geo_read_entry(kind, &node.right_record_entry, &place))
			return true;
	}
	return false;
}

/* Why the file cannot be used (static text); NULL: it can. */
static const char *
geo_check(const MMDB_s *mmdb, enum geo_kind kind)
{
	if (mmdb->metadata.ip_version != 4 && mmdb->metadata.ip_version != 6)
		return "it is about neither IPv4 nor IPv6";
	if (geo_probe(mmdb, kind))
		return NULL;
	switch (kind) {
	case GEO_COUNTRY:
		return "no entry in it says a country: not as country.iso_code, country_code or country";
	case GEO_ASN:
		return "no entry in it says a network: not as autonomous_system_number or asn";
	case GEO_KIND_MAX:
		break;
	}
	return "no such kind";
}

/* Sets the error of a file that cannot be used, with the remedy. -1. */
static int
geo_complain(enum geo_kind kind, const char *named, const char *why, struct error *err)
{
	return error_set(err, ERROR_CORRUPT,
	    "%s %s: %s; fetch the file again (an .mmdb file, unpacked), or start without the option",
	    geo_kind_option(kind), named, why);
}

int
geo_open(struct geo *geo, enum geo_kind kind, int fd, const char *named, struct error *err)
{
	struct geo_db *db = calloc(1, sizeof(*db));
	const char *why;
	char path[32];
	int rc;

	if (db == NULL)
		return error_set(err, ERROR_SYSTEM, "no memory for the database %s", named);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	rc = MMDB_open(path, MMDB_MODE_MMAP, &db->mmdb);
	if (rc != MMDB_SUCCESS) {
		free(db);
		return geo_complain(kind, named, MMDB_strerror(rc), err);
	}
	why = geo_check(&db->mmdb, kind);
	if (why != NULL) {
		MMDB_close(&db->mmdb);
		free(db);
		return geo_complain(kind, named, why, err);
	}
	geo->dbs[kind] = db;
	return 0;
}

void
geo_close(struct geo *geo)
{
	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++) {
		if (geo->dbs[kind] == NULL)
			continue;
		MMDB_close(&geo->dbs[kind]->mmdb);
		free(geo->dbs[kind]);
		geo->dbs[kind] = NULL;
	}
}

/* -- asking -------------------------------------------------------------------------------------------------------- */

void
geo_lookup(const struct geo *geo, const struct addr *addr, struct geo_place *ret_place)
{
	struct sockaddr_storage sa;

	memset(ret_place, 0, sizeof(*ret_place));
	addr_to_sockaddr(addr, 0, &sa);
	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++) {
		MMDB_lookup_result_s found;
		int rc;

		if (geo->dbs[kind] == NULL)
			continue;
		found = MMDB_lookup_sockaddr(&geo->dbs[kind]->mmdb, (const struct sockaddr *)&sa, &rc);
		if (rc == MMDB_SUCCESS && found.found_entry)
			(void)geo_read_entry((enum geo_kind)kind, &found.entry, ret_place);
	}
}

const char *
geo_place_format(const struct geo_place *place, char ret_text[GEO_PLACE_TEXT_MAX])
{
	char network[16] = "";

	if (place->at.asn != 0)
		snprintf(network, sizeof(network), "AS%u", place->at.asn);
	snprintf(ret_text, GEO_PLACE_TEXT_MAX, "%.2s%s%s", place->at.country,
	    place->at.country[0] != '\0' && network[0] != '\0' ? ", " : "", network);
	return ret_text;
}

/* Printable ASCII that JSON needs no escape for? */
static bool
geo_is_plain(char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

bool
geo_about_valid(const struct geo_about *about)
{
	size_t len = strnlen(about->type, sizeof(about->type));

	for (size_t i = 0; i < len; i++)
		if (!geo_is_plain(about->type[i]))
			return false;
	return len < sizeof(about->type) && about->built_us >= 0;
}

bool
geo_about(const struct geo *geo, enum geo_kind kind, struct geo_about *ret_about)
{
	const MMDB_metadata_s *metadata;
	const char *type;
	size_t len = 0;

	if (geo->dbs[kind] == NULL)
		return false;
	metadata = &geo->dbs[kind]->mmdb.metadata;
	type = metadata->database_type == NULL || metadata->database_type[0] == '\0' ? "?" : metadata->database_type;
	memset(ret_about, 0, sizeof(*ret_about));
	for (; len < GEO_TYPE_MAX - 1 && type[len] != '\0'; len++)
		ret_about->type[len] = geo_is_plain(type[len]) ? type[len] : '?';
	ret_about->built_us = metadata->build_epoch > GEO_BUILT_MAX_S ? 0 : (int64_t)metadata->build_epoch * 1000000;
	return true;
}

const char *
geo_lacks(const struct geo *geo, const struct snapshot *policy)
{
	if (geo->dbs[GEO_COUNTRY] == NULL && snapshot_country_rule(policy) != SNAPSHOT_NO_RULE)
		return "no database of countries is loaded: start posternd with --country-db FILE";
	if (geo->dbs[GEO_ASN] == NULL && snapshot_asn_rule(policy) != SNAPSHOT_NO_RULE)
		return "no database of networks is loaded: start posternd with --asn-db FILE";
	return NULL;
}
