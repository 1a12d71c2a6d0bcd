package defect

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
		Name: "a step that locks on its first trip leaves wakes where they are, on PostgreSQL",
		File: "sender/postgres/load.go", Tests: []string{"./sender/postgres"}, Run: "^TestFewEventsThatOthersGet$",
		Old: "if !l.locked || l.wakes() {", New: "if !l.locked {",
	},
	{
		Name: "a step that expects few events passes over an event that is begun, on PostgreSQL",
		File: "sender/postgres/expand.go", Tests: []string{"./sender/postgres"}, Run: "^TestFewEventsThatOthersGet$",
		Old: "more = state == somethingBegun", New: "more = false",
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
		Name: "an attempt that was lost while its subscription was held takes of the horizon of the new schedule",
		File: "sender/rules/settle.go", Tests: []string{"./sender/memory"}, Run: "^TestStore$/^life$",
		Old: "l.First = now", New: "l.First = s.Claimed",
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
		Old: "case r.Token != t.claimed.Token:", New: "case false:",
	},
	{
		Name: "another subscriber takes over the id of a subscription, in memory",
		File: "sender/memory/registry.go", Tests: []string{"./sender/memory"}, Run: "^TestStore$/^registry$",
		Old: "if s.subscription[n.ID] != nil {", New: "if was := s.subscription[n.ID]; was != nil && was.owner == owner {",
	},
	{
		Name: "who names another's subscription is shown it",
		File: "sender/subscribe.go", Tests: []string{"./sender"}, Run: "^TestSubscribeWithID$",
		Old: "was.Subscriber == s.Subscriber && ", New: "",
	},
	{
		Name: "two customers' forms make the same id",
		File: "sender/portal/form.go", Tests: []string{"./sender/portal"}, Run: "^TestAddAnEndpointTwice$",
		Old: "newid.Of(prefix, subscriber, once", New: "newid.Of(prefix, once",
	},
	{
		Name: "who names another's replay is shown it",
		File: "sender/replay/replays.go", Tests: []string{"./sender/replay"}, Run: "^TestCreateWithID$",
		Old: "err == nil && was.Filter.Subscriber != asked.Filter.Subscriber", New: "false",
	},
	{
		Name: "a second replay with an id is stored, in memory",
		File: "sender/memory/replay.go", Tests: []string{"./sender/memory"}, Run: "^TestStore$/^replay$",
		Old: "n.ID != \"\" && slices.ContainsFunc", New: "false && slices.ContainsFunc",
	},
	{
		Name: "a page of attempts has one of the page before, on SQLite",
		File: "sender/sqlite/delivery.go", Tests: []string{"./sender/sqlite"}, Run: "^TestStore$/^immediate$/^history$",
		Old: "attemptsOf + `< ?3", New: "attemptsOf + `<= ?3",
	},
	{
		Name: "notices that were put off come in the order of their numbers, on SQLite",
		File: "sender/sqlite/notices.go", Tests: []string{"./sender/sqlite"}, Run: "^TestStore$/^immediate$/^notifier$",
		Old: "ORDER BY notify_due, no LIMIT", New: "ORDER BY no LIMIT",
	},
}
