/* SPDX-License-Identifier: GPL-3.0-or-later */
/* record_size, record_valid, and the words. */
#include "audit_fixture.h"

static void
test_sizes_cover_their_kinds(void **state)
{
	(void)state;
	for (uint32_t kind = 1; kind < RECORD_KIND_MAX; kind++) {
		assert_true(record_size(kind) > offsetof(struct record, flow));
		assert_true(record_size(kind) <= sizeof(struct record));
	}
	assert_int_equal(record_size(0), 0);
	assert_int_equal(record_size(RECORD_KIND_MAX), 0);
	assert_int_equal(record_size(UINT32_MAX), 0);
}

static struct record
make(uint32_t kind)
{
	struct record record;

	switch ((enum record_kind)kind) {
	case RECORD_FLOW_OPEN:
		return fixture_flow(1, "github.com");
	case RECORD_REFUSED:
		record = fixture_denied(1, "x", 1);
		record.kind = RECORD_REFUSED;
		return record;
	case RECORD_FLOW_CLOSE:
		return fixture_close(1);
	case RECORD_PROGRESS:
		record = fixture_close(1);
		record.kind = RECORD_PROGRESS;
		record.close.end = END_OPEN;
		return record;
	case RECORD_ACCOUNT:
		return (struct record){
		    .kind = RECORD_ACCOUNT, .seq = 1, .account = {.id = 1, .sandbox = 1, .ts_us = 1, .final = 1}};
	case RECORD_DNS:
		return fixture_dns(1, "x", 1);
	case RECORD_EVENT:
		return fixture_event(1, EVENT_ATTACH, "{}");
	case RECORD_SANDBOX:
		return fixture_sandbox(1, "a");
	case RECORD_SANDBOX_END:
		record = fixture_sandbox(1, "a");
		record.kind = RECORD_SANDBOX_END;
		return record;
	case RECORD_GAP:
		return (struct record){
		    .kind = RECORD_GAP, .seq = 1, .gap = {.sender_epoch = 1, .ts_us = 1, .end = END_GATEWAY_CRASH}};
	case RECORD_KIND_MAX:
		break;
	}
	fail();
	return record;
}

static void
test_good_records_are_valid_at_their_size_only(void **state)
{
	(void)state;
	for (uint32_t kind = 1; kind < RECORD_KIND_MAX; kind++) {
		struct record record = make(kind);

		assert_true(record_valid(&record, record_size(kind)));
		assert_false(record_valid(&record, record_size(kind) - 1));
		assert_false(record_valid(&record, record_size(kind) + 1));
		assert_false(record_valid(&record, 0));
		record.seq = 0;
		assert_false(record_valid(&record, record_size(kind)));
	}
}

/* Each row damages one byte run of a good record. */
struct damage {
	const char *what;
	uint32_t kind;
	size_t offset, len;
	uint8_t byte;
};

#define DAMAGE(kind_, member, byte_)                                                                                   \
	{                                                                                                              \
#member, kind_, offsetof(struct record, member), sizeof(((struct record *)0)->member), byte_           \
	}

