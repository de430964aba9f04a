/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a database of countries and as one of networks: it is refused, or what comes out of it is bounded and
 * harmless. */
#include "gateway/shared/geo.h"

#include "policy/names/country.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void
check_place(const struct geo *geo, const struct addr *addr)
{
	struct geo_place place;

	geo_lookup(geo, addr, &place);
	if (place.at.country[0] != '\0' && (!country_is_code(place.at.country) || place.at.country[2] != '\0'))
		abort();
	if (memchr(place.org, '\0', sizeof(place.org)) == NULL)
		abort();
	for (const char *at = place.org; *at != '\0'; at++)
		if ((*at > 0 && *at < 0x20) || *at == 0x7f)
			abort();
}

/* Addresses from its own bytes, so that the search learns where the tree leads. */
static void
check_places(const struct geo *geo, const uint8_t *bytes, size_t len)
{
	struct addr addr = {.family = 6};

	for (size_t at = 0; at + sizeof(addr.bytes) <= len && at < 4 * sizeof(addr.bytes); at += sizeof(addr.bytes)) {
		memcpy(addr.bytes, bytes + at, sizeof(addr.bytes));
		check_place(geo, &addr);
	}
	for (unsigned int first = 0; first < 256; first += 5) {
		addr = (struct addr){.family = 4, .bytes = {(uint8_t)first, 2, 3, 4}};
		check_place(geo, &addr);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("geo", MFD_CLOEXEC);

	if (fd < 0 || write(fd, bytes, len) != (ssize_t)len)
		abort();
	for (enum geo_kind kind = 0; kind < GEO_KIND_MAX; kind++) {
		struct geo geo = {{NULL}};
		struct geo_about about;
		struct error err;

		if (geo_open(&geo, kind, fd, "fuzz.mmdb", &err) < 0)
			continue;
		if (!geo_about(&geo, kind, &about) || !geo_about_valid(&about))
			abort();
		check_places(&geo, bytes, len);
		geo_close(&geo);
	}
	close(fd);
	return 0;
}
