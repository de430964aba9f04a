/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a sandbox is asked to look like, and whether that can be. */
#include "tap/tap_internal.h"

#include <ctype.h>
#include <string.h>

/* Prefix lengths: a subnet of two usable addresses at least; not wider than what a sandbox could need. */
#define CONFIG_BITS4_MIN 8
#define CONFIG_BITS4_MAX 30
#define CONFIG_BITS6_MIN 16
#define CONFIG_BITS6_MAX 126

void
tap_config_init(struct tap_config *config)
{
	static const uint8_t guest4[4] = {172, 16, 0, 2}, router4[4] = {172, 16, 0, 1};
	static const uint8_t guest6[16] = {0xfd, 0x70, 0x6f, 0x73, 0x74, 0x65, 0x72, 0x6e, [15] = 2};
	static const uint8_t router6[16] = {0xfd, 0x70, 0x6f, 0x73, 0x74, 0x65, 0x72, 0x6e, [15] = 1};

	memset(config, 0, sizeof(*config));
	config->kind = TAP_KIND_TAP;
	strcpy(config->ifname, "tap0");
	config->owner_uid = (uid_t)-1;
	config->owner_gid = (gid_t)-1;
	config->guest4 = addr_from_ipv4(guest4);
	config->router4 = addr_from_ipv4(router4);
	config->bits4 = 30;
	config->guest6 = addr_from_ipv6(guest6);
	config->router6 = addr_from_ipv6(router6);
	config->bits6 = 64;
	config->netns_fd = -1;
}

bool
tap_config_name_valid(const char *name, size_t size)
{
	size_t len = strnlen(name, size);

	if (len == 0 || len == size || !(islower((unsigned char)name[0]) || isdigit((unsigned char)name[0])))
		return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (!islower(c) && !isdigit(c) && c != '_' && c != '.' && c != '-')
			return false;
	}
	return true;
}

/* The name is a file below /proc/sys/net/ipv4/conf, where "all" and "default" mean something else. */
static bool
config_ifname_ok(const char *name)
{
	static const char *const reserved[] = {"lo", "all", "default", ".", "..", TAP_VETH_NAME};
	size_t len = strnlen(name, IFNAMSIZ);

	if (len == 0 || len == IFNAMSIZ)
		return false;
	for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
		if (strcmp(name, reserved[i]) == 0)
			return false;
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)name[i];

		if (!isascii(c) || (!isalnum(c) && c != '_' && c != '.' && c != '-'))
			return false;
	}
	return true;
}

/* Can a host of the subnet have the address? */
static bool
config_host_ok(const struct addr *addr, uint8_t bits)
{
	const unsigned int width = addr->family == 4 ? 32 : 128;
	bool zeros = true, ones = true;

	for (unsigned int bit = bits; bit < width; bit++) {
		if (addr->bytes[bit / 8] & 0x80 >> bit % 8)
			zeros = false;
		else
			ones = false;
	}
	if (zeros || (ones && addr->family == 4))
		return false;
	if (addr->family == 4) /* this network, loopback, multicast and beyond */
		return addr->bytes[0] != 0 && addr->bytes[0] != 127 && addr->bytes[0] < 224;
	return addr->bytes[0] != 0xff && !(addr->bytes[0] == 0xfe && (addr->bytes[1] & 0xc0) == 0x80) &&
	    addr->bytes[0] != 0;
}

/* Can the two addresses, of one family, be guest and router of one subnet? */
static int
config_subnet_check(int family, const struct addr *guest, const struct addr *router, uint8_t bits, uint8_t bits_min,
    uint8_t bits_max, struct error *err)
{
	struct prefix subnet = {.addr = *router, .bits = bits};
	char text[ADDR_TEXT_MAX], other[ADDR_TEXT_MAX];

	if (guest->family != family || router->family != family)
		return error_set(err, ERROR_USAGE, "guest and gateway need an IPv%d address each", family);
	if (bits < bits_min || bits > bits_max)
		return error_set(
		    err, ERROR_USAGE, "IPv%d prefix length %u is not within %u..%u", family, bits, bits_min, bits_max);
	for (unsigned int bit = bits; bit < (family == 4 ? 32u : 128u); bit++)
		subnet.addr.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	if (addr_equal(guest, router))
		return error_set(
		    err, ERROR_USAGE, "guest and gateway have the same address %s", addr_format(guest, text));
	if (!addr_prefix_contains(&subnet, guest))
		return error_set(err, ERROR_USAGE, "guest %s is not in the subnet of gateway %s/%u",
		    addr_format(guest, text), addr_format(router, other), bits);
	if (!config_host_ok(guest, bits))
		return error_set(err, ERROR_USAGE, "%s cannot be a guest's address", addr_format(guest, text));
	if (!config_host_ok(router, bits))
		return error_set(err, ERROR_USAGE, "%s cannot be a gateway's address", addr_format(router, text));
	return 0;
}

int
tap_config_check(const struct tap_config *config, struct error *err)
{
	if (!tap_config_name_valid(config->name, sizeof(config->name)))
		return error_set(err, ERROR_USAGE,
		    "a sandbox's name is 1 to %d of a-z 0-9 _ . - and begins with a letter or digit", TAP_NAME_MAX - 1);
	if (config->kind != TAP_KIND_TAP && config->kind != TAP_KIND_NETNS)
		return error_set(err, ERROR_USAGE, "unknown kind of sandbox");
	if (!config_ifname_ok(config->ifname))
		return error_set(err, ERROR_USAGE,
		    "a device's name is 1 to %d letters, digits, _ . - and none of the kernel's own", IFNAMSIZ - 1);
	if (config->guest_mac[0] & 1)
		return error_set(err, ERROR_USAGE, "the guest's MAC address is a multicast one");
	if (config_subnet_check(
		4, &config->guest4, &config->router4, config->bits4, CONFIG_BITS4_MIN, CONFIG_BITS4_MAX, err) < 0)
		return -1;
	if (config->guest6.family == 0 && config->router6.family == 0)
		return 0; /* IPv6 off */
	return config_subnet_check(
	    6, &config->guest6, &config->router6, config->bits6, CONFIG_BITS6_MIN, CONFIG_BITS6_MAX, err);
}
