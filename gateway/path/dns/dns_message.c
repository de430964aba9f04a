/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Both readers walk a message from its first byte to its last with one checked cursor; bytes left
 * over, missing or out of order refuse the whole message. Names become canonical (policy/names/name.h) where they are
 * compared, and only there.
 *
 * An answer is walked twice. The first walk checks the structure of every record in every section and collects the
 * CNAME records of the answer section. From these the chain is built, starting at the name that was asked for. The
 * second walk takes the records of the asked type whose owner is the end of the chain. Nothing else of the message is
 * ever used: not the authority section (save for the mere presence of a SOA record), not the additional one (save for
 * OPT). */
#include "gateway/path/dns/dns_message.h"

#include <string.h>

#define DNS_FLAG_QR 0x8000u
#define DNS_FLAG_TC 0x0200u
#define DNS_FLAG_RD 0x0100u
#define DNS_LABEL_MAX 63
#define DNS_POINTER_BITS 0xc0u

struct dns_header {
	uint16_t id, flags, questions, answers, authorities, additionals;
};

/* Reads the six fields; zeros when the message is shorter. */
static struct dns_header
read_header(struct reader *r)
{
	struct dns_header header;

	header.id = reader_u16(r);
	header.flags = reader_u16(r);
	header.questions = reader_u16(r);
	header.answers = reader_u16(r);
	header.authorities = reader_u16(r);
	header.additionals = reader_u16(r);
	return header;
}

/* The four bits of the opcode. */
static uint8_t
header_opcode(const struct dns_header *header)
{
	return (uint8_t)(header->flags >> 11 & 0xf);
}

/* Follow the pointer whose first byte was read. segment is where the present run of labels began: the target must lie
 * before it, so that every jump goes further back and the walk ends. */
static bool
follow_pointer(struct reader *r, uint8_t first, size_t *segment)
{
	size_t target = (size_t)(first & ~DNS_POINTER_BITS) << 8 | reader_u8(r);

	if (!reader_ok(r) || target < DNS_HEADER_SIZE || target >= *segment)
		return false;
	r->at = target;
	*segment = target;
	return true;
}

bool
dns_message_read_name(struct reader *message, uint8_t ret_wire[DNS_NAME_WIRE_MAX], size_t *ret_len)
{
	struct reader r = *message;
	size_t segment = r.at, after = 0, len = 0;
	unsigned int pointers = 0;

	for (;;) {
		uint8_t size = reader_u8(&r);
		const uint8_t *label;

		if (!reader_ok(&r))
			break;
		if ((size & DNS_POINTER_BITS) == DNS_POINTER_BITS) {
			if (++pointers > DNS_POINTERS_MAX || !follow_pointer(&r, size, &segment))
				break;
			if (pointers == 1)
				after = message->at + len + 2;
			continue;
		}
		if (size > DNS_LABEL_MAX || len + 1 + size + (size != 0) > DNS_NAME_WIRE_MAX)
			break;
		ret_wire[len++] = size;
		if (size == 0) {
			message->at = pointers > 0 ? after : r.at;
			*ret_len = len;
			return true;
		}
		label = reader_bytes(&r, size);
		if (label == NULL)
			break;
		memcpy(ret_wire + len, label, size);
		len += size;
	}
	reader_fail(message);
	return false;
}

/* The question of a guest: labels as they stand, no pointer. */
static bool
read_question(struct reader *r, struct dns_question *question)
{
	size_t start = r->at, name_len;

	for (;;) {
		uint8_t size = reader_u8(r);

		if (size > DNS_LABEL_MAX || r->at - start + size > DNS_NAME_WIRE_MAX)
			return false;
		reader_bytes(r, size);
		if (!reader_ok(r))
			return false;
		if (size == 0)
			break;
	}
	name_len = r->at - start;
	question->type = reader_u16(r);
	question->class = reader_u16(r);
	if (!reader_ok(r) || name_len > DNS_NAME_WIRE_MAX)
		return false;
	question->name_wire_len = (uint16_t)name_len;
	question->wire_len = (uint16_t)(name_len + 4);
	memcpy(question->wire, r->bytes + start, question->wire_len);
	question->has_question = true;
	question->name_error = name_from_wire(question->wire, name_len, &question->name);
	question->name_ok = question->name_error == NAME_OK;
	return true;
}