static void
test_damaged_records_are_refused(void **state)
{
	static const struct damage damages[] = {
	    DAMAGE(RECORD_FLOW_OPEN, kind, 0xff),
	    DAMAGE(RECORD_FLOW_OPEN, flow.id, 0),
	    DAMAGE(RECORD_FLOW_OPEN, flow.ts_us, 0),
	    DAMAGE(RECORD_FLOW_OPEN, flow.ts_us, 0xff),
	    DAMAGE(RECORD_FLOW_OPEN, flow.count, 0),
	    DAMAGE(RECORD_FLOW_OPEN, flow.src.family, 5),
	    DAMAGE(RECORD_FLOW_OPEN, flow.dst.bytes, 1),
	    DAMAGE(RECORD_FLOW_OPEN, flow.verdict, VERDICT_MAX),
	    DAMAGE(RECORD_FLOW_OPEN, flow.verdict, VERDICT_DENIED), /* denied and open */
	    DAMAGE(RECORD_FLOW_OPEN, flow.reason, REASON_MAX),
	    DAMAGE(RECORD_FLOW_OPEN, flow.name_source, NAME_SOURCE_MAX),
	    DAMAGE(RECORD_FLOW_OPEN, flow.flags, 0x80),
	    DAMAGE(RECORD_FLOW_OPEN, flow.end, END_MAX),
	    DAMAGE(RECORD_FLOW_OPEN, flow.name_len, 1), /* 257 */
	    DAMAGE(RECORD_FLOW_OPEN, flow.rule, 'x'),
	    DAMAGE(RECORD_FLOW_OPEN, flow.detail, 'x'),
	    DAMAGE(RECORD_FLOW_OPEN, flow.alpn, 'x'),
	    DAMAGE(RECORD_FLOW_CLOSE, close.id, 0),
	    DAMAGE(RECORD_FLOW_CLOSE, close.verdict, VERDICT_FAILED), /* and no reason */
	    DAMAGE(RECORD_FLOW_CLOSE, close.end, END_OPEN),
	    DAMAGE(RECORD_FLOW_CLOSE, close.end, END_MAX),
	    DAMAGE(RECORD_FLOW_CLOSE, close.duration_us, 0xff),
	    DAMAGE(RECORD_FLOW_OPEN, flow.ja4, 'x'),
	    DAMAGE(RECORD_FLOW_OPEN, flow.http_method, 'x'),
	    DAMAGE(RECORD_FLOW_OPEN, flow.country, 'x'),
	    DAMAGE(RECORD_FLOW_OPEN, flow.as_org, 'x'),
	    DAMAGE(RECORD_FLOW_OPEN, flow.dns_us, 0xff),
	    DAMAGE(RECORD_FLOW_OPEN, flow.hello_us, 0xff),
	    DAMAGE(RECORD_FLOW_CLOSE, close.connect_us, 0xff),
	    DAMAGE(RECORD_FLOW_CLOSE, close.first_byte_us, 0xff),
	    DAMAGE(RECORD_FLOW_CLOSE, close.up_src.family, 5),
	    DAMAGE(RECORD_PROGRESS, close.end, END_FIN),
	    DAMAGE(RECORD_ACCOUNT, account.id, 0),
	    DAMAGE(RECORD_ACCOUNT, account.sandbox, 0),
	    DAMAGE(RECORD_ACCOUNT, account.ts_us, 0),
	    DAMAGE(RECORD_ACCOUNT, account.final, 2),
	    DAMAGE(RECORD_DNS, dns.verdict, VERDICT_LIMITED), /* likewise */
	    DAMAGE(RECORD_DNS, dns.qname_len, 1),
	    DAMAGE(RECORD_DNS, dns.answers, 'x'),
	    DAMAGE(RECORD_DNS, dns.server.family, 1),
	    DAMAGE(RECORD_EVENT, event.kind, 0),
	    DAMAGE(RECORD_EVENT, event.kind, EVENT_KIND_MAX),
	    DAMAGE(RECORD_EVENT, event.detail, 'x'),
	    DAMAGE(RECORD_EVENT, event.sandbox, 0xff),
	    DAMAGE(RECORD_SANDBOX, sandbox.id, 0),
	    DAMAGE(RECORD_SANDBOX, sandbox.name, 0),
	    DAMAGE(RECORD_SANDBOX, sandbox.name, 'x'),
	    DAMAGE(RECORD_SANDBOX, sandbox.kind, 'x'),
	    DAMAGE(RECORD_GAP, gap.end, END_FIN),
	    DAMAGE(RECORD_GAP, gap.sender_epoch, 0xff),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		struct record record = make(damages[i].kind);

		memset((char *)&record + damages[i].offset, damages[i].byte, damages[i].len);
		if (record_valid(&record, record_size(damages[i].kind)))
			fail_msg("%s of kind %u set to 0x%02x was accepted", damages[i].what, damages[i].kind,
			    damages[i].byte);
	}
}

static void
test_every_value_has_a_word_of_its_own(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < END_MAX; i++)
		for (unsigned int k = 0; k < i; k++)
			assert_string_not_equal(record_end_text(i), record_end_text(k));
	for (unsigned int i = 0; i < NAME_SOURCE_MAX; i++)
		assert_string_not_equal(record_name_source_text(i), "?");
	for (unsigned int i = 1; i < EVENT_KIND_MAX; i++)
		assert_string_not_equal(record_event_text(i), "?");
	assert_string_equal(record_end_text(END_DAEMON_CRASH), "daemon_crash");
	assert_string_equal(record_name_source_text(NAME_SOURCE_CIDR), "cidr");
	assert_string_equal(record_event_text(EVENT_AUDIT_RESUMED), "audit_resumed");
	assert_string_equal(record_end_text(END_MAX), "?");
	assert_string_equal(record_name_source_text(UINT32_MAX), "?");
	assert_string_equal(record_event_text(0), "?");
	assert_string_equal(record_event_text(EVENT_KIND_MAX), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_sizes_cover_their_kinds),
	    cmocka_unit_test(test_good_records_are_valid_at_their_size_only),
	    cmocka_unit_test(test_damaged_records_are_refused),
	    cmocka_unit_test(test_every_value_has_a_word_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
