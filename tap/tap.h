/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keeper's hands: one sandbox's namespace, device, sysctls, nftables table and sockets, made whole or not at all.
 *
 * Only the keeper calls this (it enters namespaces with setns(2)); nothing here reads a byte that a sandbox sent.
 * Order of making: namespace, sysctls (set and read back), nft table with base policy drop, sockets, device up. Any
 * failure undoes all that was made. Enforcement does not depend on order of removal: a namespace has no uplink. */
#ifndef POSTERN_TAP_TAP_H
#define POSTERN_TAP_TAP_H

#include "base/error.h"
#include "policy/names/addr.h"
#include "policy/compiled/snapshot.h"

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Sandbox names: [a-z0-9][a-z0-9_.-]{0,62}. */
#define TAP_NAME_MAX 64
/* Kernel timeout of a lease element: a gateway that asks for less or more gets these. */
#define TAP_LEASE_MIN_S 1
#define TAP_LEASE_MAX_S 7200
/* Elements in the two lease sets of one sandbox: refuse beyond. */
#define TAP_LEASES_MAX 16384
/* Elements in one lease request. */
#define TAP_LEASE_BATCH_MAX 512

enum tap_kind { TAP_KIND_TAP, TAP_KIND_NETNS };

struct tap_config {
	char name[TAP_NAME_MAX];
	enum tap_kind kind;
	char ifname[IFNAMSIZ]; /* TAP: device inside our namespace ("tap0"); NETNS: in the container ("eth0") */
	uid_t owner_uid;       /* TAP: the user who may open it; (uid_t)-1: root only */
	gid_t owner_gid;
	uint8_t guest_mac[6];        /* all zero: choose 06:00:<guest4> (TAP), or the veth's own (NETNS) */
	struct addr guest4, router4; /* same subnet of bits4 */
	uint8_t bits4;
	struct addr guest6, router6; /* same subnet of bits6; both of family 0: IPv6 off */
	uint8_t bits6;
	int netns_fd; /* NETNS: the container's namespace, owned by the caller; else -1 */
};

/* Default addressing: 172.16.0.2/30 behind .1, fd70:6f73:7465:726e::2/64 behind ::1. */
void tap_config_init(struct tap_config *config);

/* 0, or -1 with ERROR_USAGE: names, addresses of one subnet, device names, "guest4 != router4". */
int tap_config_check(const struct tap_config *config, struct error *err);

/* Sockets that the gateway serves; each is made inside the sandbox's namespace, non-blocking, CLOEXEC, transparent.
 * Those of IPv6 are there when the sandbox has none, too. */
enum tap_socket {
	TAP_SOCKET_DNS_UDP4,
	TAP_SOCKET_DNS_UDP6, /* bound to any:53, IP_PKTINFO on */
	TAP_SOCKET_DNS_TCP4,
	TAP_SOCKET_DNS_TCP6, /* listening on any:53 */
	TAP_SOCKET_TCP4,
	TAP_SOCKET_TCP6,  /* transparent listeners (TPROXY); getsockname of an accepted
			   * socket is the original destination */
	TAP_SOCKET_NFLOG, /* nfnetlink socket bound to the sandbox's log group */
	TAP_SOCKET_MAX
};

/* Named counters in the table; each refusal rule counts before its (rate-limited) log. */
enum tap_counter {
	TAP_COUNTER_SPOOFED, /* source address, source MAC, VLAN, foreign EtherType */
	TAP_COUNTER_NEVER,   /* never-list destination */
	TAP_COUNTER_TCP,     /* bare SYN to an address without a lease, or any other stray TCP */
	TAP_COUNTER_UDP,
	TAP_COUNTER_ICMP,
	TAP_COUNTER_PROTO, /* any other IP protocol */
	TAP_COUNTER_MAX
};

struct tap; /* one attached sandbox, opaque; owns its descriptors */

struct tap_lease {
	struct addr addr;
	uint8_t proto; /* IPPROTO_TCP or IPPROTO_UDP */
	uint16_t port;
};

/* Make everything. netns_dir ("/run/netns") gets the file postern-NAME, bind-mounted, so that `ip netns` and a jailer's
 * --netns find it; NULL (rootless): no file, the namespace lives as long as the tap. When adopt is true and the file is
 * there from an earlier run of this daemon, the namespace and its device are taken over: table replaced in one
 * transaction, sets empty, sockets new. Without adopt an existing file is ERROR_EXISTS. On success *ret_tap is set; on
 * failure nothing is left behind. */
int tap_attach(
    const struct tap_config *config, const char *netns_dir, bool adopt, struct tap **ret_tap, struct error *err);