/* The one OPT record that the additional section may hold; its options are checked for form and left alone. */
static bool
read_opt(struct reader *r, struct dns_question *question, uint8_t *ret_version)
{
	uint8_t owner = reader_u8(r);
	uint16_t type = reader_u16(r), size = reader_u16(r);
	uint32_t ttl = reader_u32(r);
	struct reader options = reader_sub(r, reader_u16(r));

	if (!reader_ok(r) || owner != 0 || type != DNS_TYPE_OPT)
		return false;
	while (reader_left(&options) > 0) {
		reader_u16(&options);
		reader_bytes(&options, reader_u16(&options));
	}
	if (!reader_ok(&options))
		return false;
	question->has_edns = true;
	question->udp_size = size < DNS_UDP_PLAIN ? DNS_UDP_PLAIN : size;
	*ret_version = (uint8_t)(ttl >> 16);
	return true;
}

enum dns_read
dns_message_read_question(const void *bytes, size_t len, struct dns_question *ret_question, uint16_t *ret_rcode)
{
	struct reader r = reader_make(bytes, len);
	struct dns_header header = read_header(&r);
	uint8_t version = 0;

	memset(ret_question, 0, sizeof(*ret_question));
	if (!reader_ok(&r) || (header.flags & DNS_FLAG_QR) != 0)
		return DNS_READ_DROP;
	ret_question->id = header.id;
	ret_question->opcode = header_opcode(&header);
	ret_question->rd = (header.flags & DNS_FLAG_RD) != 0;
	ret_question->udp_size = DNS_UDP_PLAIN;
	*ret_rcode = DNS_NOTIMP;
	if (ret_question->opcode != 0)
		return DNS_READ_ERROR;
	*ret_rcode = DNS_FORMERR;
	if (header.questions != 1 || !read_question(&r, ret_question))
		return DNS_READ_ERROR;
	if (header.answers != 0 || header.authorities != 0 || header.additionals > 1)
		return DNS_READ_ERROR;
	if (header.additionals == 1 && !read_opt(&r, ret_question, &version))
		return DNS_READ_ERROR;
	if (!reader_done(&r))
		return DNS_READ_ERROR;
	if (version != 0) {
		*ret_rcode = DNS_BADVERS;
		return DNS_READ_ERROR;
	}
	if (ret_question->class != DNS_CLASS_IN) {
		*ret_rcode = DNS_REFUSED;
		return DNS_READ_ERROR;
	}
	return DNS_READ_OK;
}

struct dns_rr {
	bool owner_ok; /* a host name: only then can it be on a chain */
	struct name owner;
	uint16_t type, class;
	uint32_t ttl_s;
	uint32_t ttl_raw; /* OPT keeps other things there */
	size_t rdata_at;
	struct dns_bytes rdata;
};

/* Reads one resource record. False when it is malformed. */
static bool
read_rr(struct reader *r, struct dns_rr *rr)
{
	uint8_t wire[DNS_NAME_WIRE_MAX];
	size_t wire_len;

	if (!dns_message_read_name(r, wire, &wire_len))
		return false;
	rr->owner_ok = name_from_wire(wire, wire_len, &rr->owner) == NAME_OK;
	rr->type = reader_u16(r);
	rr->class = reader_u16(r);
	rr->ttl_raw = reader_u32(r);
	/* RFC 2181 section 8: with the top bit set it counts as zero. */
	rr->ttl_s = rr->ttl_raw > INT32_MAX ? 0 : rr->ttl_raw;
	rr->rdata.len = reader_u16(r);
	rr->rdata_at = r->at;
	rr->rdata.bytes = reader_bytes(r, rr->rdata.len);
	return reader_ok(r);
}

struct dns_cname {
	struct name owner, target;
	bool target_ok;
	uint32_t ttl_s;
};

