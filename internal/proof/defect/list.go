package defect

import "slices"

// All is every defect: signing, rotating, receiving, deduplicating, deciding, by policies
// of subscriptions' own too, storing, keeping the order, in lines too, sending.
func All() []Defect {
	return slices.Concat(ofSigning, ofRotation, ofReceiver, ofDedup, ofDecisions, ofOwnPolicies, ofStores, ofOrder, ofLines, ofWire)
}

// store runs the suite that every store must pass, which is the quicker part of a
// store's tests.
const store = "^TestStore$"

var ofSigning = []Defect{
	{
		Name: "a signature is compared by its first byte alone",
		File: "signing/timestamp_body.go", Tests: []string{"./signing"},
		Old: "subtle.ConstantTimeCompare(mac[:], r.mac[:]) == 1", New: "subtle.ConstantTimeCompare(mac[:1], r.mac[:1]) == 1",
	},
	{
		Name: "the timestamp is not part of what is signed",
		File: "signing/mac.go", Tests: []string{"./signing"},
		Old: "return append(append(dst, timestamp...), '.')", New: "return append(dst, '.')",
	},
	{
		Name: "timestamps from the past are accepted for ever",
		File: "signing/timestamp.go", Tests: []string{"./signing"},
		Old: "t >= unix-seconds && t <= unix+seconds && tolerance >= 0", New: "t >= unix-seconds && tolerance >= 0",
	},
	{
		Name: "timestamps from the future are accepted",
		File: "signing/timestamp.go", Tests: []string{"./signing"},
		Old: "t >= unix-seconds && t <= unix+seconds && tolerance >= 0", New: "t <= unix+seconds && tolerance >= 0",
	},
	{
		Name: "a timestamp with a leading zero is accepted",
		File: "signing/timestamp.go", Tests: []string{"./signing"},
		Old: ` || s[0] == '0'`, New: "",
	},
	{
		Name: "of a repeated header the first one counts",
		File: "signing/header.go", Tests: []string{"./signing"},
		Old: "func (v headerValue) once(name string) error {\n\tif v.count == 1 {", New: "func (v headerValue) once(name string) error {\n\tif v.count >= 1 {",
	},
	{
		Name: "a secret goes on verifying after its end",
		File: "signing/keyring.go", Tests: []string{"./signing"},
		Old: "(end.IsZero() || !at.After(end))", New: "(end.IsZero() || k != nil)",
	},
	{
		Name: "the previous secret signs",
		File: "signing/keyring.go", Tests: []string{"./signing"},
		Old: "return b.NotBefore.Compare(a.NotBefore)", New: "return a.NotBefore.Compare(b.NotBefore)",
	},
	{
		Name: "a verifier looks by default for the header that has one signature alone",
		File: "signing/verifier.go", Tests: []string{"./internal/proof/scenario"}, Run: "^TestRotationWhileEventsFlow$",
		Old: "suited(DefaultSchemes(), keys)", New: "[]Scheme{TimestampBody{}}",
	},
	{
		Name: "a list of signatures leaves out the key that does not sign yet",
		File: "signing/standard_webhooks.go", Tests: []string{"./internal/proof/scenario"}, Run: "^TestRotationWhileEventsFlow$",
		Old: "keys.listed(at)", New: "keys.signing(at)",
	},
	{
		Name: "a signed header may have the byte that ends it",
		File: "signing/header.go", Tests: []string{"./signing"},
		Old: "if !visible(rune(c)) && c != ' ' || byte(c) == separator {", New: "if !visible(rune(c)) && c != ' ' {",
	},
	{
		Name: "what stands behind the body is not signed",
		File: "signing/mac.go", Tests: []string{"./signing"},
		Old: "if len(s.tail) > 0 {", New: "if len(s.tail) > 1<<20 {",
	},
	{
		Name: "a notification of anybody's topic is taken",
		File: "signing/sns/sns.go", Tests: []string{"./signing/sns"},
		Old: `!slices.Contains(s.topics, msg.fields["TopicArn"])`, New: `len(s.topics) == 0`,
	},
	{
		Name: "a certificate may come from another region's host",
		File: "signing/sns/certificates.go", Tests: []string{"./signing/sns"},
		Old: `host := "sns." + parts[3] + ".amazonaws.com"`, New: `host := "sns.us-east-1.amazonaws.com"`,
	},
	{
		Name: "an HTTP Message Signature chooses its algorithm's key by no name",
		File: "signing/httpsig/input.go", Tests: []string{"./signing/httpsig"},
		Old: "KeyID: st.in.keyID}", New: `KeyID: ""}`,
	},
	{
		Name: "an HTTP Message Signature leaves out a component that must be covered",
		File: "signing/httpsig/component.go", Tests: []string{"./signing/httpsig"},
		Old: "if !has(l.components, c.id) {", New: "if !has(required, c.id) {",
	},
	{
		Name: "a certificate for another name signs for PayPal",
		File: "signing/paypal/certificate.go", Tests: []string{"./signing/paypal"},
		Old: "DNSName: s.subject(), Roots", New: "Roots",
	},
	{
		Name: "X's question has a body signed",
		File: "receiver/handshake.go", Tests: []string{"./receiver"}, Run: "Handshake",
		Old: "json.Valid([]byte(token))", New: "json.Valid(nil)",
	},
	{
		Name: "Asana's secret is taken although nobody expects one",
		File: "receiver/handshake.go", Tests: []string{"./receiver"}, Run: "HookSecret",
		Old: "if refused != nil {", New: "if refused != nil && is {",
	},
}

