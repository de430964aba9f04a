/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Versions and configuration files say little about a kernel with backports, missing modules or a
 * sandbox of its own around it; so each thing an attach leans on is done, in namespaces that vanish afterwards (F-14).
 * Each feature is tried in a transaction of its own, so that the first missing one can be named together with what
 * brings it. At the end a whole sandbox is attached and detached. */
#include "tap/link.h"
#include "tap/match.h"
#include "tap/netns.h"
#include "tap/nft.h"
#include "tap/tap_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_TABLE "postern_probe"
#define PROBE_CHAIN "prerouting"
#define PROBE_DEVICE "tap0"

/* What an attach leans on in nftables, each tried in a transaction of its own. */
enum probe_what {
	PROBE_BASE,
	PROBE_SET_LEASE,
	PROBE_SET_INTERVAL,
	PROBE_SET_RANGES,
	PROBE_COUNTER,
	PROBE_LIMIT,
	PROBE_LOG,
	PROBE_REJECT,
	PROBE_SOCKET,
	PROBE_TPROXY,
	PROBE_NETDEV,
	PROBE_MAX
};

static const struct {
	const char *name, *remedy;
} probe_features[] = {
    [PROBE_BASE] = {"nftables", "module nf_tables, CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET"},
    [PROBE_SET_LEASE] = {"nftables sets with timeouts", "module nf_tables"},
    [PROBE_SET_INTERVAL] = {"nftables interval sets", "module nf_tables"},
    [PROBE_SET_RANGES] = {"nftables sets of concatenated ranges", "Linux 5.6 or newer"},
    [PROBE_COUNTER] = {"nftables counter objects", "module nf_tables (nft_counter, nft_objref)"},
    [PROBE_LIMIT] = {"nftables limit", "module nft_limit, CONFIG_NFT_LIMIT"},
    [PROBE_LOG] = {"nftables log", "modules nft_log and nfnetlink_log, CONFIG_NFT_LOG"},
    [PROBE_REJECT] = {"nftables reject in prerouting",
	"Linux 5.9 or newer, module nft_reject_inet, CONFIG_NFT_REJECT_INET"},
    [PROBE_SOCKET] = {"nftables socket", "module nft_socket, CONFIG_NFT_SOCKET"},
    [PROBE_TPROXY] = {"nftables tproxy", "module nft_tproxy, CONFIG_NFT_TPROXY"},
    [PROBE_NETDEV] = {"nftables netdev ingress", "CONFIG_NF_TABLES_NETDEV and CONFIG_NETFILTER_INGRESS"},
};

/* Adds a set with an element or two. */
static void
probe_build_set(struct nft_batch *batch, enum probe_what what)
{
	static const uint32_t concat = NFT_TYPE_CONCAT3(NFT_TYPE_IPV4, NFT_TYPE_PROTO, NFT_TYPE_PORT);
	static const struct nft_set sets[] = {
	    [PROBE_SET_LEASE] = {"lease", NFT_SET_TIMEOUT, concat, 12, .timeout_ms = 1000, .gc_interval_ms = 1000},
	    [PROBE_SET_INTERVAL] = {"never", NFT_SET_CONSTANT | NFT_SET_INTERVAL, NFT_TYPE_IPV4, 4},
	    [PROBE_SET_RANGES] = {"range", NFT_SET_INTERVAL | NFT_SET_CONCAT, concat, 12, {4, 1, 2}, 3},
	};
	static const struct nft_elem elems[][2] = {
	    [PROBE_SET_LEASE] = {{.key = {8, 8, 8, 8, IPPROTO_TCP, 0, 0, 0, 1, 187}, .timeout_ms = 1000}},
	    [PROBE_SET_INTERVAL] = {{.key = {10}}, {.key = {11}, .interval_end = true}},
	    [PROBE_SET_RANGES] = {{.key = {8, 8, 8, 0, IPPROTO_TCP, 0, 0, 0, 0, 22},
		.key_end = {8, 8, 8, 255, IPPROTO_TCP, 0, 0, 0, 0, 23},
		.has_key_end = true}},
	};

	nft_batch_set(batch, &sets[what]);
	nft_batch_elems_add(
	    batch, sets[what].name, elems[what], what == PROBE_SET_INTERVAL ? 2 : 1, sets[what].key_len);
}

