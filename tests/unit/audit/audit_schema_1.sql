-- SPDX-License-Identifier: GPL-3.0-or-later
-- An audit log of schema version 1, as postern 0.1.0 made it before there were chain and seals, with a few records: what
-- schema_migrate must bring over. Numbers (seq) have holes, as they had where rows changed.
PRAGMA journal_mode = WAL;
PRAGMA application_id = 1886614642;
PRAGMA user_version = 1;
BEGIN;
CREATE TABLE meta (
	key TEXT PRIMARY KEY,   -- 'created_us', 'version' (of the postern that made the file), 'probe'
	value ANY
) STRICT, WITHOUT ROWID;
CREATE TABLE verdicts (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT;
CREATE TABLE reasons (id INTEGER PRIMARY KEY, word TEXT NOT NULL, sentence TEXT NOT NULL) STRICT;
CREATE TABLE ends (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT;
CREATE TABLE name_sources (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT;
CREATE TABLE event_kinds (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT;
CREATE TABLE sandboxes (
	id INTEGER PRIMARY KEY, -- microseconds since the epoch when it was attached; never used again
	name TEXT NOT NULL,     -- may come again later, under another id
	kind TEXT NOT NULL,     -- 'tap' or 'netns'
	attached_ts INTEGER,    -- microseconds since the epoch, UTC, as every *ts
	detached_ts INTEGER,    -- NULL while attached
	uid INTEGER,            -- who attached it
	detail TEXT             -- JSON: guest addresses, mac, device
) STRICT;
CREATE INDEX sandboxes_name ON sandboxes (name);
CREATE TABLE connections (   -- one row for each attempt, allowed or not
	id INTEGER PRIMARY KEY, -- sender's epoch << 31, plus a counter; the 16 hex digits of the JSON output
	seq INTEGER NOT NULL,   -- grows with every insert and change in any table: the cursor of log -f
	sandbox_id INTEGER NOT NULL,
	ts INTEGER NOT NULL,    -- first seen
	last_ts INTEGER,        -- refused packets: last seen
	count INTEGER NOT NULL, -- refused packets: how many so far; else 1
	proto INTEGER NOT NULL, -- IP protocol number
	src TEXT, sport INTEGER NOT NULL,
	dst TEXT, dport INTEGER NOT NULL, -- as dialled; dst NULL: many; port 0: none
	name TEXT,              -- canonical host name ([a-z0-9._-]), or NULL
	name_raw BLOB,          -- what the guest said instead, as it came: anything
	name_source INTEGER NOT NULL, -- name_sources: the proof behind the name
	verdict INTEGER NOT NULL,     -- verdicts
	reason INTEGER NOT NULL,      -- reasons
	rule TEXT,              -- deciding rule and where it stands
	detail TEXT,            -- why, where the reason alone does not tell
	generation INTEGER NOT NULL,  -- of the policy that decided
	alpn TEXT,              -- as offered in the ClientHello, or the HTTP method
	flags INTEGER NOT NULL, -- 1: ClientHello carried the ECH extension, 2: HTTP Upgrade
	bytes_out INTEGER, bytes_in INTEGER, -- payload, guest to origin and back; NULL until closed
	duration_us INTEGER,
	closed_ts INTEGER,
	end INTEGER NOT NULL    -- ends; 0: still open
) STRICT;
CREATE INDEX connections_sandbox ON connections (sandbox_id, ts);
CREATE INDEX connections_name ON connections (name, ts) WHERE name IS NOT NULL;
CREATE INDEX connections_ts ON connections (ts);
CREATE INDEX connections_seq ON connections (seq);
CREATE INDEX connections_open ON connections (id) WHERE end = 0;
CREATE TABLE dns (           -- one row for each query, or several equal ones
	id INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL,
	sandbox_id INTEGER NOT NULL,
	ts INTEGER NOT NULL,
	count INTEGER NOT NULL,
	transport INTEGER NOT NULL, -- 17: UDP, 6: TCP
	src TEXT, sport INTEGER NOT NULL,
	server TEXT,            -- the resolver that the guest meant to ask; all are answered by postern
	qname TEXT,             -- canonical name, or NULL
	qname_raw BLOB,         -- what was asked instead: anything
	qtype INTEGER NOT NULL,
	verdict INTEGER NOT NULL, reason INTEGER NOT NULL, rule TEXT, detail TEXT, generation INTEGER NOT NULL,
	rcode INTEGER NOT NULL, -- as answered
	ede INTEGER,            -- RFC 8914 INFO-CODE, or NULL
	answers TEXT,           -- JSON array of strings: "A 192.0.2.1"
	ttl INTEGER NOT NULL,   -- seconds, as answered
	upstream_us INTEGER NOT NULL -- time spent asking upstream; 0: nobody was asked
) STRICT;
CREATE INDEX dns_sandbox ON dns (sandbox_id, ts);
CREATE INDEX dns_name ON dns (qname, ts) WHERE qname IS NOT NULL;
CREATE INDEX dns_ts ON dns (ts);
CREATE INDEX dns_seq ON dns (seq);
CREATE TABLE events (
	id INTEGER PRIMARY KEY,
	seq INTEGER NOT NULL,
	sandbox_id INTEGER NOT NULL, -- 0: the daemon itself
	ts INTEGER NOT NULL,
	kind INTEGER NOT NULL,  -- event_kinds
	uid INTEGER,            -- who asked; NULL: nobody
	detail TEXT             -- JSON object
) STRICT;
CREATE INDEX events_sandbox ON events (sandbox_id, ts);
CREATE INDEX events_ts ON events (ts);
CREATE INDEX events_seq ON events (seq);
CREATE VIEW v_connections AS SELECT printf('%016x', t.id) AS id, CASE WHEN t.ts IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%S', t.ts / 1000000, 'unixepoch') || printf('.%06dZ', t.ts % 1000000) END AS time, s.name AS sandbox,
	v.word AS verdict, r.word AS reason, CASE t.proto WHEN 6 THEN 'tcp' WHEN 17 THEN 'udp' WHEN 1 THEN 'icmp' WHEN 58 THEN 'icmp6' ELSE CAST(t.proto AS TEXT) END AS proto, t.src, t.sport, t.dst, t.dport,
	coalesce(t.name, CASE WHEN t.name_raw IS NOT NULL THEN 'hex:' || hex(t.name_raw) END) AS name,
	n.word AS name_source, t.rule, t.detail, t.generation, t.alpn, t.flags & 1 AS ech,
	(t.flags >> 1) & 1 AS tunnel, t.count, CASE WHEN t.last_ts IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%S', t.last_ts / 1000000, 'unixepoch') || printf('.%06dZ', t.last_ts % 1000000) END AS last_time, t.bytes_out, t.bytes_in,
	t.duration_us, CASE WHEN t.closed_ts IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%S', t.closed_ts / 1000000, 'unixepoch') || printf('.%06dZ', t.closed_ts % 1000000) END AS closed_time, e.word AS end
	FROM connections t LEFT JOIN sandboxes s ON s.id = t.sandbox_id LEFT JOIN verdicts v ON v.id = t.verdict
	LEFT JOIN reasons r ON r.id = t.reason LEFT JOIN name_sources n ON n.id = t.name_source
	LEFT JOIN ends e ON e.id = t.end;
CREATE VIEW v_dns AS SELECT printf('%016x', t.id) AS id, CASE WHEN t.ts IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%S', t.ts / 1000000, 'unixepoch') || printf('.%06dZ', t.ts % 1000000) END AS time, s.name AS sandbox,
	v.word AS verdict, r.word AS reason,
	coalesce(t.qname, CASE WHEN t.qname_raw IS NOT NULL THEN 'hex:' || hex(t.qname_raw) END) AS qname,
	CASE t.qtype WHEN 1 THEN 'A' WHEN 28 THEN 'AAAA' WHEN 5 THEN 'CNAME' WHEN 65 THEN 'HTTPS'
	WHEN 64 THEN 'SVCB' WHEN 16 THEN 'TXT' WHEN 15 THEN 'MX' WHEN 33 THEN 'SRV' WHEN 12 THEN 'PTR'
	WHEN 2 THEN 'NS' WHEN 6 THEN 'SOA' ELSE 'TYPE' || t.qtype END AS qtype,
	CASE t.rcode WHEN 0 THEN 'NOERROR' WHEN 1 THEN 'FORMERR' WHEN 2 THEN 'SERVFAIL' WHEN 3 THEN 'NXDOMAIN'
	WHEN 4 THEN 'NOTIMP' WHEN 5 THEN 'REFUSED' ELSE 'RCODE' || t.rcode END AS rcode,
	t.ede, t.answers, t.ttl, t.upstream_us, t.rule, t.detail, t.generation, t.count,
	CASE t.transport WHEN 6 THEN 'tcp' WHEN 17 THEN 'udp' WHEN 1 THEN 'icmp' WHEN 58 THEN 'icmp6' ELSE CAST(t.transport AS TEXT) END AS transport, t.src, t.sport, t.server
	FROM dns t LEFT JOIN sandboxes s ON s.id = t.sandbox_id LEFT JOIN verdicts v ON v.id = t.verdict
	LEFT JOIN reasons r ON r.id = t.reason;
CREATE VIEW v_events AS SELECT printf('%016x', t.id) AS id, CASE WHEN t.ts IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%S', t.ts / 1000000, 'unixepoch') || printf('.%06dZ', t.ts % 1000000) END AS time, s.name AS sandbox,
	k.word AS event, t.uid, t.detail
	FROM events t LEFT JOIN sandboxes s ON s.id = t.sandbox_id LEFT JOIN event_kinds k ON k.id = t.kind;
CREATE VIEW v_log AS
	SELECT time, sandbox, 'connection' AS kind, verdict, reason,
	coalesce(name, dst, '-') || ':' || dport AS what, rule, detail, id FROM v_connections
	UNION ALL SELECT time, sandbox, 'dns', verdict, reason, qtype || ' ' || coalesce(qname, '.'), rule, answers, id
	FROM v_dns
	UNION ALL SELECT time, sandbox, 'event', NULL, NULL, event, NULL, detail, id FROM v_events;
INSERT INTO meta VALUES ('created_us', 1700000000000000), ('probe', NULL), ('version', '0.1.0');
INSERT INTO sandboxes VALUES (1700000000000001, 'task1', 'netns', 1700000000000001, NULL, 0, '{"guest":"172.16.0.2"}');
INSERT INTO sandboxes VALUES (1700000000000002, 'task2', 'tap', 1700000000000002, 1700000009000000, 1000, NULL);
INSERT INTO connections VALUES (3650722201600000001, 4, 1700000000000001, 1700000000100000, NULL, 1, 6, '172.16.0.2', 40000, '45.45.45.10', 443, 'news.lab-site.org', NULL, 2, 0, 0, 'allow news.lab-site.org (v1.yaml:3)', NULL, 1, 'h2,http/1.1', 0, 517, 4321, 20000, 1700000000120000, 1);
INSERT INTO connections VALUES (3650722201600000002, 5, 1700000000000001, 1700000000200000, NULL, 1, 6, '172.16.0.2', 40001, '45.45.45.10', 443, NULL, x'c3a9', 5, 1, 10, NULL, 'not a host name', 1, NULL, 0, NULL, NULL, NULL, NULL, 5);
INSERT INTO connections VALUES (3650722201600000003, 9, 1700000000000002, 1700000000300000, 1700000000900000, 12, 17, '172.16.0.2', 5000, NULL, 0, NULL, NULL, 0, 1, 17, NULL, NULL, 1, NULL, 0, NULL, NULL, NULL, NULL, 5);
INSERT INTO connections VALUES (3650722201600000004, 10, 1700000000000001, 1700000000400000, NULL, 1, 6, '172.16.0.2', 40002, '45.45.45.10', 22, 'git.lab-code.org', NULL, 1, 0, 0, 'allow git.lab-code.org', NULL, 1, NULL, 0, NULL, NULL, NULL, NULL, 0);
INSERT INTO dns VALUES (3650722201600000005, 2, 1700000000000001, 1700000000050000, 1, 17, '172.16.0.2', 5353, '8.8.8.8', 'news.lab-site.org', NULL, 1, 0, 0, 'allow news.lab-site.org', NULL, 1, 0, NULL, '["A 45.45.45.10"]', 60, 900);
INSERT INTO dns VALUES (3650722201600000006, 7, 1700000000000002, 1700000000060000, 3, 17, '172.16.0.2', 5353, '8.8.8.8', 'www.lab-b.net', NULL, 28, 1, 1, NULL, NULL, 1, 3, 15, NULL, 60, 0);
INSERT INTO events VALUES (3650722201600000007, 1, 0, 1700000000000000, 1, NULL, NULL);
INSERT INTO events VALUES (3650722201600000008, 3, 1700000000000001, 1700000000000001, 3, 0, '{"gone":false}');
COMMIT;