var ofRotation = []Defect{
	{
		Name: "a secret that is to sign later signs at once",
		File: "sender/secrets.go", Tests: []string{"./internal/proof/scenario"}, Run: "^TestRotationWhileEventsFlow$",
		Old: "fresh.NotBefore = from", New: "_ = from",
	},
	{
		Name: "a secret that waits signs when another one is added",
		File: "sender/rotation.go", Tests: []string{"./sender"}, Run: "^TestPropertyASecretAlwaysSigns$",
		Old: "if s.NotBefore.After(fresh.NotBefore) {\n\t\t\ts.NotBefore = fresh.NotBefore", New: "if s.NotBefore.After(now) {\n\t\t\ts.NotBefore = time.Time{}",
	},
	{
		Name: "from when a secret signs is forgotten, on SQLite",
		File: "sender/sqlite/secrets.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "micros(sec.NotBefore)", New: "0*micros(sec.NotBefore)",
	},
}

var ofReceiver = []Defect{
	{
		Name: "the answer is 2xx although the commit failed",
		File: "receiver/transaction.go", Tests: []string{"./receiver"},
		Old: "\tcase is.called:\n", New: "\tcase is.called:\n\t\treturn nil\n\tcase err != nil && is.called:\n",
	},
	{
		Name: "what a handler did before it panicked is committed",
		File: "receiver/transaction.go", Tests: []string{"./receiver"},
		Old: "is.failed = fail(ReasonPanic, err)\n\t\t\t}", New: "is.failed = nil\n\t\t\t}",
	},
	{
		Name: "duplicates are applied",
		File: "receiver/apply.go", Tests: []string{"./receiver"},
		Old: "case !fresh && !again:", New: "case !fresh && !again && version < 0:",
	},
	{
		Name: "stale events are applied",
		File: "receiver/apply.go", Tests: []string{"./receiver"},
		Old: "if !newer {", New: "if !newer && ev.ID == \"\" {",
	},
	{
		Name: "a fact that was overtaken is skipped",
		File: "receiver/apply.go", Tests: []string{"./receiver"}, Run: "Fact",
		Old: "if kind == factTask || !versioned(ev, version) {", New: "if !versioned(ev, version) {",
	},
	{
		Name: "a fact is applied although its marker may have been removed",
		File: "receiver/apply.go", Tests: []string{"./receiver"}, Run: "Fact",
		Old: "if cause = r.tooOld(ev, at); cause != nil {", New: "if cause = r.tooOld(ev, at); cause != nil && r.deadLetters == nil {",
	},
	{
		Name: "a stale event is skipped in silence",
		File: "receiver/report.go", Tests: []string{"./receiver"}, Run: "Silent",
		Old: "if res == Stale || res == Reapplied {", New: "if res == Reapplied {",
	},
	{
		Name: "the scope is left out of the marker",
		File: "receiver/apply.go", Tests: []string{"./receiver"},
		Old: "r.store, tx, ev.Scope, ev.ID", New: "r.store, tx, \"default\", ev.ID",
	},
	{
		Name: "the version is stored although the event is set aside",
		File: "receiver/apply.go", Tests: []string{"./receiver"},
		Old: "cause = failure.Err\n", New: "cause = failure.Err\n\t_ = r.transact(ctx, func(tx Tx) *Error { _, _ = r.store.Advance(ctx, tx, ev.Scope, ev.Object, ev.Version); return nil })\n",
	},
	{
		Name: "the signed id may differ from the body's",
		File: "receiver/verify.go", Tests: []string{"./receiver"},
		Old: "verified.ID != ev.ID {", New: "verified.ID != ev.ID && ev.ID == \"\" {",
	},
	{
		Name: "secrets that cannot be looked up answer like a wrong signature",
		File: "receiver/verify.go", Tests: []string{"./receiver"},
		Old: "return ReasonSecrets", New: "return ReasonSignature",
	},
	{
		Name: "a body of any size is read",
		File: "receiver/body.go", Tests: []string{"./receiver"},
		Old: "http.MaxBytesReader(from.w, req.Body, limit)", New: "http.MaxBytesReader(from.w, req.Body, limit<<20)",
	},
	{
		Name: "the signature's verdict is not heeded",
		File: "receiver/verify.go", Tests: []string{"./receiver"},
		Old: "r.checkSignature(ctx, in, body)\n\tif err != nil {", New: "r.checkSignature(ctx, in, body)\n\tif err != nil && len(body) == 0 {",
	},
}

