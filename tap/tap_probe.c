/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Versions and configuration files say little about a kernel with backports, missing modules or a
 * sandbox of its own around it; so each thing an attach leans on is done, in namespaces that vanish afterwards (F-14).
 * Each feature is tried in a transaction of its own, so that the first missing one can be named together with what
 * brings it. At the end a whole sandbox is attached and detached. */
#include "tap/link.h"
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

static void
probe_rule_socket(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, PROBE_CHAIN);

	nft_rule_socket_transparent(&rule, NFT_REG_1);
	nft_rule_verdict(&rule, NF_ACCEPT, NULL);
	nft_rule_end(&rule);
}

static void
probe_rule_tproxy(struct nft_batch *batch)
{
	static const uint8_t loopback[4] = {127, 0, 0, 1}, port[2] = {TAP_TPROXY_PORT >> 8, TAP_TPROXY_PORT & 0xff};
	struct nft_rule rule = nft_rule_start(batch, PROBE_CHAIN);

	nft_rule_meta(&rule, NFT_META_NFPROTO, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, NFPROTO_IPV4);
	nft_rule_meta(&rule, NFT_META_L4PROTO, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, IPPROTO_TCP);
	nft_rule_immediate(&rule, NFT_REG_1, loopback, sizeof(loopback));
	nft_rule_immediate(&rule, NFT_REG_2, port, sizeof(port));
	nft_rule_tproxy(&rule, NFPROTO_IPV4, NFT_REG_1, NFT_REG_2);
	nft_rule_end(&rule);
}

static void
probe_rule_reject(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, PROBE_CHAIN);

	nft_rule_reject(&rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
	nft_rule_end(&rule);
}

static void
probe_rule_log(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, PROBE_CHAIN);

	nft_rule_log(&rule, "probe", TAP_LOG_GROUP, TAP_LOG_SNAPLEN);
	nft_rule_end(&rule);
}

static void
probe_rule_limit(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, PROBE_CHAIN);

	nft_rule_limit(&rule, 1, 1);
	nft_rule_verdict(&rule, NF_DROP, NULL);
	nft_rule_end(&rule);
}

static void
probe_rule_counter(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, PROBE_CHAIN);

	nft_batch_counter(batch, "probe");
	nft_rule_count(&rule, "probe");
	nft_rule_end(&rule);
}

static void
probe_base(struct nft_batch *batch)
{
	nft_batch_base_chain(batch, PROBE_CHAIN, NF_INET_PRE_ROUTING, 0, NF_DROP, NULL);
}

static void
probe_set_lease(struct nft_batch *batch)
{
	static const struct nft_set set = {
	    .name = "lease",
	    .flags = NFT_SET_TIMEOUT,
	    .key_type = NFT_TYPE_CONCAT3(NFT_TYPE_IPV4, NFT_TYPE_PROTO, NFT_TYPE_PORT),
	    .key_len = 12,
	    .timeout_ms = 1000,
	    .gc_interval_ms = 1000,
	};
	static const struct nft_elem elem = {.key = {8, 8, 8, 8, IPPROTO_TCP, 0, 0, 0, 1, 187}, .timeout_ms = 1000};

	nft_batch_set(batch, &set);
	nft_batch_elems_add(batch, set.name, &elem, 1, set.key_len);
}

static void
probe_set_interval(struct nft_batch *batch)
{
	static const struct nft_set set = {
	    .name = "never",
	    .flags = NFT_SET_CONSTANT | NFT_SET_INTERVAL,
	    .key_type = NFT_TYPE_IPV4,
	    .key_len = 4,
	};
	static const struct nft_elem elems[] = {{.key = {10}}, {.key = {11}, .interval_end = true}};

	nft_batch_set(batch, &set);
	nft_batch_elems_add(batch, set.name, elems, 2, set.key_len);
}

static void
probe_set_ranges(struct nft_batch *batch)
{
	static const struct nft_set set = {
	    .name = "range",
	    .flags = NFT_SET_INTERVAL | NFT_SET_CONCAT,
	    .key_type = NFT_TYPE_CONCAT3(NFT_TYPE_IPV4, NFT_TYPE_PROTO, NFT_TYPE_PORT),
	    .key_len = 12,
	    .fields = {4, 1, 2},
	    .field_count = 3,
	};
	static const struct nft_elem elem = {
	    .key = {8, 8, 8, 0, IPPROTO_TCP, 0, 0, 0, 0, 22},
	    .key_end = {8, 8, 8, 255, IPPROTO_TCP, 0, 0, 0, 0, 23},
	    .has_key_end = true,
	};

	nft_batch_set(batch, &set);
	nft_batch_elems_add(batch, set.name, &elem, 1, set.key_len);
}

