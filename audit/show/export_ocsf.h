/* SPDX-License-Identifier: GPL-3.0-or-later */
/* OCSF, for its two files alone: an event while it is put together. */
#ifndef POSTERN_AUDIT_EXPORT_OCSF_H
#define POSTERN_AUDIT_EXPORT_OCSF_H

#include "audit/show/export.h"

#include <jansson.h>

/* The schema's number for what it has no number for. */
#define OCSF_OTHER 99

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
void export_ocsf_put_class(
    struct ocsf *ocsf, const struct ocsf_class *class, struct ocsf_activity activity, enum ocsf_severity severity);

/* Say that a profile is applied: its members are none of the class otherwise. */
void export_ocsf_put_profile(struct ocsf *ocsf, const char *profile);

/* 1 Success, 2 Failure, 0 Unknown. */
void export_ocsf_put_status(struct ocsf *ocsf, int status);

/* Has the version asked for what came with this one? */
bool export_ocsf_has(const struct ocsf *ocsf, enum export_ocsf since);

/* Where a member goes that came with a version: object, or "unmapped". */
json_t *export_ocsf_place(const struct ocsf *ocsf, enum export_ocsf since, json_t *object);

/* What connections and queries have alike. host: "" when there is none; what: the protocol, for the message. */
void export_ocsf_put_src(struct ocsf *ocsf);
void export_ocsf_put_dst(struct ocsf *ocsf, const char *host);
void export_ocsf_put_connection_info(struct ocsf *ocsf);
void export_ocsf_put_verdict(struct ocsf *ocsf);
void export_ocsf_put_message(struct ocsf *ocsf, const char *what);
enum ocsf_severity export_ocsf_severity(const struct query_row *row);

/* Protocol and direction of the guest's connection, or of ours to the origin. The caller frees it. */
json_t *export_ocsf_connection_info(const struct ocsf *ocsf, const char *unmapped_key, struct query_text community_id);

/* The members of a row of kind QUERY_CONNECTION. */
void export_ocsf_connection(struct ocsf *ocsf);

/* The members of an event of kind QUERY_EVENT. */
void export_ocsf_event(struct ocsf *ocsf);

#endif