/* What the first walk finds. */
struct dns_survey {
	struct dns_header header;
	size_t answers_at; /* offset of the answer section */
	size_t cname_count;
	struct dns_cname cnames[DNS_CNAMES_MAX];
	bool has_soa;
	uint8_t extended_rcode;
};

/* The answer breaks a rule: detail says which. */
static void
answer_bad(struct dns_answer *answer, const char *detail)
{
	answer->kind = DNS_ANSWER_BAD;
	answer->detail = detail;
}

/* Does the message begin with our id and repeat our question byte for byte? */
static bool
matches_query(struct reader *r, const struct dns_header *header, const void *query, size_t query_len)
{
	struct reader q = reader_make(query, query_len);
	struct dns_header asked = read_header(&q);
	uint8_t name[DNS_NAME_WIRE_MAX];
	size_t name_len, question_len;
	const uint8_t *ours, *theirs;

	if (header->id != asked.id || (header->flags & DNS_FLAG_QR) == 0 || header_opcode(header) != 0 ||
	    header->questions != 1)
		return false;
	if (!dns_message_read_name(&q, name, &name_len))
		return false;
	question_len = name_len + 4;
	q.at = DNS_HEADER_SIZE;
	ours = reader_bytes(&q, question_len);
	theirs = reader_bytes(r, question_len);
	return ours != NULL && theirs != NULL && memcmp(ours, theirs, question_len) == 0;
}

/* Read the target of a CNAME record. False: its rdata is malformed, or there are too many of them. */
static bool
survey_cname(struct dns_survey *survey, const struct reader *message, const struct dns_rr *rr)
{
	struct reader r = *message;
	uint8_t wire[DNS_NAME_WIRE_MAX];
	size_t wire_len;
	struct dns_cname *cname;

	r.at = rr->rdata_at;
	if (!dns_message_read_name(&r, wire, &wire_len) || r.at != rr->rdata_at + rr->rdata.len)
		return false;
	if (!rr->owner_ok)
		return true;
	if (survey->cname_count == DNS_CNAMES_MAX)
		return false;
	cname = &survey->cnames[survey->cname_count++];
	cname->owner = rr->owner;
	cname->target_ok = name_from_wire(wire, wire_len, &cname->target) == NAME_OK;
	cname->ttl_s = rr->ttl_s;
	return true;
}

/* Checks every record of a section and collects what the survey wants. False: malformed. */
static bool
survey_section(struct dns_survey *survey, struct reader *r, uint16_t count, bool answer, bool additional)
{
	for (uint16_t i = 0; i < count; i++) {
		struct dns_rr rr;

		if (!read_rr(r, &rr))
			return false;
		if (answer && rr.class == DNS_CLASS_IN && rr.type == DNS_TYPE_CNAME && !survey_cname(survey, r, &rr))
			return false;
		if (!answer && !additional && rr.type == DNS_TYPE_SOA)
			survey->has_soa = true;
		if (additional && rr.type == DNS_TYPE_OPT)
			survey->extended_rcode = (uint8_t)(rr.ttl_raw >> 24);
	}
	return true;
}

/* The first walk, after the question. */
static bool
survey_message(struct dns_survey *survey, struct reader *r)
{
	survey->answers_at = r->at;
	return survey_section(survey, r, survey->header.answers, true, false) &&
	    survey_section(survey, r, survey->header.authorities, false, false) &&
	    survey_section(survey, r, survey->header.additionals, false, true) && reader_done(r);
}

/* The CNAME record of a name; NULL: none. *ret_bad when there are two that differ. */
static const struct dns_cname *
find_cname(const struct dns_survey *survey, const struct name *owner, bool *ret_bad)
{
	const struct dns_cname *found = NULL;

	for (size_t i = 0; i < survey->cname_count; i++) {
		const struct dns_cname *cname = &survey->cnames[i];

		if (!name_equal(&cname->owner, owner))
			continue;
		if (found != NULL && (!cname->target_ok || !name_equal(&found->target, &cname->target)))
			*ret_bad = true;
		found = cname;
	}
	return found;
}

