/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules about countries and networks, and whether there is a database that makes them mean something.
 *
 * Without one, no policy that has such rules is put in force. One that is in force already, when the daemon starts
 * without the database that it had before, stays: the gateways then refuse whatever those rules could be about
 * (place_unknown), and the status says so. */
#include "gateway/control/control.h"

#include "policy/text/quantity.h"

int
control_places_check(const struct control *control, const struct snapshot *snapshot, struct error *err)
{
	const uint32_t rules[] = {
	    [GEO_COUNTRY] = snapshot_country_rule(snapshot),
	    [GEO_ASN] = snapshot_asn_rule(snapshot),
	};
	const char *lacks = geo_lacks(&control->geo, snapshot);

	for (size_t kind = 0; lacks != NULL && kind < GEO_KIND_MAX; kind++)
		if (control->geo.dbs[kind] == NULL && rules[kind] != SNAPSHOT_NO_RULE)
			return error_set(err, ERROR_POLICY, "%s: %s: %s", snapshot_rule_origin(snapshot, rules[kind]),
			    snapshot_rule_text(snapshot, rules[kind]), lacks);
	return 0;
}

static json_t *
places_database(const struct control *control, enum geo_kind kind)
{
	struct geo_about about;
	char built[QUANTITY_TEXT_MAX];

	if (!geo_about(&control->geo, kind, &about))
		return json_null();
	quantity_format_instant(about.built_us, built);
	return json_pack(
	    "{s:s?, s:s, s:s}", "file", control->options->geo_files[kind], "type", about.type, "built", built);
}

json_t *
control_places_json(const struct control *control)
{
	json_t *places = json_object();

	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++)
		json_object_set_new(
		    places, geo_kind_text((enum geo_kind)kind), places_database(control, (enum geo_kind)kind));
	return places;
}

struct places_context {
	const struct control *control;
	json_t *missing;
};

static void
places_collect(struct control_sandbox *sandbox, void *context)
{
	const struct places_context *c = context;
	const char *lacks =
	    sandbox->attached && sandbox->snapshot != NULL ? geo_lacks(&c->control->geo, sandbox->snapshot) : NULL;

	if (lacks != NULL)
		json_array_append_new(c->missing,
		    json_sprintf("places: %s: what its rules by country or asn could be about is refused: %s",
			sandbox->name, lacks));
}

void
control_places_missing(struct control *control, json_t *missing)
{
	struct places_context context = {.control = control, .missing = missing};

	control_sandbox_each(control, places_collect, &context);
}
