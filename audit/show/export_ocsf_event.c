/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events as OCSF. What somebody did to a sandbox or its policy is Entity Management (3004): the schema's class for what
 * an administrator creates, updates and deletes, and unlike API Activity it does not ask for a client's address, which
 * a local socket has not. The daemon's own life is Application Lifecycle (6002). What wants somebody's eye (foreign
 * rules, a log that was replaced or had to wait, a soft limit) is a Detection Finding (2004). The rest, an agent's step
 * among it, is a Base Event: no class of the schema says what it says. */
#include "audit/show/export_ocsf.h"
#include "audit/show/render.h"
#include "audit/show/export_row.h"
#include "audit/show/json_line.h"
#include "audit/record.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#define OCSF_ENTITY_POLICY 5
#define OCSF_FINDING_NEW 1

enum ocsf_shape {
	OCSF_BASE,
	OCSF_SANDBOX, /* Entity Management of a sandbox */
	OCSF_POLICY,  /* Entity Management of its policy */
	OCSF_DAEMON,  /* Application Lifecycle */
	OCSF_FINDING, /* Detection Finding */
};

static const struct ocsf_class ocsf_classes[] = {
    [OCSF_BASE] = {0, 0, "Base Event", "Uncategorized"},
    [OCSF_SANDBOX] = {3004, 3, "Entity Management", "Identity & Access Management"},
    [OCSF_POLICY] = {3004, 3, "Entity Management", "Identity & Access Management"},
    [OCSF_DAEMON] = {6002, 6, "Application Lifecycle", "Application Activity"},
    [OCSF_FINDING] = {2004, 2, "Detection Finding", "Findings"},
};

struct ocsf_event {
	enum ocsf_shape shape;
	struct ocsf_activity activity;
	enum ocsf_severity severity;
};

#define OCSF_CREATE                                                                                                    \
	{                                                                                                              \
		1, "Create"                                                                                            \
	}
#define OCSF_UPDATE                                                                                                    \
	{                                                                                                              \
		3, "Update"                                                                                            \
	}
static const struct ocsf_event ocsf_events[] = {
    [0] = {OCSF_BASE, {OCSF_OTHER, "Other"}, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_DAEMON_START] = {OCSF_DAEMON, {3, "Start"}, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_DAEMON_STOP] = {OCSF_DAEMON, {4, "Stop"}, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_ATTACH] = {OCSF_SANDBOX, OCSF_CREATE, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_DETACH] = {OCSF_SANDBOX, {4, "Delete"}, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_POLICY] = {OCSF_POLICY, OCSF_UPDATE, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_ROLE_CRASH] = {OCSF_DAEMON, {4, "Stop"}, OCSF_SEVERITY_HIGH},
    [EVENT_TAMPERED] = {OCSF_FINDING, OCSF_CREATE, OCSF_SEVERITY_HIGH},
    [EVENT_AUDIT_RESUMED] = {OCSF_FINDING, OCSF_CREATE, OCSF_SEVERITY_MEDIUM},
    [EVENT_RESTORED] = {OCSF_SANDBOX, OCSF_UPDATE, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_AUDIT_REPLACED] = {OCSF_FINDING, OCSF_CREATE, OCSF_SEVERITY_HIGH},
    [EVENT_GRANT_EXPIRED] = {OCSF_POLICY, OCSF_UPDATE, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_GRANT_USED_UP] = {OCSF_POLICY, OCSF_UPDATE, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_LIMIT_SOFT] = {OCSF_FINDING, OCSF_CREATE, OCSF_SEVERITY_LOW},
    [EVENT_MARK] = {OCSF_BASE, {OCSF_OTHER, "Mark"}, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_AUDIT_ALARM] = {OCSF_FINDING, OCSF_CREATE, OCSF_SEVERITY_MEDIUM},
    [EVENT_PRUNED] = {OCSF_BASE, {OCSF_OTHER, "Pruned"}, OCSF_SEVERITY_INFORMATIONAL},
    [EVENT_RECORDS_LOST] = {OCSF_FINDING, OCSF_CREATE, OCSF_SEVERITY_HIGH},
};
static_assert(sizeof(ocsf_events) / sizeof(ocsf_events[0]) == EVENT_KIND_MAX, "a class for each event");

/* Who did it: the kernel's word for uid and pid, the process's own for its name and command. */
static void
ocsf_put_actor(struct ocsf *ocsf, json_t *detail)
{
	json_t *actor = json_object(), *user = json_object();

	if (ocsf->row->uid.set)
		json_line_put_decimal(user, "uid", ocsf->row->uid.value);
	json_line_put_own(actor, "user", user);
	json_line_put_own(actor, "process", export_row_process(detail, "cmd_line"));
	/* Up to 1.3 the class has its actor from this profile. */
	if (json_object_size(actor) > 0)
		export_ocsf_put_profile(ocsf, "host");
	json_line_put_own(ocsf->event, "actor", actor);
}