/* Is the name on the chain already? */
static bool
chain_holds(const struct dns_chain *chain, const struct name *first, const struct name *name)
{
	if (name_equal(first, name))
		return true;
	for (size_t i = 0; i < chain->count; i++)
		if (name_equal(&chain->names[i], name))
			return true;
	return false;
}

/* Where the chain leads so far. */
static const struct name *
chain_end(const struct dns_chain *chain, const struct name *first)
{
	return chain->count == 0 ? first : &chain->names[chain->count - 1];
}

/* Append one link. NULL, or what is wrong with it. */
static const char *
chain_add(struct dns_chain *chain, const struct name *first, const struct dns_cname *cname)
{
	if (!cname->target_ok)
		return "a CNAME target is no host name";
	if (chain_holds(chain, first, &cname->target))
		return "the CNAME chain loops";
	if (chain->count == DNS_CHAIN_MAX)
		return "the CNAME chain is too long";
	chain->names[chain->count++] = cname->target;
	if (cname->ttl_s < chain->ttl_s)
		chain->ttl_s = cname->ttl_s;
	return NULL;
}

/* Follow the CNAME records from the present end of the chain: all of them, or one when CNAME is what was asked for. */
static const char *
chain_follow(struct dns_chain *chain, const struct name *first, const struct dns_survey *survey, uint16_t type)
{
	for (;;) {
		bool bad = false;
		const struct dns_cname *cname = find_cname(survey, chain_end(chain, first), &bad);
		const char *wrong;

		if (bad)
			return "two CNAME records for one name";
		if (cname == NULL)
			return NULL;
		wrong = chain_add(chain, first, cname);
		if (wrong != NULL || type == DNS_TYPE_CNAME)
			return wrong;
	}
}

/* Take a record of the asked type at the end of the chain. NULL, or what is wrong with it. */
static const char *
take_record(struct dns_answer *answer, const struct dns_rr *rr)
{
	if (rr->type == DNS_TYPE_SVCB || rr->type == DNS_TYPE_HTTPS) {
		if (answer->service_count < DNS_SERVICES_MAX)
			answer->services[answer->service_count++] = rr->rdata;
		return NULL;
	}
	if (rr->rdata.len != (rr->type == DNS_TYPE_A ? 4 : 16))
		return "an address record of the wrong size";
	if (answer->addr_count == DNS_ADDRS_MAX)
		return "too many addresses";
	answer->addrs[answer->addr_count++] =
	    rr->type == DNS_TYPE_A ? addr_from_ipv4(rr->rdata.bytes) : addr_from_ipv6(rr->rdata.bytes);
	return NULL;
}

/* The second walk. */
static const char *
take_records(struct dns_answer *answer, struct dns_chain *chain, const struct name *end, uint16_t type,
    struct reader *r, uint16_t count)
{
	for (uint16_t i = 0; i < count; i++) {
		struct dns_rr rr;
		const char *wrong;

		if (!read_rr(r, &rr))
			return "malformed";
		if (rr.class != DNS_CLASS_IN || rr.type != type || !rr.owner_ok || !name_equal(&rr.owner, end))
			continue;
		wrong = take_record(answer, &rr);
		if (wrong != NULL)
			return wrong;
		if (rr.ttl_s < chain->ttl_s)
			chain->ttl_s = rr.ttl_s;
	}
	return NULL;
}

/* What a well-formed message means, once chain and records are taken. */
static enum dns_answer_kind
answer_kind(const struct dns_answer *answer, const struct dns_survey *survey, bool links, uint16_t type)
{
	if (answer->rcode == DNS_NXDOMAIN)
		return DNS_ANSWER_NXDOMAIN;
	if (answer->addr_count > 0 || answer->service_count > 0 || (type == DNS_TYPE_CNAME && links))
		return DNS_ANSWER_DATA;
	return links && !survey->has_soa ? DNS_ANSWER_CHASE : DNS_ANSWER_NODATA;
}

/* The type that was asked for follows the name in our own query. */
static uint16_t
query_type(const void *query, size_t query_len)
{
	struct reader r = reader_make(query, query_len);
	uint8_t name[DNS_NAME_WIRE_MAX];
	size_t name_len;

	reader_bytes(&r, DNS_HEADER_SIZE);
	if (!dns_message_read_name(&r, name, &name_len))
		return 0;
	return reader_u16(&r);
}

