/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A client that gets an HTTPS record may dial its hint addresses without ever asking for A, may
 * speak QUIC when h3 is offered, and encrypts the name it wants when ech is there: each of them is a way around the
 * proof of a name. So a record is never passed on. It is read into the few keys that are known to be harmless, the
 * caller removes the hints that it did not lease, and a new record is written from the rest (CASES C-15). Keys that are
 * not known vanish; a record that calls such a key mandatory vanishes as a whole, because the client must not use the
 * rest. */
#include "gateway/path/dns/dns_service.h"

#include "base/reader.h"

#include <string.h>

enum service_key {
	SERVICE_MANDATORY = 0,
	SERVICE_ALPN = 1,
	SERVICE_NO_DEFAULT_ALPN = 2,
	SERVICE_PORT = 3,
	SERVICE_HINT4 = 4,
	SERVICE_ECH = 5,
	SERVICE_HINT6 = 6,
};

/* Is it a key that may be passed on? */
static bool
key_kept(uint16_t key)
{
	return key >= SERVICE_ALPN && key <= SERVICE_HINT6 && key != SERVICE_ECH;
}

/* Reads the list of mandatory keys. NULL, or what is wrong; so do the next ones. */
static const char *
read_mandatory(struct dns_service *service, struct reader *value)
{
	int last = -1;

	do {
		uint16_t key = reader_u16(value);

		if (!reader_ok(value) || key == SERVICE_MANDATORY || key <= last)
			return "malformed mandatory keys";
		if (!key_kept(key))
			return "a mandatory key is not passed on";
		service->mandatory[key] = true;
		last = key;
	} while (reader_left(value) > 0);
	return NULL;
}

/* h3 and its drafts (h3-29), which browsers would try over UDP 443. */
static bool
alpn_is_h3(const uint8_t *id, size_t len)
{
	return len >= 2 && id[0] == 'h' && id[1] == '3' && (len == 2 || id[2] == '-');
}

/* Reads the protocols, without h3. */
static const char *
read_alpn(struct dns_service *service, struct reader *value)
{
	do {
		uint8_t len = reader_u8(value);
		const uint8_t *id = reader_bytes(value, len);

		if (!reader_ok(value) || len == 0)
			return "malformed alpn";
		if (alpn_is_h3(id, len))
			continue;
		if (service->alpn_len + 1 + len > sizeof(service->alpn))
			return "alpn too long";
		service->alpn[service->alpn_len++] = len;
		memcpy(service->alpn + service->alpn_len, id, len);
		service->alpn_len += len;
	} while (reader_left(value) > 0);
	return NULL;
}

/* Reads addresses of size bytes each. */
static const char *
read_hints(struct reader *value, size_t size, struct addr *hints, size_t *ret_count)
{
	do {
		const uint8_t *bytes = reader_bytes(value, size);
		struct addr hint;

		if (bytes == NULL)
			return "malformed hints";
		hint = size == 4 ? addr_from_ipv4(bytes) : addr_from_ipv6(bytes);
		if (size == 16 && hint.family == 4)
			return "an IPv4-mapped hint";
		if (*ret_count < DNS_SERVICE_HINTS_MAX)
			hints[(*ret_count)++] = hint;
	} while (reader_left(value) > 0);
	return NULL;
}

/* Reads the port. */
static const char *
read_port(struct dns_service *service, struct reader *value)
{
	service->port = reader_u16(value);
	return reader_done(value) && service->port != 0 ? NULL : "malformed port";
}

/* Reads one parameter, or passes over one that is not kept. */
static const char *
read_param(struct dns_service *service, uint16_t key, struct reader *value)
{
	switch (key) {
	case SERVICE_MANDATORY:
		return read_mandatory(service, value);
	case SERVICE_ALPN:
		return read_alpn(service, value);
	case SERVICE_NO_DEFAULT_ALPN:
		service->no_default_alpn = true;
		return reader_done(value) ? NULL : "malformed no-default-alpn";
	case SERVICE_PORT:
		return read_port(service, value);
	case SERVICE_HINT4:
		return read_hints(value, 4, service->hints4, &service->hint4_count);
	case SERVICE_HINT6:
		return read_hints(value, 16, service->hints6, &service->hint6_count);
	default: /* ech, and unknown keys */
		return NULL;
	}
}

/* RFC 9460 section 2.2: keys strictly ascending, so none twice. */
static const char *
read_params(struct dns_service *service, struct reader *r)
{
	int last = -1;

	while (reader_left(r) > 0) {
		uint16_t key = reader_u16(r);
		struct reader value = reader_sub(r, reader_u16(r));
		const char *wrong;

		if (!reader_ok(r) || key <= last)
			return "malformed parameters";
		wrong = read_param(service, key, &value);
		if (wrong != NULL)
			return wrong;
		last = key;
	}
	return reader_ok(r) ? NULL : "malformed parameters";
}