/* The sandbox, or its policy of the generation given by a member of detail. */
static json_t *
ocsf_entity(struct ocsf *ocsf, bool policy, json_t *generation)
{
	json_t *entity = json_object();

	json_line_put_bytes(entity, "name", ocsf->row->sandbox);
	json_line_put_decimal(entity, "uid", ocsf->row->sandbox_id);
	json_line_put_text(entity, "type", policy ? "Policy" : "Sandbox");
	if (ocsf->version >= EXPORT_OCSF_1_3)
		json_line_put_integer(entity, "type_id", policy ? OCSF_ENTITY_POLICY : OCSF_OTHER);
	if (json_is_integer(generation))
		json_line_put_decimal(entity, "version", json_integer_value(generation));
	return entity;
}

static void
ocsf_put_entity(struct ocsf *ocsf, bool policy, json_t *detail)
{
	export_ocsf_put_status(ocsf, 1);
	ocsf_put_actor(ocsf, detail);
	json_line_put_own(ocsf->event, "entity", ocsf_entity(ocsf, policy, json_object_get(detail, "from")));
	if (!policy)
		return;
	if (json_object_get(detail, "to") != NULL)
		json_line_put_own(ocsf->event, "entity_result", ocsf_entity(ocsf, true, json_object_get(detail, "to")));
	json_line_put_member(ocsf->event, "comment", detail, "change");
	json_line_put_member(ocsf->event, "comment", detail, "rule");
}

static void
ocsf_put_daemon(struct ocsf *ocsf, json_t *detail)
{
	json_t *app = json_pack("{s:s, s:s}", "name", "posternd", "vendor_name", "postern");

	json_line_put_member(app, "version", detail, "version");
	json_line_put_own(ocsf->event, "app", app);
	export_ocsf_put_status(ocsf, ocsf->row->event == EVENT_ROLE_CRASH ? 2 : 1);
}

static void
ocsf_put_finding(struct ocsf *ocsf, const char *message)
{
	json_t *finding = json_object(), *resources = json_array(), *resource;
	char text[24];

	json_line_put_text(finding, "uid", export_row_id(ocsf->row, text));
	json_line_put_text(finding, "title", message);
	json_line_put_integer(finding, "created_time", ocsf->row->ts_us / 1000);
	json_line_put_own(ocsf->event, "finding_info", finding);
	json_line_put_integer(ocsf->event, "status_id", OCSF_FINDING_NEW);
	json_line_put_text(ocsf->event, "status", "New");
	if (ocsf->row->sandbox.len > 0) {
		resource = json_pack("{s:s}", "type", "Sandbox");
		json_line_put_bytes(resource, "name", ocsf->row->sandbox);
		json_line_put_decimal(resource, "uid", ocsf->row->sandbox_id);
		json_array_append_new(resources, resource);
	}
	json_line_put_own(ocsf->event, "resources", resources);
}

/* Whose it is, where the class has no place for a sandbox; an agent's own words. */
static void
ocsf_put_base(struct ocsf *ocsf, json_t *detail)
{
	json_line_put_member(ocsf->event, "message", detail, "text");
	json_line_put_bytes(ocsf->unmapped, "sandbox", ocsf->row->sandbox);
	if (ocsf->row->sandbox_id != 0)
		json_line_put_integer(ocsf->unmapped, "sandbox_id", ocsf->row->sandbox_id);
	json_line_put_number(ocsf->unmapped, "uid", ocsf->row->uid);
}

void
export_ocsf_event(struct ocsf *ocsf)
{
	unsigned int kind = render_index(ocsf->row->event);
	const struct ocsf_event *event = &ocsf_events[kind < EVENT_KIND_MAX ? kind : 0];
	const char *message = export_row_event_message(kind);
	json_t *detail = json_line_load_object(ocsf->row->detail);

	export_ocsf_put_class(ocsf, &ocsf_classes[event->shape], event->activity, event->severity);
	json_line_put_text(ocsf->event, "message", message);
	switch (event->shape) {
	case OCSF_BASE:
		ocsf_put_base(ocsf, detail);
		break;
	case OCSF_SANDBOX:
	case OCSF_POLICY:
		ocsf_put_entity(ocsf, event->shape == OCSF_POLICY, detail);
		break;
	case OCSF_DAEMON:
		ocsf_put_daemon(ocsf, detail);
		break;
	case OCSF_FINDING:
		ocsf_put_finding(ocsf, message);
		break;
	}
	if (detail != NULL)
		json_line_put_own(ocsf->unmapped, "detail", detail);
	else
		json_line_put_bytes(ocsf->unmapped, "detail", ocsf->row->detail);
}