void
dns_message_read_answer(const void *bytes, size_t len, const void *query, size_t query_len, const struct name *first,
    struct dns_chain *chain, struct dns_answer *ret_answer)
{
	struct reader r = reader_make(bytes, len), second = r;
	struct dns_survey survey = {.header = read_header(&r)};
	size_t links_before = chain->count;
	uint16_t type = query_type(query, query_len);
	const char *wrong;

	ret_answer->addr_count = ret_answer->service_count = 0;
	ret_answer->detail = "";
	ret_answer->kind = DNS_ANSWER_MISMATCH;
	if (!reader_ok(&r) || !matches_query(&r, &survey.header, query, query_len))
		return;
	ret_answer->rcode = (uint8_t)(survey.header.flags & 0xf);
	if ((survey.header.flags & DNS_FLAG_TC) != 0 || !survey_message(&survey, &r)) {
		answer_bad(ret_answer, "malformed or cut short");
		return;
	}
	if ((ret_answer->rcode != DNS_NOERROR && ret_answer->rcode != DNS_NXDOMAIN) || survey.extended_rcode != 0) {
		ret_answer->kind = DNS_ANSWER_FAILED;
		return;
	}
	wrong = chain_follow(chain, first, &survey, type);
	if (wrong == NULL && type != DNS_TYPE_CNAME) {
		second.at = survey.answers_at;
		wrong = take_records(ret_answer, chain, chain_end(chain, first), type, &second, survey.header.answers);
	}
	if (wrong != NULL)
		answer_bad(ret_answer, wrong);
	else
		ret_answer->kind = answer_kind(ret_answer, &survey, chain->count > links_before, type);
}

size_t
dns_message_write_name(const struct name *name, uint8_t ret_wire[DNS_NAME_WIRE_MAX])
{
	size_t label_at = 0;

	/* Every dot becomes the length of the label after it; the first label's length goes in front. */
	memcpy(ret_wire + 1, name->text, name->len);
	for (size_t i = 1; i <= (size_t)name->len; i++) {
		if (ret_wire[i] != '.')
			continue;
		ret_wire[label_at] = (uint8_t)(i - label_at - 1);
		label_at = i;
	}
	ret_wire[label_at] = (uint8_t)(name->len - label_at);
	ret_wire[name->len + 1] = 0;
	return (size_t)name->len + 2;
}

/* Writes 16 bits; returns where the next bytes go. */
static uint8_t *
put_u16(uint8_t *at, uint16_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
	return at + 2;
}

/* Upper case for the letters whose bit is set; names longer than 64 bytes use the bits again. */
static void
mix_case(uint8_t *wire, size_t len, uint64_t bits)
{
	for (size_t i = 0; i < len; i++)
		if (wire[i] >= 'a' && wire[i] <= 'z' && (bits >> (i % 64) & 1) != 0)
			wire[i] = (uint8_t)(wire[i] - 'a' + 'A');
}

size_t
dns_message_write_query(
    const struct name *name, uint16_t type, uint16_t id, uint64_t case_bits, uint8_t ret_bytes[DNS_QUERY_MAX])
{
	uint8_t *at = ret_bytes;
	size_t name_len;

	at = put_u16(at, id);
	at = put_u16(at, DNS_FLAG_RD);
	at = put_u16(at, 1);
	at = put_u16(at, 0);
	at = put_u16(at, 0);
	at = put_u16(at, 1);
	name_len = dns_message_write_name(name, at);
	/* Label lengths are at most 63, below every letter: they stay as they are. */
	mix_case(at, name_len, case_bits);
	at = put_u16(at + name_len, type);
	at = put_u16(at, DNS_CLASS_IN);
	*at++ = 0;
	at = put_u16(at, DNS_TYPE_OPT);
	at = put_u16(at, DNS_UDP_MAX);
	at = put_u16(at, 0);
	at = put_u16(at, 0);
	at = put_u16(at, 0);
	return (size_t)(at - ret_bytes);
}