/* The target must be the owner itself: "." or the same name, never compressed (RFC 9460 section 2.2). */
static bool
read_own_target(struct reader *r, const struct name *owner)
{
	size_t start = r->at;
	struct name target;
	uint8_t size;

	do {
		size = reader_u8(r);
		if (size > 63)
			return false;
		reader_bytes(r, size);
	} while (reader_ok(r) && size != 0);
	if (!reader_ok(r))
		return false;
	if (r->at - start == 1)
		return true;
	return name_from_wire(r->bytes + start, r->at - start, &target) == NAME_OK && name_equal(&target, owner);
}

const char *
dns_service_read(const void *rdata, size_t len, const struct name *owner, struct dns_service *ret_service)
{
	struct reader r = reader_make(rdata, len);
	const char *wrong;

	memset(ret_service, 0, sizeof(*ret_service));
	ret_service->priority = reader_u16(&r);
	if (!reader_ok(&r) || ret_service->priority == 0)
		return "alias mode";
	if (!read_own_target(&r, owner))
		return "another target name";
	wrong = read_params(ret_service, &r);
	if (wrong != NULL)
		return wrong;
	if (ret_service->no_default_alpn && ret_service->alpn_len == 0)
		return "only h3 is offered";
	return NULL;
}

struct service_writer {
	uint8_t *at;
};

/* Writes 16 bits. */
static void
put_u16(struct service_writer *w, size_t value)
{
	*w->at++ = (uint8_t)(value >> 8);
	*w->at++ = (uint8_t)value;
}

/* Writes a parameter: key, length, value. */
static void
put_param(struct service_writer *w, enum service_key key, const void *value, size_t len)
{
	put_u16(w, key);
	put_u16(w, len);
	memcpy(w->at, value, len);
	w->at += len;
}

/* Writes a parameter of addresses, unless there are none. */
static void
put_hints(struct service_writer *w, enum service_key key, const struct addr *hints, size_t count, size_t size)
{
	if (count == 0)
		return;
	put_u16(w, key);
	put_u16(w, count * size);
	for (size_t i = 0; i < count; i++, w->at += size)
		memcpy(w->at, hints[i].bytes, size);
}

/* Is each mandatory key there? ret_list gets them as on the wire. */
static bool
mandatory_list(const struct dns_service *service, uint8_t ret_list[14], size_t *ret_len)
{
	const bool present[7] = {
	    [SERVICE_ALPN] = service->alpn_len > 0,
	    [SERVICE_NO_DEFAULT_ALPN] = service->no_default_alpn,
	    [SERVICE_PORT] = service->port != 0,
	    [SERVICE_HINT4] = service->hint4_count > 0,
	    [SERVICE_HINT6] = service->hint6_count > 0,
	};

	*ret_len = 0;
	for (uint8_t key = 0; key < 7; key++) {
		if (!service->mandatory[key])
			continue;
		if (!present[key])
			return false;
		ret_list[(*ret_len)++] = 0;
		ret_list[(*ret_len)++] = key;
	}
	return true;
}

size_t
dns_service_write(const struct dns_service *service, uint8_t ret_rdata[DNS_SERVICE_RDATA_MAX])
{
	struct service_writer w = {.at = ret_rdata};
	const uint8_t port[2] = {(uint8_t)(service->port >> 8), (uint8_t)service->port};
	uint8_t mandatory[14];
	size_t mandatory_len;

	_Static_assert(2 + 1 + 4 + 14 + 4 + DNS_SERVICE_ALPN_MAX + 4 + 6 + 4 + 4 * DNS_SERVICE_HINTS_MAX + 4 +
		    16 * DNS_SERVICE_HINTS_MAX <=
		DNS_SERVICE_RDATA_MAX,
	    "the largest record fits");
	if (!mandatory_list(service, mandatory, &mandatory_len))
		return 0;
	put_u16(&w, service->priority);
	*w.at++ = 0; /* ".": the owner itself */
	if (mandatory_len > 0)
		put_param(&w, SERVICE_MANDATORY, mandatory, mandatory_len);
	if (service->alpn_len > 0)
		put_param(&w, SERVICE_ALPN, service->alpn, service->alpn_len);
	if (service->no_default_alpn)
		put_param(&w, SERVICE_NO_DEFAULT_ALPN, "", 0);
	if (service->port != 0)
		put_param(&w, SERVICE_PORT, port, sizeof(port));
	put_hints(&w, SERVICE_HINT4, service->hints4, service->hint4_count, 4);
	put_hints(&w, SERVICE_HINT6, service->hints6, service->hint6_count, 16);
	return (size_t)(w.at - ret_rdata);
}