var ofDedup = []Defect{
	{
		Name: "an equal version is newer, on SQLite",
		File: "dedup/sqlite/store.go", Tests: []string{"./dedup/sqlite"},
		Old: "WHERE excluded.version > v.version", New: "WHERE excluded.version >= v.version",
	},
	{
		Name: "an older version is newer, on PostgreSQL",
		File: "dedup/postgres/statements.go", Tests: []string{"./dedup/postgres"},
		Old: "WHERE excluded.version > v.version\nRETURNING ` + pgtx.Durable\n", New: "WHERE excluded.version <> v.version\nRETURNING ` + pgtx.Durable\n",
	},
	{
		Name: "the marker stays after a rollback",
		File: "dedup/memory/tx.go", Tests: []string{"./dedup/memory"},
		Old: "if commit {\n\t\tmerge(s.markers, tx.markers)", New: "merge(s.markers, tx.markers)\n\tif commit {",
	},
	{
		Name: "a marker is not durable where the server does not wait for its disk, on PostgreSQL",
		File: "dedup/postgres/statements.go", Tests: []string{"./dedup/postgres"},
		Old: "DO NOTHING\nRETURNING ` + pgtx.Durable\n", New: "DO NOTHING`\n",
	},
	{
		Name: "markers are pruned before their time",
		File: "dedup/sqlite/store.go", Tests: []string{"./dedup/sqlite"},
		Old: "WHERE marked_at < ? ORDER BY", New: "WHERE marked_at <= ? ORDER BY",
	},
}