static void
probe_netdev(struct nft_batch *batch)
{
	nft_batch_base_chain(batch, "ingress", NF_NETDEV_INGRESS, 0, NF_DROP, TAP_VETH_NAME);
}

struct probe_feature {
	const char *what, *remedy;
	int family;
	void (*build)(struct nft_batch *batch);
};

static const struct probe_feature probe_features[] = {
    {"nftables", "module nf_tables, CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET", NFPROTO_INET, probe_base},
    {"nftables sets with timeouts", "module nf_tables", NFPROTO_INET, probe_set_lease},
    {"nftables interval sets", "module nf_tables", NFPROTO_INET, probe_set_interval},
    {"nftables sets of concatenated ranges", "Linux 5.6 or newer", NFPROTO_INET, probe_set_ranges},
    {"nftables counter objects", "module nf_tables (nft_counter, nft_objref)", NFPROTO_INET, probe_rule_counter},
    {"nftables limit", "module nft_limit, CONFIG_NFT_LIMIT", NFPROTO_INET, probe_rule_limit},
    {"nftables log", "modules nft_log and nfnetlink_log, CONFIG_NFT_LOG", NFPROTO_INET, probe_rule_log},
    {"nftables reject in prerouting", "Linux 5.9 or newer, module nft_reject_inet, CONFIG_NFT_REJECT_INET",
	NFPROTO_INET, probe_rule_reject},
    {"nftables socket", "module nft_socket, CONFIG_NFT_SOCKET", NFPROTO_INET, probe_rule_socket},
    {"nftables tproxy", "module nft_tproxy, CONFIG_NFT_TPROXY", NFPROTO_INET, probe_rule_tproxy},
    {"nftables netdev ingress", "CONFIG_NF_TABLES_NETDEV and CONFIG_NETFILTER_INGRESS", NFPROTO_NETDEV, probe_netdev},
};

static int
probe_nft(struct error *err)
{
	int fd = nft_open(err);

	if (fd < 0)
		return error_prefix(err, "the kernel lacks nfnetlink (module nfnetlink)");
	for (size_t i = 0; i < sizeof(probe_features) / sizeof(probe_features[0]); i++) {
		const struct probe_feature *feature = &probe_features[i];
		struct nft_batch batch;

		nft_batch_start(&batch);
		nft_batch_select(&batch, feature->family, PROBE_TABLE);
		nft_batch_table(&batch);
		if (feature->build != probe_base && feature->family == NFPROTO_INET)
			probe_base(&batch);
		feature->build(&batch);
		if (nft_batch_commit(&batch, fd, NULL, err) < 0) {
			close(fd);
			return error_prefix(err, "the kernel lacks %s (%s)", feature->what, feature->remedy);
		}
	}
	close(fd);
	return 0;
}

static int
probe_links(int other_netns, bool *ret_taps, struct error *err)
{
	int rtnl;

	/* A rootless keeper may have no /dev/net/tun. */
	*ret_taps = link_add_tap(PROBE_DEVICE, (uid_t)-1, (gid_t)-1, NULL) == 0;
	rtnl = link_open(err);
	if (rtnl < 0)
		return -1;
	if (link_add_veth(rtnl, TAP_VETH_NAME, other_netns, "eth0", NULL, err) < 0) {
		close(rtnl);
		return error_prefix(err, "no veth devices (module veth, CONFIG_VETH)");
	}
	close(rtnl);
	return 0;
}

static int
probe_inside(int other_netns, bool *ret_taps, struct error *err)
{
	if (probe_links(other_netns, ret_taps, err) < 0)
		return -1;
	return probe_nft(err);
}

static int
probe_parts(bool *ret_taps, struct error *err)
{
	struct netns_visit visit;
	int here, other, r = -1;

	if (netns_create(&here, err) < 0)
		return error_prefix(err, "no network namespaces (CONFIG_NET_NS, CAP_SYS_ADMIN)");
	if (netns_create(&other, err) < 0) {
		close(here);
		return -1;
	}
	if (netns_enter(&visit, here, err) == 0) {
		r = probe_inside(other, ret_taps, err);
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
