/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Databases of addresses of every layout, made by tests/lab/mmdb, and damaged ones. */
#include "gateway/shared/geo.h"
#include "gateway/shared/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define FILE_MAX 65536

static char dir[] = "/tmp/postern-geo.XXXXXX";

static const char *const lines =
    "45.45.0.0/16 US 64502 Big\n"
    "45.45.45.10/32 KP 64500 Lab Net\n"
    "45.45.45.11/32 - 64503 hex:6c610a1b5b6dc3a9c285\n"
    "45.45.45.12/32 ZZ - -\n"
    "45.45.45.13/32 xk 4294967295 A-name-of-an-owner-that-is-far-longer-than-what-a-record-holds-of-it-and-so-is-cut\n";
static const char *const lines6 = "2600:1:2::/48 DE 64501 Sechs\n";

static const char *
path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static void
write_file(const char *name, const void *bytes, size_t len)
{
	FILE *file = fopen(path_of(name), "w");

	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, len, file), len);
	assert_int_equal(fclose(file), 0);
}

static size_t
read_file(const char *name, uint8_t bytes[FILE_MAX])
{
	FILE *file = fopen(path_of(name), "r");
	size_t len;

	assert_non_null(file);
	len = fread(bytes, 1, FILE_MAX, file);
	assert_true(len > 0 && len < FILE_MAX);
	fclose(file);
	return len;
}

static void
make(const char *name, const char *layout, int version)
{
	char command[256];
	FILE *tool;

	snprintf(command, sizeof(command), "tests/lab/mmdb %s %s %d", path_of(name), layout, version);
	tool = popen(command, "w");
	assert_non_null(tool);
	fputs(lines, tool);
	if (version == 6)
		fputs(lines6, tool);
	assert_int_equal(pclose(tool), 0);
}

static int
setup(void **state)
{
	static const char *const layouts[] = {"nested", "flat", "text", "registered", "other"};
	char name[32];

	(void)state;
	if (mkdtemp(dir) == NULL)
		return -1;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		snprintf(name, sizeof(name), "%s6", layouts[i]);
		make(name, layouts[i], 6);
	}
	make("nested4", "nested", 4);
	return 0;
}

static int
teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static int
open_as(struct geo *geo, enum geo_kind kind, const char *name, struct error *err)
{
	int fd = sealed_copy(path_of(name), err), rc;

	assert_true(fd >= 0);
	rc = geo_open(geo, kind, fd, path_of(name), err);
	close(fd);
	return rc;
}

static struct geo
open_both(const char *name)
{
	struct geo geo = {0};
	struct error err = {0};

	if (open_as(&geo, GEO_COUNTRY, name, &err) < 0 || open_as(&geo, GEO_ASN, name, &err) < 0)
		fail_msg("%s", err.text);
	return geo;
}

static struct geo_place
look_up(const struct geo *geo, const char *text)
{
	struct geo_place place;
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	memset(&place, 0x55, sizeof(place));
	geo_lookup(geo, &addr, &place);
	return place;
}

static void
expect(const struct geo *geo, const char *text, const char *country, uint32_t asn, const char *org)
{
	struct geo_place place = look_up(geo, text);

	assert_string_equal(place.at.country, country);
	assert_int_equal(place.at.asn, asn);
	assert_string_equal(place.org, org);
}