var ofDecisions = []Defect{
	{
		Name: "Retry-After is not heeded",
		File: "backoff/policy.go", Tests: []string{"./backoff"},
		Old: "delay = max(delay, min(s.RetryAfter, p.MaxRetryAfter))\n", New: "",
	},
	{
		Name: "Retry-After is followed for as long as it says",
		File: "backoff/policy.go", Tests: []string{"./backoff"},
		Old: "min(s.RetryAfter, p.MaxRetryAfter)", New: "s.RetryAfter",
	},
	{
		Name: "a delay goes beyond the horizon",
		File: "backoff/policy.go", Tests: []string{"./backoff"},
		Old: "return min(delay, left), true", New: "return delay, true",
	},
	{
		Name: "the schedule starts anew with each attempt",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "Attempt: l.Tries, Age:", New: "Attempt: 1, Age:",
	},
	{
		Name: "a body is converted anew at each attempt",
		File: "sender/dispatch/convert.go", Tests: []string{"./sender/dispatch"},
		Old: "x.c.Body, x.c.Converted = body, true", New: "x.c.Body, x.c.Converted = body, true\n\t\t\tif x.body != nil {\n\t\t\t\tx.c.Body = x.body\n\t\t\t}",
	},
	{
		Name: "a delivery goes out in the new version once its subscription has it",
		File: "sender/dispatch/convert.go", Tests: []string{"./sender/dispatch"},
		Old: "needed: c.Number > 1", New: "needed: false",
	},
	{
		Name: "a subscription goes back to an older version",
		File: "sender/settings_rules.go", Tests: []string{"./sender"},
		Old: "case asked < was:", New: "case asked < was && false:",
	},
	{
		Name: "a redelivery that fails makes a delivered one a dead letter",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "r.Class == sender.ClassNone || l.Single && r.Class != sender.ClassInterrupted {", New: "r.Class == sender.ClassNone {",
	},
	{
		Name: "a redelivery ends with a process that was lost",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "r.Class == sender.ClassNone || l.Single && r.Class != sender.ClassInterrupted {", New: "r.Class == sender.ClassNone || l.Single {",
	},
	{
		Name: "notices are raised about notices",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: " && !l.Notice {", New: " {",
	},
	{
		Name: "failures of notices' deliveries warn nobody",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "if r.Class != sender.ClassNone && r.Class != sender.ClassInterrupted &&", New: "if !l.Notice && r.Class != sender.ClassNone && r.Class != sender.ClassInterrupted &&",
	},
	{
		Name: "a subscription is disabled as soon as its owner was warned",
		File: "sender/dispatch/disable.go", Tests: []string{"./sender/dispatch"},
		Old: "now.Sub(h.WarnedAt) >= chance", New: "true",
	},
	{
		Name: "a success does not end the streak",
		File: "sender/dispatch/health.go", Tests: []string{"./sender/dispatch"},
		Old: "h.Streak, h.FailingSince, h.Warned, h.WarnedAt = 0, time.Time{}, 0, time.Time{}\n", New: "",
	},
	{
		Name: "the first failure can disable",
		File: "sender/dispatch/disable.go", Tests: []string{"./sender/dispatch"},
		Old: " || h.Streak < disableStreak", New: "",
	},
	{
		Name: "an outage of our own network counts against the endpoints",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "if r.OwnNetwork || r.ProxyFailed {", New: "if r.ProxyFailed {",
	},
	{
		Name: "a closed idle connection counts against the endpoint",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"},
		Old: "if spared(l.Spared, &r) {", New: "if spared(l.Spared, &r) && l.Number < 0 {",
	},
	{
		Name: "closed idle connections are spared twice in a row",
		File: "sender/dispatch/spare.go", Tests: []string{"./sender/dispatch"},
		Old: "r.Class == sender.ClassReset && !before", New: "r.Class == sender.ClassReset && (!before || r.ClosedIdle)",
	},
}