/* Hand out a socket: the caller dup()s or sends it; the tap keeps its own so that a gateway can be restarted. */
int tap_socket(const struct tap *tap, enum tap_socket which);
/* The config as it became (MAC chosen). Valid as long as the tap. */
const struct tap_config *tap_config(const struct tap *tap);
/* MAC of the router's end: the same for the same router4. Six bytes, valid as long as the tap. */
const uint8_t *tap_router_mac(const struct tap *tap);
/* Path of the namespace ("/run/netns/postern-x" or "/proc/PID/fd/N"). */
const char *tap_netns_path(const struct tap *tap);
int tap_netns_fd(const struct tap *tap);

/* A fresh UDP relay socket on any:port, IP_PKTINFO on, IPv4 or IPv6 (family 4/6). Returns a descriptor the caller owns.
 * Datagrams to leased or allowed addresses are let in to a port as long as such a socket stands there. */
int tap_socket_udp(const struct tap *tap, int family, uint16_t port, struct error *err);

/* Enter leases in one transaction and wait for the kernel's acknowledgement: (re)starts their countdown at timeout_s
 * (clamped to TAP_LEASE_MIN_S..MAX_S). Never-list addresses, ports 0 and 53, and more than the maxima are refused
 * (ERROR_CORRUPT: the caller is a gateway that should know better). Either all are in force or none was changed. Leases
 * and ranges of IPv6 are skipped where it is off. */
int tap_lease_add(struct tap *tap, const struct tap_lease *leases, size_t count, uint32_t timeout_s, struct error *err);
/* Remove leases; ones that are not there are no error. */
int tap_lease_del(struct tap *tap, const struct tap_lease *leases, size_t count, struct error *err);
/* Empty both lease sets (the gateway that knew them is gone). */
int tap_lease_flush(struct tap *tap, struct error *err);

/* Replace the interval sets (allow-by-address) in one transaction, then read the elements back and compare. On failure
 * the old ones are in force, unless it is ERROR_CORRUPT of the comparison. */
int tap_ranges_set(struct tap *tap, const struct addr_range *ranges, size_t count, struct error *err);

/* Totals since the table was made. */
int tap_counters(struct tap *tap, uint64_t ret_totals[TAP_COUNTER_MAX], struct error *err);

/* Do both tables still look as they did right after tap_intact_load (tables, chains and rules by name, handle, hook and
 * policy)? False: another program changed them. */
bool tap_intact(struct tap *tap);
/* Load both tables, or replace them, in one transaction; the sets are empty afterwards. */
int tap_intact_load(struct tap *tap, struct error *err);

/* How many sockets there are in the namespace, of any kind and any maker: the kernel's own count, which costs
 * the same however many the machine has. */
int tap_sockets_count(struct tap *tap, size_t *ret_count, struct error *err);
/* Are there sockets in the namespace other than those the tap made and those accepted from them (sock_diag)? The kernel
 * looks through all TCP and UDP sockets of the machine for that: most of a millisecond, and more on a busy one. */
int tap_sockets_foreign(struct tap *tap, size_t *ret_count, struct error *err);

/* Remove all: sockets, device, file, namespace. Never blocks on RCU in the caller (a thread does).
 * keep: leave namespace, device and base table for tap_attach(adopt) after a restart; sets are flushed. */
void tap_detach(struct tap *tap, bool keep);

/* Is this a sandbox's name, and does it end within size bytes? */
bool tap_config_name_valid(const char *name, size_t size);

/* Remove what an earlier run kept for a sandbox (name as tap_config_check allows it) that will not be adopted: file and
 * mount, and with them the namespace and its device. Harmless when there is nothing. */
void tap_detach_kept(const char *name, const char *netns_dir);

/* The host-side second layer: table inet <table_name>, output chain for sockets of uid: refuse never-list destinations
 * except the resolvers (any port 53). Replaces an earlier one of that name. */
struct tap_host_resolver {
	struct addr addr;
	uint16_t port;
};
int tap_host_chain_set(
    const char *table_name, uid_t uid, const struct tap_host_resolver *resolvers, size_t count, struct error *err);
int tap_host_chain_remove(const char *table_name, struct error *err);
bool tap_host_chain_present(const char *table_name);

/* Prove by doing, in a scratch namespace, that the kernel has what attach needs: tun, veth, nf_tables with tproxy,
 * socket, reject, log, set timeouts, concatenations, interval sets. On failure names the first missing one and the
 * module or configuration that brings it. *ret_taps: may this process make TAP devices? Without them container
 * sandboxes work all the same. For `postern doctor` and for the keeper's start. */
int tap_probe(bool *ret_taps, struct error *err);

#endif