/* IPv4 in an IPv6 tree included. */
static void
layouts_are_read(void **state)
{
	static const struct {
		const char *name;
		bool owner;
	} cases[] = {{"nested6", true}, {"flat6", true}, {"text6", true}, {"registered6", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct geo geo = open_both(cases[i].name);

		expect(&geo, "45.45.45.10", "KP", 64500, cases[i].owner ? "Lab Net" : "");
		expect(&geo, "45.45.1.1", "US", 64502, cases[i].owner ? "Big" : "");
		expect(&geo, "2600:1:2::10", "DE", 64501, cases[i].owner ? "Sechs" : "");
		expect(&geo, "45.46.1.1", "", 0, "");
		expect(&geo, "2600:1:3::10", "", 0, "");
		geo_close(&geo);
	}
}

static void
values_are_made_harmless(void **state)
{
	struct geo geo = open_both("nested6");
	struct geo_place place;

	(void)state;
	/* Line feed, escape and a C1 control are no text; letters outside ASCII are. */
	expect(&geo, "45.45.45.11", "", 64503, "la??[m\xc3\xa9?");
	expect(&geo, "45.45.45.12", "", 0, "");
	place = look_up(&geo, "45.45.45.13");
	assert_string_equal(place.at.country, "XK");
	assert_int_equal(place.at.asn, UINT32_MAX);
	assert_int_equal(strlen(place.org), GEO_ORG_MAX - 1);
	geo_close(&geo);
}

/* Bytes that are no UTF-8, and a character that the limit would cut in two. */
static void
owners_are_utf8(void **state)
{
	static uint8_t bytes[FILE_MAX];
	size_t len = read_file("nested6", bytes);
	uint8_t *at = memmem(bytes, len, "Lab Net", 7);
	struct geo geo;

	(void)state;
	assert_non_null(at);
	memcpy(at, "L\xff\xc3.\xed\xa0\x80", 7);
	write_file("bytes", bytes, len);
	geo = open_both("bytes");
	expect(&geo, "45.45.45.10", "KP", 64500, "L??.???");
	geo_close(&geo);
	at = memmem(bytes, len, "A-name-of", 9);
	assert_non_null(at);
	memcpy(at + GEO_ORG_MAX - 2, "\xc3\xa9", 2);
	write_file("cut", bytes, len);
	geo = open_both("cut");
	assert_int_equal(strlen(look_up(&geo, "45.45.45.13").org), GEO_ORG_MAX - 2);
	geo_close(&geo);
}

static void
ipv4_alone_knows_no_ipv6(void **state)
{
	struct geo geo = open_both("nested4");

	(void)state;
	expect(&geo, "45.45.45.10", "KP", 64500, "Lab Net");
	expect(&geo, "2600:1:2::10", "", 0, "");
	geo_close(&geo);
}

static void
a_database_says_what_it_is(void **state)
{
	struct geo geo = open_both("flat6");
	struct geo_about about;
	char text[GEO_PLACE_TEXT_MAX];
	struct geo_place place = look_up(&geo, "45.45.45.13");

	(void)state;
	assert_true(geo_about(&geo, GEO_COUNTRY, &about));
	assert_string_equal(about.type, "Lab-flat");
	assert_true(about.built_us > 1700000000 * INT64_C(1000000));
	assert_true(geo_about_valid(&about));
	about.type[1] = '"';
	assert_false(geo_about_valid(&about));
	memset(about.type, 'x', sizeof(about.type));
	assert_false(geo_about_valid(&about));
	assert_string_equal(geo_place_format(&place, text), "XK, AS4294967295");
	place.at.asn = 0;
	assert_string_equal(geo_place_format(&place, text), "XK");
	place = look_up(&geo, "45.45.45.11");
	assert_string_equal(geo_place_format(&place, text), "AS64503");
	geo_close(&geo);
	assert_false(geo_about(&geo, GEO_COUNTRY, &about));
	expect(&geo, "45.45.45.10", "", 0, "");
}

static void
expect_corrupt(const char *name, enum geo_kind kind, const char *why)
{
	struct geo geo = {0};
	struct error err;

	assert_int_equal(open_as(&geo, kind, name, &err), -1);
	assert_int_equal(err.code, ERROR_CORRUPT);
	assert_non_null(strstr(err.text, path_of(name)));
	assert_non_null(strstr(err.text, geo_kind_option(kind)));
	assert_non_null(strstr(err.text, "fetch the file again"));
	assert_non_null(strstr(err.text, why));
	assert_null(geo.dbs[kind]);
}

static void
what_is_no_database_is_refused(void **state)
{
	(void)state;
	write_file("empty", "", 0);
	expect_corrupt("empty", GEO_COUNTRY, "");
	write_file("text", "version: 1\n", 11);
	expect_corrupt("text", GEO_ASN, "");
	expect_corrupt("other6", GEO_COUNTRY, "country.iso_code, country_code");
	expect_corrupt("other6", GEO_ASN, "autonomous_system_number or asn");
}

/* Cut anywhere, or with a byte wrong anywhere: refused, or read within bounds. */
static void
damage_is_survived(void **state)
{
	static uint8_t bytes[FILE_MAX], damaged[FILE_MAX];
	size_t len = read_file("nested6", bytes), opened = 0;
	struct geo geo = {0};
	struct error err;

	(void)state;
	for (size_t cut = 0; cut < len; cut += 7) {
		write_file("damaged", bytes, cut);
		assert_int_equal(open_as(&geo, GEO_COUNTRY, "damaged", &err), -1);
	}
	for (size_t at = 0; at < len; at++) {
		memcpy(damaged, bytes, len);
		damaged[at] ^= (uint8_t)(1u << at % 8 | 0x80u);
		write_file("damaged", damaged, len);
		if (open_as(&geo, GEO_COUNTRY, "damaged", &err) < 0)
			continue;
		opened++;
		(void)look_up(&geo, "45.45.45.10");
		(void)look_up(&geo, "45.45.45.13");
		(void)look_up(&geo, "2600:1:2::10");
		geo_close(&geo);
	}
	assert_true(opened > 0);
}

static void
a_copy_is_a_copy(void **state)
{
	struct error err;
	struct geo geo = {0};
	int fd;

	(void)state;
	make("replaced", "nested", 6);
	fd = sealed_copy(path_of("replaced"), &err);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(errno, EPERM);
	assert_int_equal(ftruncate(fd, 1), -1);
	assert_int_equal(geo_open(&geo, GEO_COUNTRY, fd, "replaced", &err), 0);
	close(fd);
	/* In place, which would end a process that has the file itself mapped. */
	assert_int_equal(truncate(path_of("replaced"), 0), 0);
	assert_string_equal(look_up(&geo, "45.45.45.10").at.country, "KP");
	geo_close(&geo);
	assert_int_equal(sealed_copy(path_of("nowhere"), &err), -1);
	assert_non_null(strstr(err.text, "No such file"));
	assert_int_equal(sealed_copy(dir, &err), -1);
	assert_non_null(strstr(err.text, "not a regular file"));
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	assert_int_equal(sealed_copy(path_of("fifo"), &err), -1);
}

static struct snapshot *
policy_of(const char *text)
{
	struct snapshot *snapshot;
	struct policy policy;
	struct error err;
	int fd;

	policy_init(&policy);
	assert_int_equal(policy_parse(text, strlen(text), "p.yaml", &policy, &err), 0);
	fd = snapshot_compile(&policy, &err);
	policy_free(&policy);
	assert_true(fd >= 0);
	snapshot = snapshot_open(fd, &err);
	close(fd);
	assert_non_null(snapshot);
	return snapshot;
}

static void
what_lacks_is_said(void **state)
{
	struct snapshot *country = policy_of("version: 1\ndeny:\n  - country: KP\n");
	struct snapshot *asn = policy_of("version: 1\ndeny:\n  - asn: 64500\n");
	struct snapshot *neither = policy_of("version: 1\ndeny:\n  - host: a.example\n");
	struct geo geo = {0};
	struct error err;

	(void)state;
	assert_null(geo_lacks(&geo, neither));
	assert_non_null(strstr(geo_lacks(&geo, country), "--country-db"));
	assert_non_null(strstr(geo_lacks(&geo, asn), "--asn-db"));
	assert_int_equal(open_as(&geo, GEO_COUNTRY, "nested6", &err), 0);
	assert_null(geo_lacks(&geo, country));
	assert_non_null(strstr(geo_lacks(&geo, asn), "--asn-db"));
	geo_close(&geo);
	snapshot_free(country);
	snapshot_free(asn);
	snapshot_free(neither);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(layouts_are_read),
	    cmocka_unit_test(values_are_made_harmless),
	    cmocka_unit_test(owners_are_utf8),
	    cmocka_unit_test(ipv4_alone_knows_no_ipv6),
	    cmocka_unit_test(a_database_says_what_it_is),
	    cmocka_unit_test(what_is_no_database_is_refused),
	    cmocka_unit_test(damage_is_survived),
	    cmocka_unit_test(a_copy_is_a_copy),
	    cmocka_unit_test(what_lacks_is_said),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