var ofStores = []Defect{
	{
		Name: "a deleted operator loses what is on its way, on SQLite",
		File: "sender/sqlite/registry_cache.go", Tests: []string{"./sender/sqlite"}, Run: "^TestStore$/^immediate$/^life$",
		Old: "w.everSubscriber(sender.Operator)", New: "w.subscriberNo(sender.Operator)",
	},
	{
		Name: "a deleted operator loses what is on its way, on PostgreSQL",
		File: "sender/postgres/match.go", Tests: []string{"./sender/postgres"}, Run: "^TestStore$/^pgx_read_committed$/^life$",
		Old: "surehook_subscribers WHERE id = $7)", New: "surehook_subscribers WHERE id = $7 AND deleted = 0)",
	},
	{
		Name: "what a replay has admitted does not count, in memory",
		File: "sender/memory/heads.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "return int64(len(sub.live.items) + len(sub.replayed.items) + len(sub.behind))", New: "return int64(len(sub.live.items) + len(sub.behind))",
	},
	{
		Name: "a late result is recorded, in memory",
		File: "sender/memory/record.go", Tests: []string{"./sender/memory"},
		Old: "d.live.token == token", New: "token > 0",
	},
	{
		Name: "a late result is recorded, on SQLite",
		File: "sender/sqlite/leases.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "if !mine && leases[order[0]].token == l.token {", New: "if !mine {",
	},
	{
		Name: "a late result ends another's lease, on PostgreSQL",
		File: "sender/postgres/load.go", Tests: []string{"./sender/postgres"}, Run: store,
		Old: " AND token = u.token OFFSET 0", New: " OFFSET 0",
	},
	{
		Name: "an attempt that was lost leaves no record, in memory",
		File: "sender/memory/claim.go", Tests: []string{"./sender/memory"},
		Old: "if !d.live.leased.IsZero() {", New: "if !d.live.leased.IsZero() && d.live.number < 0 {",
	},
	{
		Name: "attempt numbers stay, on SQLite",
		File: "sender/sqlite/claim.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "\td.number++\n", New: "\td.number = max(d.number, 1)\n",
	},
	{
		Name: "a redelivery keeps what was spared, on SQLite",
		File: "sender/sqlite/redeliver.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "first_at = 0, stood = 0, spared = 0,", New: "first_at = 0, stood = 0,",
	},
	{
		Name: "the success of a redelivery counts as that of the event",
		File: "sender/rules/count.go", Tests: []string{"./sender/rules"},
		Old: "e.Result.Class == sender.ClassNone && !e.Single", New: "e.Result.Class == sender.ClassNone",
	},
	{
		Name: "an interrupted attempt is charged to the endpoint",
		File: "sender/rules/settle.go", Tests: []string{"./sender/rules"},
		Old: "r.Class == sender.ClassInterrupted || d.Uncounted", New: "d.Uncounted",
	},
	{
		Name: "a replay of groups sends all",
		File: "sender/replay/replay.go", Tests: []string{"./sender/replay"},
		Old: "(len(f.Groups) == 0 || slices.Contains(f.Groups, Group{c.Subscription, c.ErrorClass, c.StatusCode}))", New: "true",
	},
	{
		Name: "what was spared is not stored",
		File: "sender/rules/settle.go", Tests: []string{"./sender/rules"},
		Old: "\t\tv.Live.Spared = v.Spared\n", New: "\t\tv.Live.Spared = false\n",
	},
	{
		Name: "a delivery that was redacted in flight is tried again",
		File: "sender/rules/settle.go", Tests: []string{"./sender/rules"},
		Old: "s.Gone || s.Skipped || s.Redacted", New: "s.Gone || s.Skipped",
	},
	{
		Name: "a delivery that was delivered before is cancelled",
		File: "sender/rules/status.go", Tests: []string{"./sender/rules"},
		Old: "func Cancelled(single bool) sender.Status {\n\tif single {", New: "func Cancelled(single bool) sender.Status {\n\tif false {",
	},
	{
		Name: "a subscription gets what was published before it, on SQLite",
		File: "sender/sqlite/expand.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "a.since < ev.seq && ev.seq <= a.until", New: "ev.seq <= a.until",
	},
	{
		Name: "a subscription gets what was published before it, on PostgreSQL",
		File: "sender/postgres/match.go", Tests: []string{"./sender/postgres"}, Run: store,
		Old: "(a.since == nil || a.since.precedes(ev)) && ", New: "",
	},
	{
		Name: "an idempotency key is not bound to the body",
		File: "sender/rules/idempotency.go", Tests: []string{"./sender/postgres"}, Run: store,
		Old: "!bytes.Equal(hash, d.KeyHash[:]) {", New: "len(hash) == 0 && !bytes.Equal(hash, d.KeyHash[:]) {",
	},
	{
		Name: "a version that is given may be lower than the stored one, on PostgreSQL",
		File: "sender/postgres/publish.go", Tests: []string{"./sender/postgres"}, Run: store,
		Old: " WHERE excluded.version > o.version RETURNING version", New: " RETURNING version",
	},
	{
		Name: "an expansion that is cut off begins the event again, on SQLite",
		File: "sender/sqlite/expand.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "err = e.execs(upsertUnexpanded, ev.seq, ev.after)", New: "err = e.execs(upsertUnexpanded, ev.seq, 0)",
	},
	{
		Name: "what a sealed secret belongs to is not bound to it",
		File: "sender/keys.go", Tests: []string{"./sender"},
		Old: "return k.byName[k.current].Seal(b, nil, plain, []byte(bound))", New: "_ = bound\n\treturn k.byName[k.current].Seal(b, nil, plain, nil)",
	},
	{
		Name: "a job's late run may write",
		File: "sender/jobs/attempt.go", Tests: []string{"./sender/jobs"},
		Old: "r.Status != Running || r.Token != t.claimed.Token", New: "r.Status != Running",
	},
}

var ofWire = []Defect{
	{
		Name: "two versions of an object are begun at a time",
		File: "sender/dispatch/slots_order.go", Tests: []string{"./sender/dispatch"}, Run: "Slots",
		Old: "\tif a.Number != 1 {\n\t\treturn false\n\t}\n", New: "\tif a != nil {\n\t\treturn false\n\t}\n",
	},
	{
		Name: "results are dropped that could not be recorded",
		File: "sender/dispatch/pump.go", Tests: []string{"./sender/dispatch"},
		Old: "p.done = append(done[:len(done):len(done)], p.done...)", New: "done = append(done[:len(done):len(done)], p.done...)",
	},
	{
		Name: "the values of headers are stored as they are",
		File: "sender/subscribe.go", Tests: []string{"./sender"},
		Old: "\tr.keys.sealHeaders(s.ID, s.Settings.Headers)\n", New: "",
	},
	{
		Name: "the headers that are kept of an attempt have the values of the subscription's own",
		File: "sender/headers.go", Tests: []string{"./internal/proof/scenario"}, Run: "^TestNoSecretLeavesASender$/^sqlite$",
		Old: "\t\treturn redacted\n\t})\n\tb = append(b, '\\n')", New: "\t\treturn value\n\t})\n\tb = append(b, '\\n')",
	},
	{
		Name: "a secret that an endpoint sends back is kept among the answer's headers",
		File: "sender/headers.go", Tests: []string{"./sender"}, Run: "^TestHeaders$",
		Old: "case !shownOfAnswer[name] || slices.ContainsFunc(secrets, echoes):", New: "case !shownOfAnswer[name] || slices.ContainsFunc(secrets[:0], echoes):",
	},
	{
		Name: "a redaction leaves the headers of attempts, on SQLite",
		File: "sender/sqlite/redact.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "SET snippet = NULL, headers = NULL", New: "SET snippet = NULL",
	},
	{
		Name: "a redirect is a success",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "case answer.StatusCode >= 300 && answer.StatusCode < 400:", New: "case answer.StatusCode == 399:",
	},
	{
		Name: "an answer is read without an end",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "for total := 0; total < maxAnswer; {", New: "for total := 0; total >= 0; {",
	},
	{
		Name: "an attempt may take for ever",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "time.Now().Add(x.timeout)", New: "time.Now().Add(20*x.timeout)",
	},
	{
		Name: "a proxy's failure counts against the endpoint",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "r.ProxyFailed = byProxy(err)\n", New: "r.ProxyFailed = byProxy(err) && x.timeout < 0\n",
	},
	{
		Name: "an endpoint that swallows all is taken for a proxy that hangs",
		File: "sender/internal/post/proxy_doubt.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "return p.heard.Load() == heard", New: "return p.heard.Load() >= heard",
	},
	{
		Name: "the dialled address is not looked at",
		File: "sender/internal/post/transport.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "if err := policy.Control(ctx, network, address, conn); err != nil {", New: "if err := policy.Control(ctx, network, address, conn); err != nil && address == \"\" {",
	},
	{
		Name: "a kept connection is not looked at",
		File: "sender/internal/http1/conn.go", Tests: []string{"./sender/internal/http1"},
		Old: "\tif cn.reader.Buffered() != 0 {\n\t\treturn false\n\t}", New: "\tif cn.made.Unix() != 0 {\n\t\treturn true\n\t}",
	},
	{
		Name: "of a kept connection the socket alone is looked at, and not what TLS has read ahead",
		File: "sender/internal/http1/conn.go", Tests: []string{"./sender/internal/http1"},
		Old: "\tcase !cn.layers:\n", New: "\tdefault:\n",
	},
	{
		Name: "a Keep-Alive header is not heeded",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: "x.conn.promised = promise(answer.Header)", New: "x.conn.promised = max(promise(answer.Header), time.Hour)",
	},
	{
		Name: "a new connection that breaks passes for one that was closed as idle",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: "if x.conn.used && !x.conn.began && ", New: "if !x.conn.began && ",
	},
	{
		Name: "an answer that breaks off passes for a connection that was closed as idle",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: "if x.conn.used && !x.conn.began && ", New: "if x.conn.used && ",
	},
	{
		Name: "a spared attempt is made on a connection that was used before",
		File: "sender/internal/post/post.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "if r.Anew {\n", New: "if r.Anew && r.Attempt == 0 {\n",
	},
	{
		Name: "an origin of HTTP/2 alone is asked for HTTP/1.1 each time",
		File: "sender/internal/post/protocol.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: "\t\t\tc.origins.remember(to, true)\n", New: "\t\t\t_ = to\n",
	},
	{
		Name: "a connection that was being aborted is kept",
		File: "sender/internal/http1/exchange.go", Tests: []string{"./sender/internal/http1"},
		Old: "if !x.client.endings.remove(x) { // its context has ended\n\t\tkeep = false", New: "if !x.client.endings.remove(x) {\n\t\tkeep = err == io.EOF",
	},
	{
		Name: "a timeout is a success",
		File: "sender/internal/post/classify.go", Tests: []string{"./sender/internal/post", "./sender/dispatch"},
		Old: `return sender.ClassTimeout, "no whole answer within the attempt's time"`, New: `return sender.ClassNone, ""`,
	},
	{
		Name: "an address embedded in an IPv6 one is not looked at",
		File: "internal/guard/addresses.go", Tests: []string{"./internal/guard"},
		Old: "case covered(lastFour, a):", New: "case covered(lastFour, a) && b[0] == 0xff:",
	},
	{
		Name: "an address may have a zone",
		File: "internal/guard/url.go", Tests: []string{"./internal/guard"},
		Old: `case a.Zone() != "":`, New: `case a.Zone() == "none":`,
	},
	{
		Name: "a run that ends cuts its step off in the commit",
		File: "sender/dispatch/pump.go", Tests: []string{"./sender/dispatch"}, Run: "TestStop",
		Old: "working, cancel := context.WithCancel(context.WithoutCancel(ctx))", New: "working, cancel := context.WithCancel(ctx)",
	},
	{
		Name: "steps that new events cause keep no distance",
		File: "sender/dispatch/pace.go", Tests: []string{"./sender/dispatch"}, Run: "TestMaxDelay",
		Old: "if at := p.lastStep.Add(p.d.cfg.MaxDelay); at.Before(until) {", New: "if at := p.lastStep; at.Before(until) {",
	},
	{
		Name: "results are recorded at once though everything due was claimed",
		File: "sender/dispatch/pace.go", Tests: []string{"./sender/dispatch"}, Run: "TestResults",
		Old: "case p.pace.caughtUp && !p.keptBack && !p.toTheEnd:", New: "case p.pace.caughtUp && p.keptBack && !p.toTheEnd:",
	},
	{
		Name: "a process begins attempts although others may have taken them over",
		File: "sender/dispatch/presence.go", Tests: []string{"./sender/sqlite"}, Run: "TestStoppedIsTakenOver",
		Old: "return !asked.Before(x.since) && now.Sub(x.beaten) <= beatStale", New: "return !asked.Before(x.since)",
	},
	{
		Name: "a process is taken for gone after too few looks",
		File: "sender/dispatch/presence.go", Tests: []string{"./sender/dispatch"}, Run: "TestWatch",
		Old: "if s.looks >= goneLooks && asked.Sub(s.at) >= goneAfter {", New: "if asked.Sub(s.at) >= goneAfter {",
	},
	{
		Name: "what a commit claimed whose answer was lost is left to its lease",
		File: "sender/dispatch/doubt.go", Tests: []string{"./sender/dispatch"}, Run: "TestClaimWhoseAnswerWasLost",
		Old: "x.doubts = append(x.doubts, doubt{token, x.p.d.now().Add(x.p.d.cfg.Lease)})", New: "x.doubts = nil",
	},
	{
		Name: "a replay of a subscriber passes over what comes between others' deliveries",
		File: "sender/rules/merge.go", Tests: []string{"./sender/rules"}, Run: "TestPropertyMerge",
		Old: "for len(bound) > 0 && compare(merged[n-1], bound[0]) > 0 {", New: "for false {",
	},
	{
		Name: "an object is forgotten although something was published about it",
		File: "sender/postgres/prune_object.go", Tests: []string{"./sender/postgres"}, Run: "TestForgettingBesideAPublish",
		Old: "WHERE x.ctid = o.at AND o.same", New: "WHERE x.ctid = o.at",
	},
	{
		Name: "versions begin anew once an object is forgotten",
		File: "sender/sqlite/prune_object.go", Tests: []string{"./sender/sqlite"}, Run: "TestStore",
		Old: "return w.execs(liftFloor, floor)", New: "return nil",
	},
	{
		Name: "a filter is asked whatever an event is addressed to",
		File: "sender/rules/filter.go", Tests: []string{"./sender/storetest"}, Run: "TestSuite/filter",
		Old: "return addressed || f.Match(body)", New: "return f.Match(body)",
	},
	{
		Name: "large numbers of a filter are compared as if they were rounded",
		File: "sender/filter/number.go", Tests: []string{"./sender/filter"}, Run: "TestMatch",
		Old: "for i < len(n.digits) || j < len(m.digits) {", New: "for i < min(15, len(n.digits)) || j < min(15, len(m.digits)) {",
	},
	{
		Name: "what an old filter decided counts after it was changed",
		File: "sender/sqlite/filter.go", Tests: []string{"./sender/sqlite"}, Run: "TestLargeBodiesAreReadBefore",
		Old: "ok && known.filter.Equal(sub.filter) {", New: "ok {",
	},
	{
		Name: "events whose bodies are left to the next expansion are lost",
		File: "sender/postgres/expand.go", Tests: []string{"./sender/postgres"}, Run: "TestStore/.*/filter",
		Old: "for i := range candidates[:e.unread] {", New: "for i := range candidates {",
	},
}
