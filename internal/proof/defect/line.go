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
		Old: "s.HoldDead && status", New: "s.HoldTries < 0 && status",
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
		File: "sender/postgres/line_advance.go", Tests: []string{"./sender/postgres"}, Run: lineOn("pgx_read_committed"),
		Old: "CASE WHEN l.preceded THEN 0 ELSE l.event END", New: "l.event",
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
}
