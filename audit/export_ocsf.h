/* SPDX-License-Identifier: GPL-3.0-or-later */
/* OCSF, for its two files alone: an event while it is put together. */
#ifndef POSTERN_AUDIT_EXPORT_OCSF_H
#define POSTERN_AUDIT_EXPORT_OCSF_H

#include "audit/export.h"

#include <jansson.h>

enum ocsf_severity { OCSF_SEVERITY_INFORMATIONAL = 1, OCSF_SEVERITY_LOW, OCSF_SEVERITY_MEDIUM, OCSF_SEVERITY_HIGH };

/* A class, and the category it is in. */
struct ocsf_class {
	int uid, category_uid;
	const char *name, *category;
};

struct ocsf_activity {
	int id;
	const char *name;
};

struct ocsf {
	const struct query_row *row;
	enum export_ocsf version;
	json_t *event;
	json_t *profiles; /* metadata.profiles, array of strings */
	json_t *unmapped; /* what the schema, or this version of it, has no place for */
};

/* What the event is, and how grave. */
void ocsf_put_class(
    struct ocsf *ocsf, const struct ocsf_class *class, struct ocsf_activity activity, enum ocsf_severity severity);

/* Say that a profile is applied: its members are none of the class otherwise. */
void ocsf_put_profile(struct ocsf *ocsf, const char *profile);

/* 1 Success, 2 Failure, 0 Unknown. */
void ocsf_put_status(struct ocsf *ocsf, int status);

/* The members of an event of kind QUERY_EVENT. */
void ocsf_put_event(struct ocsf *ocsf);

#endif