/* Adds a rule with the expression. */
static void
probe_build_rule(struct nft_batch *batch, enum probe_what what)
{
	static const uint8_t loopback[4] = {127, 0, 0, 1}, port[2] = {TAP_TPROXY_PORT >> 8, TAP_TPROXY_PORT & 0xff};
	struct nft_rule rule = nft_rule_start(batch, PROBE_CHAIN);

	if (what == PROBE_COUNTER) {
		nft_batch_counter(batch, "probe");
		nft_rule_count(&rule, "probe");
	} else if (what == PROBE_LIMIT) {
		nft_rule_limit(&rule, 1, 1);
	} else if (what == PROBE_LOG) {
		nft_rule_log(&rule, "probe", TAP_LOG_GROUP, TAP_LOG_SNAPLEN);
	} else if (what == PROBE_REJECT) {
		nft_rule_reject(&rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
	} else if (what == PROBE_SOCKET) {
		nft_rule_socket_transparent(&rule, NFT_REG_1);
	} else {
		match_family(&rule, NFPROTO_IPV4);
		match_l4proto(&rule, IPPROTO_TCP);
		nft_rule_immediate(&rule, NFT_REG_1, loopback, sizeof(loopback));
		nft_rule_immediate(&rule, NFT_REG_2, port, sizeof(port));
		nft_rule_tproxy(&rule, NFPROTO_IPV4, NFT_REG_1, NFT_REG_2);
	}
	nft_rule_end(&rule);
}

/* Tries the features in order. */
static int
probe_nft(struct error *err)
{
	int fd = nft_open(err);

	if (fd < 0)
		return error_prefix(err, "the kernel lacks nfnetlink (module nfnetlink)");
	for (enum probe_what what = 0; what < PROBE_MAX; what++) {
		struct nft_batch batch;

		nft_batch_start(&batch);
		nft_batch_select(&batch, what == PROBE_NETDEV ? NFPROTO_NETDEV : NFPROTO_INET, PROBE_TABLE);
		nft_batch_table(&batch);
		if (what == PROBE_NETDEV)
			nft_batch_base_chain(&batch, "ingress", NF_NETDEV_INGRESS, 0, NF_DROP, TAP_VETH_NAME);
		else
			nft_batch_base_chain(&batch, PROBE_CHAIN, NF_INET_PRE_ROUTING, 0, NF_DROP, NULL);
		if (what >= PROBE_SET_LEASE && what <= PROBE_SET_RANGES)
			probe_build_set(&batch, what);
		else if (what != PROBE_BASE && what != PROBE_NETDEV)
			probe_build_rule(&batch, what);
		if (nft_batch_commit(&batch, fd, NULL, err) < 0) {
			close(fd);
			return error_prefix(
			    err, "the kernel lacks %s (%s)", probe_features[what].name, probe_features[what].remedy);
		}
	}
	close(fd);
	return 0;
}

/* Everything but a whole sandbox, in two scratch namespaces. */
static int
probe_parts(bool *ret_taps, struct error *err)
{
	struct netns_visit visit;
	int here, other, rtnl, r = -1;

	if (netns_create(&here, err) < 0)
		return error_prefix(err, "no network namespaces (CONFIG_NET_NS, CAP_SYS_ADMIN)");
	if (netns_create(&other, err) < 0) {
		close(here);
		return -1;
	}
	if (netns_enter(&visit, here, err) == 0) {
		/* A rootless keeper may have no /dev/net/tun. */
		*ret_taps = link_add_tap(PROBE_DEVICE, (uid_t)-1, (gid_t)-1, NULL) == 0;
		rtnl = link_open(err);
		if (rtnl >= 0) {
			r = link_add_veth(rtnl, TAP_VETH_NAME, other, "eth0", NULL, err);
			if (r < 0)
				error_prefix(err, "no veth devices (module veth, CONFIG_VETH)");
			close(rtnl);
		}
		if (r == 0)
			r = probe_nft(err);
		netns_leave(&visit);
	}
	close(other);
	close(here);
	return r;
}

/* A whole sandbox; a container's where there are no TAPs. */
static int
probe_whole(bool taps, struct error *err)
{
	struct tap_config config;
	struct tap *tap;
	int r;

	tap_config_init(&config);
	strcpy(config.name, "probe");
	if (!taps) {
		config.kind = TAP_KIND_NETNS;
		strcpy(config.ifname, "eth0");
		if (netns_create(&config.netns_fd, err) < 0)
			return -1;
	}
	r = tap_attach(&config, NULL, false, &tap, err);
	if (r == 0)
		tap_detach(tap, false);
	if (!taps)
		close(config.netns_fd);
	return r;
}

int
tap_probe(bool *ret_taps, struct error *err)
{
	bool taps = false;

	if (probe_parts(&taps, err) < 0 || probe_whole(taps, err) < 0)
		return -1;
	*ret_taps = taps;
	return 0;
}
