package defect

// lineOn runs the rules of a store about the lines of objects.
func lineOn(variant string) string { return "^TestStore$/^" + variant + "$/^line$" }

// ofLines are defects in what waits for what, and in what is superseded.
var ofLines = []Defect{
	{
		Name: "a version is made beside an earlier one that has not ended",
		File: "sender/rules/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "if l.First != 0 && (l.First < event || flying) {", New: "if flying {",
	},
	{
		Name: "a version that is sent again does not go before later ones",
		File: "sender/rules/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "l.First != 0 && (l.First < event || flying)", New: "l.First != 0",
	},
	{
		Name: "a retry does not give way to an earlier version that was sent again",
		File: "sender/rules/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "return l.First != 0 && l.First < event && !l.Dead", New: "return l.First < 0",
	},
	{
		Name: "a dead letter never holds back later versions",
		File: "sender/rules/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "s.Order == sender.OrderObject && s.HoldDead", New: "s.Order == sender.OrderObject && s.HoldTries < 0",
	},
	{
		Name: "what a dead letter has held back goes on, however old it is",
		File: "sender/rules/expire.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "return !notBefore.IsZero() && (status ==", New: "return notBefore.IsZero() && (status ==",
	},
	{
		Name: "a dispatcher lets go on what is older than the reach",
		File: "sender/dispatch/sweep.go", Tests: []string{"./sender/dispatch"}, Run: "^TestHeldBackForTooLong$",
		Old: "NotBefore: u.p.d.cfg.Retention.NotBefore(u.p.databaseTime(began)), ", New: "",
	},
	{
		Name: "a line goes on before all that is too old has ended, on SQLite",
		File: "sender/sqlite/line_expire.go", Tests: []string{"./sender/sqlite"}, Run: lineOn("immediate"),
		Old: "if !left {", New: "if !left || k.Event > 0 {",
	},
	{
		Name: "what an earlier dead letter still holds back ends for its age, on PostgreSQL",
		File: "sender/postgres/line_expire.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "x.event < u.event AND x.place = 3", New: "x.event < 0 AND x.place = 3",
	},
	{
		Name: "an attempt that fails is made again although a newer version waits",
		File: "sender/rules/settle.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "case v.Status == sender.StatusAwaitingRetry && s.Newer:", New: "case v.Status == sender.StatusAwaitingRetry && s.Newer && s.Gone:",
	},
	{
		Name: "the tries of a held object are not bounded",
		File: "sender/dispatch/policy.go", Tests: []string{"./sender/dispatch"}, Run: "^TestPolicyDelivery$",
		Old: "l.HoldTries == 0 || l.Tries < l.HoldTries", New: "l.HoldTries >= 0",
	},
	{
		Name: "what is behind stays there when what was before it has ended, on SQLite",
		File: "sender/sqlite/record.go", Tests: []string{"./sender/sqlite"}, Run: lineOn("immediate"),
		Old: "err = b.leave(h, sub, l.event, v.Status)", New: "err = nil",
	},
	{
		Name: "what was superseded is lost, on SQLite",
		File: "sender/sqlite/line.go", Tests: []string{"./sender/sqlite"}, Run: lineOn("immediate"),
		Old: "return b.endAll(h, rest, rules.Superseded)", New: "return b.endAll(h, rest[:0], rules.Superseded)",
	},
	{
		Name: "the first of a line comes out, whatever the order is now",
		File: "sender/rules/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "return order == sender.OrderLatest && l.First < l.Newest", New: "return order == sender.OrderLatest && l.First > l.Newest",
	},
	{
		Name: "the newest version comes out of a line before all older ones have ended",
		File: "sender/rules/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "return left && (l.Out == 0 || !l.Leased)", New: "return left && l.First == 0",
	},
	{
		Name: "a dead letter amid a line comes out, on SQLite",
		File: "sender/sqlite/line.go", Tests: []string{"./sender/sqlite"}, Run: lineOn("immediate"),
		Old: "\tif dead {\n", New: "\tif dead && line.Dead {\n",
	},
	{
		Name: "two of an object are leased at a time after a release, on PostgreSQL",
		File: "sender/postgres/line.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "if !line.Yields(l.event) {", New: "if line.First >= 0 {",
	},
	{
		Name: "what was sent again while a later version was in flight is passed over, on PostgreSQL",
		File: "sender/postgres/line_leave.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "CASE WHEN preceded THEN 0 ELSE event END", New: "event",
	},
	{
		Name: "what comes out of a line among pending deliveries is never due, on PostgreSQL",
		File: "sender/postgres/line_leave.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "h.pend(out, first.Int64, due)", New: "h.pend(out, first.Int64, never)",
	},
	{
		Name: "what comes out of a line is passed over if it is older than what a claim beside it takes, on PostgreSQL",
		File: "sender/postgres/line_leave.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "h.claimedTo = min(h.claimedTo, k.Event)", New: "h.turn = max(h.turn, 0)",
	},
	{
		Name: "what has left lines with nothing behind it is still counted, on PostgreSQL",
		File: "sender/postgres/line_leave.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: `"lined = u.lined - coalesce((SELECT n FROM gone_of g WHERE g.subscription = h.subscription), 0)"`, New: `"lined = u.lined"`,
	},
	{
		Name: "what waits in the lines of a deleted subscription comes out, on SQLite",
		File: "sender/sqlite/line_advance.go", Tests: []string{"./sender/sqlite"}, Run: lineOn("immediate"),
		Old: "if sub.gone() { // all of what is gone is swept", New: "if sub.gone() && b == nil {",
	},
	{
		Name: "what a claim finds redacted stays in its line, on PostgreSQL",
		File: "sender/postgres/payloads.go", Tests: []string{"./sender/postgres"}, Run: "^TestRedactBesideAClaim$",
		Old: "\t\t\tb.leave(h, b.subs[l.subscription], &l, status)\n", New: "",
	},
	{
		Name: "a step ends all that a newer version supersedes, however many",
		File: "sender/rules/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "return min(SupersedeMost, all), all", New: "return all, all",
	},
	{
		Name: "a line that has halted never goes on, on SQLite",
		File: "sender/sqlite/line_dead.go", Tests: []string{"./sender/sqlite"}, Run: lineOn("immediate"),
		Old: "WHERE halts = 1 LIMIT 100", New: "WHERE halts = 1 LIMIT 0",
	},
	{
		Name: "a line that has halted never goes on, on PostgreSQL",
		File: "sender/postgres/line_dead.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "WHERE halts LIMIT 100", New: "WHERE halts LIMIT 0",
	},
	{
		Name: "a line does not go on once its order is relaxed",
		File: "sender/memory/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "if sub.deleted || !line.Advances() {", New: "if sub.deleted || sub.Settings.Order == sender.OrderRelaxed || !line.Advances() {",
	},
	{
		Name: "a dead letter holds back others although its subscription does not want that any more, on PostgreSQL",
		File: "sender/postgres/line_dead.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "!dead || !rules.Holds(&set, status)", New: "!dead && !rules.Holds(&set, status)",
	},
	{
		Name: "what receivers may have forgotten is passed over, in memory",
		File: "sender/memory/line.go", Tests: []string{"./sender/memory"}, Run: store,
		Old: "rules.Within(next.event.info.CreatedAt, notBefore)", New: "rules.Within(next.event.info.CreatedAt, time.Time{})",
	},
	{
		Name: "what receivers may have forgotten is passed over, on SQLite",
		File: "sender/sqlite/line_dead.go", Tests: []string{"./sender/sqlite"}, Run: lineOn("immediate"),
		Old: "b.behindWithin(k, notBefore)", New: "b.behindWithin(k, time.Time{})",
	},
	{
		Name: "what receivers may have forgotten is passed over, on PostgreSQL",
		File: "sender/postgres/line_dead.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "rules.Within(oldest.time(), notBefore)", New: "rules.Within(oldest.time(), time.Time{})",
	},
	{
		Name: "passing over has no reach",
		File: "sender/history/history.go", Tests: []string{"./internal/proof/simulation"}, Run: "^TestManyAttempts$",
		Old: "h.store.PassOver(ctx, id, h.keeps.NotBefore(h.now()))", New: "h.store.PassOver(ctx, id, time.Time{})",
	},
	{
		Name: "passing over by force has a reach",
		File: "sender/history/history.go", Tests: []string{"./internal/proof/simulation"}, Run: "^TestManyAttempts$",
		Old: "return h.store.PassOver(ctx, id, time.Time{})", New: "return h.PassOver(ctx, id)",
	},
}
