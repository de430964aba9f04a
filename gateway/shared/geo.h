/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Databases of addresses: in which country an address is, and which network (autonomous system) has it. Files in
 * MaxMind's DB format, of any maker; read by libmaxminddb, which nothing but geo.c sees.
 *
 * What a database says is never a reason to allow: it feeds deny rules and the log. Whatever cannot be told (no
 * database, no entry, an entry in an unknown layout, a damaged one) is "not known", and a deny rule about places takes
 * that for the place it denies (snapshot_decide_place). */
#ifndef POSTERN_GATEWAY_GEO_H
#define POSTERN_GATEWAY_GEO_H

#include "base/error.h"
#include "policy/names/addr.h"
#include "policy/compiled/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* Name of a network's owner, and NUL; a longer one is cut. */
#define GEO_ORG_MAX 64
/* Database type, and NUL. */
#define GEO_TYPE_MAX 64

enum geo_kind { GEO_COUNTRY = 0, GEO_ASN, GEO_KIND_MAX };

struct geo_db; /* opaque */

/* One of each kind, or NULL: none. All zero is a good start. */
struct geo {
	struct geo_db *dbs[GEO_KIND_MAX];
};

/* What is known of one address. */
struct geo_place {
	struct addr_place at;
	char org[GEO_ORG_MAX]; /* who has the network: UTF-8 without control characters; "": not known */
};

/* What a database says of itself; all zero: there is none. */
struct geo_about {
	char type[GEO_TYPE_MAX]; /* "GeoLite2-Country": printable ASCII without quotes and backslashes; "?": not said */
	int64_t built_us;        /* microseconds since the epoch */
};

/* Read the database behind the descriptor, which stays the caller's; named is the file that people know it by. Before
 * the role gives up its root: the library wants a path. 0, or -1 with ERROR_CORRUPT: not such a file, damaged, or one
 * without any entry of this kind in a layout that is known. */
int geo_open(struct geo *geo, enum geo_kind kind, int fd, const char *named, struct error *err);
void geo_close(struct geo *geo);

/* Where is the address? Unknown parts are empty. No system call, no allocation. */
void geo_lookup(const struct geo *geo, const struct addr *addr, struct geo_place *ret_place);

/* "KP, AS64500"; "KP"; "AS64500"; "" when nothing is known. Returns ret_text. */
#define GEO_PLACE_TEXT_MAX 20
const char *geo_place_format(const struct geo_place *place, char ret_text[GEO_PLACE_TEXT_MAX]);

/* False when there is no database of this kind. */
bool geo_about(const struct geo *geo, enum geo_kind kind, struct geo_about *ret_about);
/* Is it of the form that geo_about gives? For one that came in a message. */
bool geo_about_valid(const struct geo_about *about);

/* Which database do the policy's rules need that is not there? Static text that says so and how to mend it; NULL: none.
 */
const char *geo_lacks(const struct geo *geo, const struct snapshot *policy);

/* "country", "asn"; and the option that names the file, "--country-db". */
const char *geo_kind_text(enum geo_kind kind);
const char *geo_kind_option(enum geo_kind kind);

#endif
